#include "page/filter.h"

#include <regex.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/size.h"
#include "page/block_keys.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostSearchedBytes = 4096;  // of one frame or name

char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

bool contains(std::string_view text, std::string_view part) {
  text = text.substr(0, kMostSearchedBytes);
  const auto found = std::ranges::search(text, part, {}, lower_letter, lower_letter);
  return part.empty() || !found.empty();
}

bool begins(std::string_view text, std::string_view part) {
  return text.size() >= part.size() && contains(text.substr(0, part.size()), part);
}

/// POSIX's extended expressions without what makes matching slow: counts and back references.
class Pattern {
 public:
  static std::expected<std::shared_ptr<Pattern>, std::string> make(const std::string& text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\\' && ++i < text.size()) {
        if (text[i] >= '0' && text[i] <= '9') return std::unexpected("\\1 is not supported");
      } else if (text[i] == '{') {
        return std::unexpected("{ } is not supported");
      }
    }
    auto pattern = std::make_shared<Pattern>();
    const int code = regcomp(&pattern->compiled_, text.c_str(), REG_EXTENDED | REG_NOSUB | REG_ICASE);
    if (code == 0) {
      pattern->is_compiled_ = true;
      return pattern;
    }
    char why[128];
    regerror(code, &pattern->compiled_, why, sizeof why);
    return std::unexpected(std::string(why));
  }
  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() {
    if (is_compiled_) regfree(&compiled_);
  }
  bool matches(std::string_view text) const {
    const std::string searched(text.substr(0, kMostSearchedBytes));
    return regexec(&compiled_, searched.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t compiled_{};
  bool is_compiled_ = false;
};

}  // namespace

