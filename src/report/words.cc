#include "report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/path_parts.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

struct Character {
  uint32_t code;
  size_t bytes;  // 0: not UTF-8
};

Character decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return {0, 0};
  uint32_t code = first & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {0, 0};
  return {code, length};
}

bool is_safe_to_show(uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  if (code == 0x2028 || code == 0x2029 || code == 0xfeff) return false;
  return !(code >= 0x202a && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069) &&
         code != 0x200e && code != 0x200f && code != 0x61c;
}

/// Calls `each` with every character's bytes and code; what is not UTF-8 comes as U+FFFD.
template <class Each>
void for_each_character(std::string_view text, Each each) {
  while (!text.empty()) {
    const Character c = decode(text);
    if (c.bytes == 0) {
      each(kReplacement, 0xfffdu);
      text.remove_prefix(1);
    } else {
      each(text.substr(0, c.bytes), c.code);
      text.remove_prefix(c.bytes);
    }
  }
}

size_t character_count(std::string_view text) {
  size_t count = 0;
  for (char c : text) count += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  return count;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_character(text, [&](std::string_view bytes, uint32_t code) {
    out += is_safe_to_show(code) ? bytes : kReplacement;
  });
  return out;
}

std::string settings_name(std::string_view settings) {
  return settings.empty() ? "PyTorch's defaults" : printable(settings);
}

void append_json_string(std::string* out, std::string_view text) {
  *out += '"';
  for_each_character(text, [&](std::string_view bytes, uint32_t code) {
    if (code == '"' || code == '\\') {
      *out += '\\';
      *out += bytes;
    } else if (code < 0x20 || code == 0x7f || code == 0x2028 || code == 0x2029) {
      *out += fmt::format("\\u{:04x}", code);
    } else {
      *out += bytes;
    }
  });
  *out += '"';
}

