// Sizes as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace gpumemprof {

inline constexpr uint64_t kMiB = 1ull << 20;

/// Reads "24GiB", "24G" and "24g" (binary), "24GB" (decimal, as SI says), "1.5 GiB", or plain
/// bytes. Units go from B to EiB; their case does not matter. A fraction needs a unit and is
/// rounded down to whole bytes. Errors: kUsage with one sentence where the text is no size or does
/// not fit 64 bits.
Result<uint64_t> parse_size(std::string_view text);

/// The same of a device's memory. No device has less than 1 MiB: such a number without a unit is
/// refused, since the unit was forgotten, and so is 0.
Result<uint64_t> parse_capacity(std::string_view text);

/// "0 B", "1023 B", "1.00 KiB", "24.0 GiB": three significant digits, binary units.
std::string format_bytes(uint64_t size_bytes);
/// The same rounded up, for what is needed: with the printed size it is enough.
std::string format_bytes_up(uint64_t size_bytes);

}  // namespace gpumemprof
