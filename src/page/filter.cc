#include "page/filter.h"

#include <regex.h>

#include <algorithm>
#include <charconv>

#include "base/in_quotes.h"
#include "base/nearest.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

/// POSIX extended expressions without what makes matching slow: counts and back references.
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
    const int code =
        regcomp(&pattern->compiled_, text.c_str(), REG_EXTENDED | REG_NOSUB | REG_ICASE);
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
    if (text_.size() > kMostBytes)
      return refuse(kMostBytes, "the filter is longer than 1,024 bytes");
    bool is_not = false;
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
      if (filter.terms_.size() == kMostTerms) return refuse(at_, "a filter has at most 32 terms");
      const size_t begin = at_;
      auto term = take();
      if (!term) return std::unexpected(term.error());
      if (!*term) {
        if (is_not) return refuse(begin, "not appears twice");
        is_not = true;
        continue;
      }
      (*term)->is_not = is_not;
      is_not = false;
      if ((*term)->is_steps && !filter.steps_at_) filter.steps_at_ = begin;
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
  /// Up to `end`, which a backslash escapes; absent if it does not occur.
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
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '"')
      ++at_;
    return text_.substr(begin, at_ - begin);
  }
  static Term text_term(std::string text) {
    Term term;
    term.matches = [text](std::string_view in) { return contains(in, text); };
    term.text = std::move(text);
    return term;
  }

  /// Empty for the word "not".
  std::expected<std::optional<Term>, FilterError> take() {
    const size_t begin = at_;
    if (text_[at_] == '"') {
      auto quoted = take_up_to('"');
      if (!quoted) return refuse(begin, "unclosed quote");
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
          if (!quoted) return refuse(begin + colon + 1, "unclosed quote");
          value = std::move(*quoted);
        }
        return fact(*kind, std::move(value), begin + colon + 1);
      }
    }
    if (std::string why = mistyped(word); !why.empty()) return refuse(begin, std::move(why));
    return text_term(std::string(word));
  }
  /// Why a word that begins like a field, of which there is none, is not searched as text: nobody
  /// would find what is wrong. Empty if it does not.
  std::string mistyped(std::string_view word) const {
    static const std::vector<std::string> kFields = {"bytes", "lived",  "category", "module",
                                                     "line",  "stream", "process",  "thread"};
    const size_t end = word.find_first_of(":<>=");
    if (end == word.npos || word.substr(end).starts_with("::")) return {};
    const bool has_value = end + 1 < word.size() || (at_ < text_.size() && text_[at_] == '"');
    std::string name(word.substr(0, end));
    std::ranges::transform(name, name.begin(), lower_letter);
    const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
    if (!has_value || !std::ranges::all_of(name, is_letter)) return {};
    const std::string meant = name == "size"   ? "bytes"
                              : name == "type" ? "category"
                                               : nearest(name, kFields);
    if (meant.empty()) return {};
    const bool is_number = meant == "bytes" || meant == "lived";
    return in_quotes(word.substr(0, end + 1)) + " is no field of a filter; did you mean " +
           in_quotes(meant + (is_number ? '>' : ':')) + "? In quotes the word is searched as text";
  }
  static std::optional<Kind> kind_of(std::string_view word) {
    if (word == "category") return Kind::kCategory;
    if (word == "module") return Kind::kModule;
    if (word == "line") return Kind::kLine;
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
      if (!size) return refuse(begin + at, "expected a size, such as 10MiB, 1GB or 4096");
      term.number = *size;
    } else if (!lifetime(text, &term)) {
      return refuse(begin + at,
                    in_quotes(word) + ": lived takes a number of events or of steps, as in " +
                        in_quotes("lived>100") + " and " + in_quotes("lived>2steps") +
                        "; it knows no times");
    }
    return term;
  }
  /// "100" or "2steps".
  static bool lifetime(std::string_view text, Term* term) {
    for (const std::string_view unit : {"steps", "step"}) {
      if (!text.ends_with(unit)) continue;
      text.remove_suffix(unit.size()), term->is_steps = true;
      break;
    }
    return whole_number(text, &term->number);
  }
  static bool whole_number(std::string_view text, uint64_t* number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
  }
  std::expected<std::optional<Term>, FilterError> fact(Kind kind, std::string value, size_t at) {
    Term term;
    term.kind = kind;
    if (value.empty()) return refuse(at, "expected a name or a number");
    const bool is_number = kind == Kind::kStream || kind == Kind::kProcess;
    if (is_number && !whole_number(value, &term.number)) return refuse(at, "not a number");
    if (kind == Kind::kCategory) {
      bool is_known = false;
      for (size_t c = 0; c < kCategories; ++c) {
        const std::string_view name = category_name(static_cast<Category>(c));
        is_known |= begins(name, value);
      }
      if (!is_known) return refuse(at, "no category starts with this");
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

}  // namespace gpumemprof
