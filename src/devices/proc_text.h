// Reading the small files of /proc and /sys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpumemprof {

/// The file's text, at most 1 MiB; empty where it cannot be read. These files say that they are
/// empty, so they are read to their end.
std::string read_proc_text(const std::string& path);

/// The number behind "KEY:" at the beginning of a line, in bytes: "kB" is 1,024 as the kernel means
/// it. Empty where there is no such line.
std::optional<uint64_t> field_bytes(std::string_view text, std::string_view key);

/// The number of the line "KEY NUMBER", as memory.stat and vmstat have them. Empty where there is no
/// such line.
std::optional<uint64_t> line_number(std::string_view text, std::string_view key);

/// A text that is one number, such as memory.max; empty for "max" and for what is no number.
std::optional<uint64_t> whole_number(std::string_view text);

}  // namespace gpumemprof
