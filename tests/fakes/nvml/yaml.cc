#include "yaml.h"

#include <sstream>

namespace fake_nvml {
namespace {

struct Line {
  size_t number, indent;
  std::string text;
};

struct Parser {
  std::vector<Line> lines;
  size_t at = 0;
  std::string* error;

  bool wrong(const std::string& what) {
    const size_t number = at < lines.size() ? lines[at].number : 0;
    *error = "line " + std::to_string(number) + ": " + what;
    return false;
  }

  /// "key: value" or "key:" of the line at hand, whose children stand below, further in.
  bool entry(size_t indent, Node* into) {
    const std::string text = lines[at].text;
    const size_t colon = text.find(':');
    if (colon == text.npos || colon == 0) return wrong("\"key: value\" expected");
    const std::string key = text.substr(0, colon);
    if (into->find(key)) return wrong("the key stands here twice: " + key);
    Node value;
    if (colon + 1 < text.size()) {
      if (text[colon + 1] != ' ') return wrong("a space must follow the colon");
      value.text = text.substr(colon + 2);
      if (value.text.size() >= 2 && value.text.front() == '"' && value.text.back() == '"')
        value.text = value.text.substr(1, value.text.size() - 2);
      ++at;
    } else {
      ++at;
      if (at >= lines.size() || lines[at].indent != indent + 2)
        return wrong("nothing stands below " + key);
      if (!block(indent + 2, &value)) return false;
    }
    into->map.emplace_back(key, std::move(value));
    return true;
  }

  bool block(size_t indent, Node* into) {
    while (at < lines.size() && lines[at].indent == indent) {
      if (lines[at].text.starts_with("- ")) {
        if (!into->map.empty()) return wrong("a list within a map");
        lines[at].text.erase(0, 2);
        lines[at].indent += 2;
        Node item;
        if (!block(indent + 2, &item)) return false;
        into->list.push_back(std::move(item));
      } else {
        if (!into->list.empty()) return wrong("a map within a list");
        if (!entry(indent, into)) return false;
      }
    }
    if (at < lines.size() && lines[at].indent > indent) return wrong("indented too far");
    return true;
  }
};

}  // namespace

const Node* Node::find(const std::string& key) const {
  for (const auto& [name, value] : map)
    if (name == key) return &value;
  return nullptr;
}

std::string Node::text_of(const std::string& key, const std::string& otherwise) const {
  const Node* node = find(key);
  return node ? node->text : otherwise;
}

std::optional<uint64_t> Node::number_of(const std::string& key) const {
  const Node* node = find(key);
  if (!node || node->text == "unknown") return std::nullopt;
  return std::stoull(node->text);
}

const std::vector<Node>& Node::list_of(const std::string& key) const {
  static const std::vector<Node> none;
  const Node* node = find(key);
  return node ? node->list : none;
}

std::optional<Node> parse_yaml(const std::string& text, std::string* error) {
  Parser parser{.error = error};
  std::istringstream stream(text);
  std::string line;
  for (size_t number = 1; std::getline(stream, line); ++number) {
    const size_t comment = line.find(" #");
    if (comment != line.npos) line.resize(comment);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    const size_t indent = line.find_first_not_of(' ');
    if (indent == line.npos || line[indent] == '#') continue;
    parser.lines.push_back({number, indent, line.substr(indent)});
  }
  Node root;
  if (!parser.block(0, &root)) return std::nullopt;
  if (parser.at < parser.lines.size()) {
    parser.wrong("indented too little");
    return std::nullopt;
  }
  return root;
}

}  // namespace fake_nvml
