// The part of YAML that boards/*.yaml are written in: maps and lists by indentation of two spaces,
// one value a line, comments. Strict: anything else is an error with its line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fake_nvml {

struct Node {
  std::string text;                               ///< of a value
  std::vector<std::pair<std::string, Node>> map;  ///< in the order of the file
  std::vector<Node> list;

  const Node* find(const std::string& key) const;
  std::string text_of(const std::string& key, const std::string& otherwise = "") const;
  /// Empty where the key is not there, or is "unknown".
  std::optional<uint64_t> number_of(const std::string& key) const;
  const std::vector<Node>& list_of(const std::string& key) const;
};

/// Empty with `error` ("line 3: …") where the text is nothing that is known here.
std::optional<Node> parse_yaml(const std::string& text, std::string* error);

}  // namespace fake_nvml
