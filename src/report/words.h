// Words and numbers as all reports write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/tables.h"

namespace gpumemprof {

/// Safe to print on a terminal: control characters, escape sequences, characters that turn the
/// direction of writing, and bytes that are not UTF-8 become U+FFFD. A file may be called anything.
std::string printable(std::string_view text);
/// Of an allocator, as the text of PYTORCH_CUDA_ALLOC_CONF; empty: PyTorch's defaults.
std::string settings_name(std::string_view settings);

/// Appends `text` as a quoted JSON string; bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string* out, std::string_view text);

/// What bucket_bytes() are.
inline constexpr const char* kBuckets = "DistributedDataParallel's gradient buckets";

/// "48,120".
std::string format_count(uint64_t count);
/// "module 2" of a Sequential's "2", which alone would be read as a count; other paths as they are.
std::string module_words(const std::string& path);
/// "43.7 %"; "0 %" of nothing.
std::string format_percent(uint64_t part, uint64_t whole);
/// "1 block", "12 blocks".
std::string format_plural(uint64_t count, std::string_view noun);

/// With a capital first letter, of ASCII.
std::string capitalized(std::string text);

/// With a small first letter, of ASCII.
std::string uncapitalized(std::string text);

/// Lines of at most `width` bytes, broken at blanks; a word that is longer has a line of its own.
std::vector<std::string> wrapped(std::string_view text, size_t width);

/// How many places a terminal gives a text: characters, not bytes; colours take none.
size_t places_of(std::string_view text);

/// Lines of at most `columns`, as far as words are shorter: what is too long goes on below the last
/// column of its line that begins in the line's first half. Colours take no room.
std::string fitted(std::string_view text, size_t columns);

/// "rank 3 (process 12)", else "process 12 (python train.py)", without folders, cut at `width`.
std::string process_label(const Process& process, size_t width = 48);

/// A path relative to `folder` where it lies below it; of an installed package
/// "…/torch/nn/functional.py"; of a notebook's cell "<cell 271823389>", without the kernel's PID;
/// else, where it is long, its last parts after "…/".
std::string short_path(std::string_view path, std::string_view folder);

/// A stand-in for ids that a damaged file made up.
const Device& device_at(const Tables& tables, size_t index);
const Process& process_at(const Tables& tables, size_t index);

}  // namespace gpumemprof
