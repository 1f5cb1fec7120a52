#include "readers/traceback_line.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "trace/own_code.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostText = 400;    // bytes of each part
constexpr size_t kMostPrefix = 512;  // of the message's own line: one line may have many messages

/// Bytes that a logger or launcher puts before each line, a time or "[rank3]: ". `own`: the line of
/// the message up to it, which without them begins with the error's name: "RuntimeError: ".
size_t prefix_of(std::string_view own) {
  constexpr std::string_view kNames[] = {"Error: ", "Exception: "};
  size_t name = own.npos;
  for (const std::string_view end : kNames) name = std::min(name, own.find(end));
  if (name == own.npos) return 0;
  const auto is_of_name = [](char c) { return std::isalnum(uint8_t(c)) || c == '_' || c == '.'; };
  while (name > 0 && is_of_name(own[name - 1])) --name;
  return name;
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
  if (end == before.npos) return {};
  end += own;
  const size_t prefix = prefix_of(before.substr(end + 1));
  std::string_view code;
  while (end != 0) {
    const size_t begin = before.rfind('\n', end - 1);
    if (begin == before.npos) return {};  // perhaps a part of a line
    std::string_view line = before.substr(begin + 1, end - begin - 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = line.substr(std::min(prefix, line.size()));
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
