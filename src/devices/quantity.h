// A value, or why there is none. Nothing that reads the system ever answers 0 for "I do not know".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gpumemprof {

struct Quantity {
  std::optional<uint64_t> bytes;
  std::string absent_because;  ///< one clause; empty where there is a value

  static Quantity of(uint64_t bytes) { return {bytes, {}}; }
  static Quantity absent(std::string why) { return {std::nullopt, std::move(why)}; }
  explicit operator bool() const { return bytes.has_value(); }
};

/// Why a field of a GPU is absent: what this version can truthfully say of every GPU.
inline constexpr const char* kNoDeviceCollectors = "device collectors are not built yet";

}  // namespace gpumemprof
