#include "estimate/config_values.h"

#include <cmath>

namespace gpumemprof {
namespace {

std::string as_name(std::string_view name) {
  while (!name.empty() && name.front() == '-') name.remove_prefix(1);
  std::string out(name);
  for (char& c : out) {
    if (c == '-') c = '_';
  }
  return out;
}

}  // namespace

void ConfigValues::set(std::string_view name, ConfigValue value) {
  values_[as_name(name)] = std::move(value);
}

const ConfigValue* ConfigValues::find(std::string_view name) const {
  const auto it = values_.find(name);
  return it == values_.end() || std::holds_alternative<std::monostate>(it->second) ? nullptr
                                                                                   : &it->second;
}

bool ConfigValues::is_null(std::string_view name) const {
  const auto it = values_.find(name);
  return it != values_.end() && std::holds_alternative<std::monostate>(it->second);
}

bool ConfigValues::is_positive(std::string_view name) const {
  const ConfigValue* value = find(name);
  const double* number = value == nullptr ? nullptr : std::get_if<double>(value);
  return number != nullptr && *number > 0;
}

bool ConfigValues::has(std::string_view name) const { return find(name) != nullptr; }

Result<uint64_t> ConfigValues::count(std::string_view name, uint64_t fallback, uint64_t least,
                                     uint64_t most) const {
  const ConfigValue* value = find(name);
  if (!value) return fallback;
  const double* number = std::get_if<double>(value);
  if (!number || *number != std::floor(*number)) {
    return fail(ErrorCode::kBadInput, std::string(name) + " is not a whole number");
  }
  if (!(*number >= static_cast<double>(least) && *number <= static_cast<double>(most))) {
    return fail(ErrorCode::kBadInput, std::string(name) + " is out of range: " +
                                          std::to_string(least) + " to " + std::to_string(most));
  }
  return static_cast<uint64_t>(*number);
}

Result<double> ConfigValues::share(std::string_view name, double fallback) const {
  const ConfigValue* value = find(name);
  if (!value) return fallback;
  const double* number = std::get_if<double>(value);
  if (!number || !(*number >= 0 && *number <= 1)) {
    return fail(ErrorCode::kBadInput, std::string(name) + " is not a number from 0 to 1");
  }
  return *number;
}

bool ConfigValues::flag(std::string_view name, bool fallback) const {
  const ConfigValue* value = find(name);
  if (!value) return fallback;
  if (const bool* flag = std::get_if<bool>(value)) return *flag;
  if (const double* number = std::get_if<double>(value)) return *number != 0;
  if (const std::string* text = std::get_if<std::string>(value))
    return *text == "true" || *text == "True";
  return fallback;
}

std::string ConfigValues::text(std::string_view name) const {
  const ConfigValue* value = find(name);
  const std::string* text = value ? std::get_if<std::string>(value) : nullptr;
  return text ? *text : std::string();
}

const ConfigList* ConfigValues::list(std::string_view name) const {
  const ConfigValue* value = find(name);
  return value ? std::get_if<ConfigList>(value) : nullptr;
}

const ConfigTexts* ConfigValues::texts(std::string_view name) const {
  const ConfigValue* value = find(name);
  return value ? std::get_if<ConfigTexts>(value) : nullptr;
}

Result<ConfigValues> parse_config(std::string_view text) {
  if (text.size() > kMaxConfigBytes)
    return fail(ErrorCode::kBadInput, "is too large for a configuration");
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return fail_at(0, "is empty");
  return text[first] == '{' ? parse_json_config(text) : parse_yaml_config(text);
}

}  // namespace gpumemprof
