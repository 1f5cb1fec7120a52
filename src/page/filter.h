// What the user asks to be shown alone: "conv bytes>10MiB not category:gradient".
//
//   filter := term*                         all of them hold
//   term   := ["not"] (text | fact)
//   text   := word | "words" | /regex/      in a frame of the stack, or the module; any case
//   fact   := (bytes|lived) (>|<|>=|<=|=) number      lived: in events
//           | category:name | module:prefix | line:text | stream:n | process:pid | thread:name
//
// line: the one that reports name of the block's stack. A block has one, so of several terms
// without "not" one is enough.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
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
  /// Per block number, 1 if every term matches. `process`: of the device.
  std::vector<uint8_t> taken(const BlockTable& table, const Tables& tables, uint32_t process) const;

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
    Order order = Order::kEqual;
    uint64_t number = 0;
    std::string text;
    Match matches;  // of kText
  };
  class Parser;
  friend class FilterRun;

  std::string text_;
  std::vector<Term> terms_;
};

}  // namespace gpumemprof
