#include "readers/traceback_line.h"

#include <algorithm>
#include <charconv>

#include "trace/own_code.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostText = 400;    // bytes of each part
constexpr size_t kMostPrefix = 512;  // of the message's own line: one line may have many messages

/// Without a rank's prefix, "[rank3]: ".
std::string_view without_rank(std::string_view line) {
  const size_t end = line.starts_with("[") ? line.substr(0, 16).find("]: ") : line.npos;
  return end == line.npos ? line : line.substr(end + 3);
}

std::string_view without_indent(std::string_view line) {
  const size_t begin = line.find_first_not_of(' ');
  return begin == line.npos ? std::string_view() : line.substr(begin);
}

/// Of `  File "train.py", line 7, in step`; without a file where it is another line.
TracebackLine frame_of(std::string_view line) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ", kIn = ", in ";
  const size_t end = line.find(kLine), in = line.find(kIn, end == line.npos ? 0 : end);
  if (!line.starts_with(kFile) || end == line.npos || in == line.npos) return {};
  uint64_t number = 0;
  const char* const last = line.data() + in;
  if (std::from_chars(line.data() + end + kLine.size(), last, number).ptr != last) return {};
  return {.file = std::string(line.substr(kFile.size(), end - kFile.size()).substr(0, kMostText)),
          .line = number,
          .function = std::string(line.substr(in + kIn.size(), kMostText)),
          .code = {}};
}

}  // namespace

TracebackLine traceback_line(std::string_view before) {
  const size_t own = before.size() - std::min(before.size(), kMostPrefix);
  size_t end = before.substr(own).rfind('\n');
  if (end != before.npos) end += own;
  std::string_view code;
  while (end != before.npos && end != 0) {
    const size_t begin = before.rfind('\n', end - 1);
    if (begin == before.npos) return {};  // perhaps a part of a line
    std::string_view line = before.substr(begin + 1, end - begin - 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = without_rank(line);
    if (!line.starts_with("  ")) return {};
    end = begin;
    TracebackLine frame = frame_of(line);
    if (frame.file.empty()) {
      code = without_indent(line);  // the uppermost of them: marks below it say where in it
      continue;
    }
    if (is_user_file(frame.file)) {
      frame.code = code.substr(0, kMostText);
      return frame;
    }
    code = {};
  }
  return {};
}

}  // namespace gpumemprof
