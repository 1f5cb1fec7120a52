#include "readers/traceback_line.h"

#include <algorithm>

namespace gpumemprof {
namespace {

constexpr size_t kMostRaisedFrames = 256;

std::string_view next_line(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

/// "FILE:LINE FUNCTION" of `  File "FILE", line LINE, in FUNCTION`; empty of any other line.
std::string frame_in(std::string_view line) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ", kFunction = ", in ";
  if (!line.starts_with(kFile)) return "";
  line.remove_prefix(kFile.size());
  const size_t file_end = line.rfind(kLine);
  if (file_end == line.npos) return "";
  const std::string_view rest = line.substr(file_end + kLine.size());
  const size_t number_end = rest.find(kFunction);
  if (number_end == rest.npos) return "";
  return std::string(line.substr(0, file_end)) + ':' + std::string(rest.substr(0, number_end)) +
         ' ' + std::string(rest.substr(number_end + kFunction.size()));
}

}  // namespace

std::optional<RaisedAgain> raised_again(std::string_view message) {
  constexpr std::string_view kIn = " in ";
  std::string_view first = next_line(&message);
  if (!first.starts_with("Caught ") || !first.ends_with('.')) return std::nullopt;
  const size_t in = first.find(kIn);
  if (in == first.npos || !next_line(&message).starts_with("Original Traceback"))
    return std::nullopt;
  RaisedAgain out;
  out.where = first.substr(in + kIn.size(), first.size() - in - kIn.size() - 1);
  while (!message.empty()) {
    const std::string_view line = next_line(&message);
    if (std::string frame = frame_in(line); !frame.empty()) {
      // The innermost come last.
      if (out.stack.size() == kMostRaisedFrames) out.stack.erase(out.stack.begin());
      out.stack.push_back(std::move(frame));
    } else if (!line.empty() && line[0] != ' ') {
      out.message = line;
    }
  }
  if (out.stack.empty() || out.message.empty()) return std::nullopt;
  std::ranges::reverse(out.stack);
  return out;
}

}  // namespace gpumemprof
