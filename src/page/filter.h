// What the user asks to be shown alone: "conv bytes>10MiB not category:gradient".
//
//   filter := term*                         all of them hold
//   term   := ["not"] (text | fact)
//   text   := word | "words" | /regex/      in a frame of the stack, or the module; any case
//   fact   := (bytes|lived) (>|<|>=|<=|=) number      lived: in events
//           | lived (>|<|>=|<=|=) number (step|steps)   ends of steps at which it lives
//           | category:name | module:prefix | line:text | stream:n | process:pid | thread:name
//
// line: the one that reports name of the block's stack. A block has one, so of several terms
// without "not" one is enough.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "page/block_table.h"
#include "trace/tables.h"

namespace gpumemprof {

struct FilterError {
  std::string message;  ///< one line
  size_t at = 0;        ///< byte in the text
};

/// Categories and modules are matched against a block's final state.
class Filter {
 public:
  static constexpr size_t kMostBytes = 1024, kMostTerms = 32, kMostPatternBytes = 256;
  Filter() = default;
  static std::expected<Filter, FilterError> parse(std::string_view text);

  const std::string& text() const { return text_; }
  bool takes_all() const { return terms_.empty(); }
  /// The byte of the first term that counts steps.
  std::optional<size_t> steps_at() const { return steps_at_; }
  /// Per block number, 1 if every term matches. `process`: of the device; `step_ends`: the moments
  /// at which its steps ended, in order.
  std::vector<uint8_t> taken(const BlockTable& table, const Tables& tables, uint32_t process,
                             std::span<const uint32_t> step_ends = {}) const;

 private:
  using Match = std::function<bool(std::string_view)>;
  enum class Kind : uint8_t {
    kText,
    kBytes,
    kLived,
    kCategory,
    kModule,
    kLine,
    kStream,
    kProcess,
    kThread
  };
  enum class Order : uint8_t { kMore, kLess, kAtLeast, kAtMost, kEqual };
  struct Term {
    Kind kind = Kind::kText;
    bool is_not = false;
    bool is_steps = false;  // of kLived: `number` is of steps
    Order order = Order::kEqual;
    uint64_t number = 0;
    std::string text;
    Match matches;  // of kText
  };
  class Parser;
  friend class FilterRun;

  std::string text_;
  std::vector<Term> terms_;
  std::optional<size_t> steps_at_;
};

inline constexpr size_t kMostSearchedBytes = 4096;  // of one frame or name

inline char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

/// Ignoring the case of ASCII letters.
inline bool contains(std::string_view text, std::string_view part) {
  text = text.substr(0, kMostSearchedBytes);
  const auto found = std::ranges::search(text, part, {}, lower_letter, lower_letter);
  return part.empty() || !found.empty();
}

inline bool begins(std::string_view text, std::string_view part) {
  return text.size() >= part.size() && contains(text.substr(0, part.size()), part);
}

}  // namespace gpumemprof
