#include "devices/proc_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>

namespace gpumemprof {
namespace {

constexpr size_t kMostBytes = 1 << 20;

}  // namespace

std::string read_proc_text(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  std::string text;
  char buffer[8192];
  for (ssize_t n; text.size() < kMostBytes && (n = read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(fd);
  return text;
}

std::optional<uint64_t> whole_number(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  uint64_t value = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), value);
  if (done.ec != std::errc{} || done.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> field_bytes(std::string_view text, std::string_view key) {
  for (size_t at = 0; at < text.size();) {
    std::string_view line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    line.remove_prefix(key.size() + 1);
    while (!line.empty() && (line[0] == ' ' || line[0] == '\t')) line.remove_prefix(1);
    const bool kilo = line.ends_with(" kB");
    if (kilo) line.remove_suffix(3);
    const auto value = whole_number(line);
    if (!value || (kilo && *value > UINT64_MAX / 1024)) return std::nullopt;
    return kilo ? *value * 1024 : *value;
  }
  return std::nullopt;
}

std::optional<uint64_t> line_number(std::string_view text, std::string_view key) {
  for (size_t at = 0; at < text.size();) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ')
      return whole_number(line.substr(key.size() + 1));
  }
  return std::nullopt;
}

}  // namespace gpumemprof