std::string format_count(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string module_words(const std::string& path) {
  return !path.empty() && path[0] >= '0' && path[0] <= '9' ? "module " + path : path;
}

std::string format_percent(uint64_t part, uint64_t whole) {
  if (whole == 0 || part == 0) return "0 %";
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return percent < 0.1 ? "< 0.1 %" : fmt::format("{:.1f} %", percent);
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string uncapitalized(std::string text) {
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

std::string format_plural(uint64_t count, std::string_view noun) {
  if (count == 1) return fmt::format("{} {}", format_count(count), noun);
  if (noun.ends_with("ry"))
    return fmt::format("{} {}ies", format_count(count), noun.substr(0, noun.size() - 1));
  return fmt::format("{} {}{}", format_count(count), noun, noun.ends_with('s') ? "es" : "s");
}

namespace {

/// "MiB" of "12.0 MiB", "%)" of "(37.9 %)": what stays on the number's line.
bool is_unit_at(std::string_view text, size_t blank) {
  constexpr std::array<std::string_view, 8> kUnits = {"%", "B", "KiB", "MiB", "GiB", "TiB", "s", "ms"};
  if (blank == 0 || blank >= text.size() || text[blank - 1] < '0' || text[blank - 1] > '9')
    return false;
  const std::string_view word = text.substr(blank + 1, text.find(' ', blank + 1) - blank - 1);
  const std::string_view unit = word.substr(0, word.find_first_of(".,;:)/"));
  return std::ranges::find(kUnits, unit) != kUnits.end();
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(' ', begin), text.size());
    while (is_unit_at(text, end)) end = std::min(text.find(' ', end + 1), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (lines.empty() || lines.back().size() + 1 + word.size() > width) {
      lines.emplace_back(word);
    } else {
      (lines.back() += ' ') += word;
    }
    begin = end + 1;
  }
  return lines;
}

size_t places_of(std::string_view text) {
  size_t places = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("\x1b["))
      i = std::min(text.find('m', i), text.size());
    else
      places += (static_cast<uint8_t>(text[i]) & 0xc0) != 0x80;
  }
  return places;
}

namespace {

/// Where the last column begins that has one half of the line or more to itself.
size_t hanging_part(std::string_view line, size_t columns) {
  size_t begin = 0;
  for (size_t i = 0; (i = line.find(' ', i)) != line.npos;) {
    const size_t end = line.find_first_not_of(' ', i);
    if (end == line.npos || places_of(line.substr(0, end)) > columns / 2) break;
    if (i == 0 || end - i > 1) begin = end;
    i = end;
  }
  return begin;
}

void fit_line(std::string_view line, size_t columns, std::string* out) {
  const size_t begin = places_of(line) <= columns ? line.size() : hanging_part(line, columns);
  const size_t hang = places_of(line.substr(0, begin));
  out->append(line.substr(0, begin));
  size_t at = hang;
  for (size_t i = begin; i < line.size();) {
    const size_t word = std::min(line.find_first_not_of(' ', i), line.size());
    size_t end = std::min(line.find(' ', word), line.size());
    while (is_unit_at(line, end)) end = std::min(line.find(' ', end + 1), line.size());
    const size_t width = places_of(line.substr(word, end - word));
    if (i != begin && at + (word - i) + width > columns)
      (*out += '\n').append(hang, ' '), at = hang;
    else
      out->append(word - i, ' '), at += word - i;
    out->append(line.substr(word, end - word)), at += width;
    i = end;
  }
}

}  // namespace

std::string fitted(std::string_view text, size_t columns) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    fit_line(text.substr(begin, end - begin), columns, &out);
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

std::string process_label(const Process& process, size_t width) {
  std::string_view words = process.command;
  const size_t slash = words.substr(0, words.find(' ')).rfind('/');
  if (slash != std::string_view::npos) words.remove_prefix(slash + 1);
  std::string command(words);
  std::ranges::replace(command, '\n', ' ');  // of python -c
  command = printable(command);
  if (character_count(command) > width) {
    size_t end = 0;
    for (size_t shown = 0; end < command.size(); ++end) {
      if ((static_cast<uint8_t>(command[end]) & 0xc0) != 0x80 && ++shown >= width) break;
    }
    command.resize(end);
    command += "…";
  }
  if (process.pid == 0) {  // absent in files of some programs
    return process.host.empty() ? "a process"
                                : fmt::format("a process on {}", printable(process.host));
  }
  // The processes of a job have one command.
  if (process.rank) return fmt::format("rank {} (process {})", *process.rank, process.pid);
  return command.empty() ? fmt::format("process {}", process.pid)
                         : fmt::format("process {} ({})", process.pid, command);
}

std::string short_path(std::string_view path, std::string_view folder) {
  if (std::string cell = cell_name(path); !cell.empty()) return cell;
  if (!folder.empty() && folder.back() == '/') folder.remove_suffix(1);
  if (!folder.empty() && path.size() > folder.size() + 1 && path.starts_with(folder) &&
      path[folder.size()] == '/') {
    path.remove_prefix(folder.size() + 1);
  }
  for (std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = find_in_path(path, packages);
    if (at == std::string_view::npos) continue;
    return "…" + std::string(path.substr(at + packages.size() - 1));
  }
  constexpr size_t kLong = 48;
  if (path.size() <= kLong) return std::string(path);
  const size_t slash = path.find_first_of("/\\", path.size() - kLong + 4);
  if (slash == std::string_view::npos) {
    const size_t last = path.find_last_of("/\\");
    return last == std::string_view::npos ? std::string(path)
                                          : "…" + std::string(path.substr(last));
  }
  return "…" + std::string(path.substr(slash));
}

const Device& device_at(const Tables& tables, size_t index) {
  static const Device kUnknown{.process = UINT32_MAX, .type = -1};
  return index < tables.devices.size() ? tables.devices[index] : kUnknown;
}

const Process& process_at(const Tables& tables, size_t index) {
  static const Process kUnknown;
  return index < tables.processes.size() ? tables.processes[index] : kUnknown;
}

}  // namespace gpumemprof