/// Goes through the text once.
class Filter::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::expected<Filter, FilterError> run() {
    Filter filter;
    filter.text_ = text_;
    if (text_.size() > kMostBytes) return refuse(kMostBytes, "the filter is longer than 1,024 bytes");
    bool is_not = false;
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
      if (filter.terms_.size() == kMostTerms) return refuse(at_, "a filter has at most 32 terms");
      const size_t begin = at_;
      auto term = take();
      if (!term) return std::unexpected(term.error());
      if (!*term) {
        if (is_not) return refuse(begin, "not is said twice");
        is_not = true;
        continue;
      }
      (*term)->is_not = is_not;
      is_not = false;
      filter.terms_.push_back(std::move(**term));
    }
    if (is_not) return refuse(text_.size(), "nothing follows not");
    return filter;
  }

 private:
  static std::unexpected<FilterError> refuse(size_t at, std::string why) {
    return std::unexpected(FilterError{std::move(why), at});
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  /// Up to `end`, which a backslash before it hides; absent where it does not come.
  std::optional<std::string> take_up_to(char end) {
    std::string out;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == end) {
        ++at_;
        return out;
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == end) ++at_;
      out += text_[at_];
    }
    return std::nullopt;
  }
  std::string_view take_word() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '"') ++at_;
    return text_.substr(begin, at_ - begin);
  }
  static Term text_term(std::string text) {
    Term term;
    term.matches = [text](std::string_view in) { return contains(in, text); };
    term.text = std::move(text);
    return term;
  }

  /// Nothing for the word "not".
  std::expected<std::optional<Term>, FilterError> take() {
    const size_t begin = at_;
    if (text_[at_] == '"') {
      auto quoted = take_up_to('"');
      if (!quoted) return refuse(begin, "the quote is not closed");
      return text_term(std::move(*quoted));
    }
    if (text_[at_] == '/') {
      const auto regex = take_up_to('/');
      const bool is_path = regex && at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\t';
      if (regex && !is_path) return pattern(*regex, begin);
      at_ = begin;  // a path
    }
    std::string_view word = take_word();
    if (word == "not") return std::nullopt;
    const size_t colon = word.find(':'), sign = word.find_first_of("<>=");
    if (sign != word.npos && (word.substr(0, sign) == "bytes" || word.substr(0, sign) == "lived"))
      return number(word, sign, begin);
    if (colon != word.npos) {
      if (const auto kind = kind_of(word.substr(0, colon))) {
        std::string value(word.substr(colon + 1));
        if (value.empty() && at_ < text_.size() && text_[at_] == '"') {
          auto quoted = take_up_to('"');
          if (!quoted) return refuse(begin + colon + 1, "the quote is not closed");
          value = std::move(*quoted);
        }
        return fact(*kind, std::move(value), begin + colon + 1);
      }
    }
    return text_term(std::string(word));
  }
  static std::optional<Kind> kind_of(std::string_view word) {
    if (word == "category") return Kind::kCategory;
    if (word == "module") return Kind::kModule;
    if (word == "stream") return Kind::kStream;
    if (word == "process") return Kind::kProcess;
    if (word == "thread") return Kind::kThread;
    return std::nullopt;
  }
  std::expected<std::optional<Term>, FilterError> pattern(const std::string& regex, size_t begin) {
    if (regex.size() > kMostPatternBytes)
      return refuse(begin, "the expression is longer than 256 bytes");
    auto compiled = Pattern::make(regex);
    if (!compiled) return refuse(begin, "bad expression: " + compiled.error());
    Term term;
    term.text = regex;
    term.matches = [pattern = *compiled](std::string_view in) { return pattern->matches(in); };
    return term;
  }
  std::expected<std::optional<Term>, FilterError> number(std::string_view word, size_t sign,
                                                         size_t begin) {
    Term term;
    term.kind = word.starts_with("bytes") ? Kind::kBytes : Kind::kLived;
    const bool has_equal = sign + 1 < word.size() && word[sign] != '=' && word[sign + 1] == '=';
    term.order = word[sign] == '='   ? Order::kEqual
                 : word[sign] == '>' ? (has_equal ? Order::kAtLeast : Order::kMore)
                                     : (has_equal ? Order::kAtMost : Order::kLess);
    const size_t at = sign + 1 + has_equal;
    const std::string_view text = word.substr(at);
    if (term.kind == Kind::kBytes) {
      const auto size = parse_size(std::string(text));
      if (!size) return refuse(begin + at, "not a size: 10MiB, 1GB or bytes");
      term.number = *size;
    } else if (!whole_number(text, &term.number)) {
      return refuse(begin + at, "not a number of events");
    }
    return term;
  }
  static bool whole_number(std::string_view text, uint64_t* number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
  }
  std::expected<std::optional<Term>, FilterError> fact(Kind kind, std::string value, size_t at) {
    Term term;
    term.kind = kind;
    if (value.empty()) return refuse(at, "a name or a number is wanted");
    const bool is_number = kind == Kind::kStream || kind == Kind::kProcess;
    if (is_number && !whole_number(value, &term.number)) return refuse(at, "not a number");
    if (kind == Kind::kCategory) {
      bool is_known = false;
      for (size_t c = 0; c < kCategories; ++c) {
        const std::string_view name = category_name(static_cast<Category>(c));
        is_known |= begins(name, value);
      }
      if (!is_known) return refuse(at, "no category begins so");
    }
    term.text = std::move(value);
    return term;
  }

  const std::string_view text_;
  size_t at_ = 0;
};

std::expected<Filter, FilterError> Filter::parse(std::string_view text) {
  return Parser(text).run();
}

/// Asks the terms of one table's blocks. What a stack or a kind decides is decided once for each.
class FilterRun {
 public:
  FilterRun(const BlockTable& table, const Tables& tables, uint32_t process)
      : table_(table), tables_(tables), process_(process) {}

  void ask(const Filter::Term& term, std::vector<uint8_t>* taken) {
    nodes_.assign(tables_.stacks.stack_count(), kNotAsked);
    frames_.assign(tables_.stacks.frame_count(), kNotAsked);
    modules_.clear();
    by_number_.clear();
    for (uint32_t b = 0; b < table_.blocks(); ++b) {
      if ((*taken)[b]) (*taken)[b] = holds(term, b) != term.is_not;
    }
  }

 private:
  static constexpr uint8_t kNotAsked = 2;

