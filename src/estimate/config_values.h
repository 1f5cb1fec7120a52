// A configuration as a flat list of names and plain values, whichever syntax it was written in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

using ConfigList = std::vector<double>;
using ConfigTexts = std::vector<std::string>;
using ConfigValue =
    std::variant<std::monostate, bool, double, std::string, ConfigList, ConfigTexts>;

/// Names as Python would write them: "--num-layers" and "num_layers" are both "num_layers". Values
/// that are neither plain nor a list of numbers or of texts are left out: nothing here needs them.
/// But "quantization_config.bits" is a member of that object, of a list its last value.
class ConfigValues {
 public:
  void set(std::string_view name, ConfigValue value);
  bool has(std::string_view name) const;  ///< present and not null
  bool is_null(std::string_view name) const;
  bool is_positive(std::string_view name) const;  ///< a number above 0
  size_t size() const { return values_.size(); }

  /// The value, or `fallback` where it is absent. Errors: kBadInput, one sentence, where it is of
  /// another kind or out of range.
  Result<uint64_t> count(std::string_view name, uint64_t fallback, uint64_t least,
                         uint64_t most) const;
  Result<double> share(std::string_view name, double fallback) const;  ///< 0 to 1
  bool flag(std::string_view name, bool fallback) const;               ///< "true" and 1 count too
  std::string text(std::string_view name) const;          ///< empty where it is not a string
  const ConfigList* list(std::string_view name) const;    ///< null where it is none
  const ConfigTexts* texts(std::string_view name) const;  ///< null where it is none, or empty

 private:
  const ConfigValue* find(std::string_view name) const;
  std::map<std::string, ConfigValue, std::less<>> values_;
};

inline constexpr size_t kMaxConfigBytes = 4u << 20;

/// JSON, or YAML whose MODEL_ARGS (or whose top) is a mapping. Errors: kBadInput with the byte
/// where the parser stopped.
Result<ConfigValues> parse_config(std::string_view text);
// One a syntax.
Result<ConfigValues> parse_json_config(std::string_view text);
Result<ConfigValues> parse_yaml_config(std::string_view text);

}  // namespace gpumemprof
