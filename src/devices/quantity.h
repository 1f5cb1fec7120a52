// A value, or why there is none. Nothing that reads the system ever answers 0 for "I do not know".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace gpumemprof {

struct Quantity {
  std::optional<uint64_t> bytes;
  std::string absent_because;  ///< one clause; empty where there is a value

  static Quantity of(uint64_t bytes) { return {bytes, {}}; }
  static Quantity absent(std::string why) { return {std::nullopt, std::move(why)}; }
  explicit operator bool() const { return bytes.has_value(); }
};

/// The same for what is not a number of bytes; the unit is in the name of the field.
template <class T>
struct Known {
  std::optional<T> value;
  std::string absent_because;

  static Known of(T value) { return {std::move(value), {}}; }
  static Known absent(std::string why) { return {std::nullopt, std::move(why)}; }
  explicit operator bool() const { return value.has_value(); }
};

}  // namespace gpumemprof