  static bool compare(Filter::Order order, uint64_t value, uint64_t with) {
    switch (order) {
      case Filter::Order::kMore:
        return value > with;
      case Filter::Order::kLess:
        return value < with;
      case Filter::Order::kAtLeast:
        return value >= with;
      case Filter::Order::kAtMost:
        return value <= with;
      case Filter::Order::kEqual:
        return value == with;
    }
    return false;
  }
  bool frame_matches(const Filter::Term& term, uint32_t id) {
    uint8_t& known = frames_[id];
    if (known != kNotAsked) return known != 0;
    const Frame& frame = tables_.stacks.frame(id);
    std::string text(tables_.strings.get(frame.file).substr(0, kMostSearchedBytes / 2));
    if (frame.line != 0) text += ":" + std::to_string(frame.line);
    text += " ";
    text += tables_.strings.get(frame.function).substr(0, kMostSearchedBytes / 2);
    known = term.matches(text) ? 1 : 0;
    return known != 0;
  }
  /// Any frame; a stack is its caller's and one frame more.
  bool stack_matches(const Filter::Term& term, uint32_t stack) {
    path_.clear();
    uint32_t node = stack < nodes_.size() ? stack : 0;
    for (; node != 0 && nodes_[node] == kNotAsked; node = tables_.stacks.node(node).parent)
      path_.push_back(node);
    bool matches = node != 0 && nodes_[node];
    for (auto at = path_.rbegin(); at != path_.rend(); ++at) {
      matches = matches || frame_matches(term, tables_.stacks.node(*at).frame);
      nodes_[*at] = matches;
    }
    return matches;
  }
  template <class Ask>
  bool module_matches(uint32_t block, const Ask& ask) {
    const uint32_t kind = table_.kind[block] & ~BlockTable::kChangesKind;
    const auto [known, is_new] =
        modules_.try_emplace(uint64_t{table_.stack[block]} << 32 | kind, false);
    if (is_new) known->second = ask(module_of(table_.kinds[kind], table_.stack[block], tables_));
    return known->second;
  }
  bool thread_matches(const Filter::Term& term, uint32_t block) {
    const uint32_t thread = table_.thread.empty() ? kNone : table_.thread[block];
    if (thread >= tables_.threads.size()) return false;
    const auto [known, is_new] = by_number_.try_emplace(thread, false);
    if (is_new) {
      const Thread& of = tables_.threads[thread];
      known->second = contains(of.name, term.text) || std::to_string(of.tid) == term.text;
    }
    return known->second;
  }
  bool holds(const Filter::Term& term, uint32_t block) {
    switch (term.kind) {
      case Filter::Kind::kText:
        return stack_matches(term, table_.stack[block]) ||
               module_matches(block, [&](const std::string& name) { return term.matches(name); });
      case Filter::Kind::kBytes:
        return compare(term.order, table_.size_bytes[block], term.number);
      case Filter::Kind::kLived:
        return compare(term.order,
                       std::min(table_.end[block], table_.moments()) - table_.start[block],
                       term.number);
      case Filter::Kind::kCategory: {
        const CategoryHolder& kind =
            table_.kinds[table_.kind[block] & ~BlockTable::kChangesKind];
        return begins(category_name(kind.category), term.text);
      }
      case Filter::Kind::kModule:
        return module_matches(block,
                              [&](const std::string& name) { return begins(name, term.text); });
      case Filter::Kind::kStream:
        return !table_.stream.empty() &&
               static_cast<uint64_t>(table_.streams[table_.stream[block]]) == term.number;
      case Filter::Kind::kProcess:
        return process_ < tables_.processes.size() &&
               tables_.processes[process_].pid == term.number;
      case Filter::Kind::kThread:
        return thread_matches(term, block);
    }
    return false;
  }

  const BlockTable& table_;
  const Tables& tables_;
  const uint32_t process_;
  std::vector<uint8_t> nodes_, frames_;
  std::vector<uint32_t> path_;
  absl::flat_hash_map<uint64_t, bool> modules_;
  absl::flat_hash_map<uint32_t, bool> by_number_;
};

std::vector<uint8_t> Filter::taken(const BlockTable& table, const Tables& tables,
                                   uint32_t process) const {
  std::vector<uint8_t> taken(table.blocks(), 1);
  FilterRun run(table, tables, process);
  for (const Term& term : terms_) run.ask(term, &taken);
  return taken;
}

}  // namespace gpumemprof
