#include "report/describe/source_text.h"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "report/describe/facts.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostShownBytes = 72;

/// Empty where the file cannot be taken for what ran.
std::string unchanged_text(const std::string& file, int64_t since_us) {
  struct stat is;
  if (!file.ends_with(".py") || !file.starts_with('/') || stat(file.c_str(), &is) != 0 ||
      is.st_mtim.tv_sec * 1'000'000 + is.st_mtim.tv_nsec / 1000 > since_us)
    return {};
  return read_small_file(file, SourceText::kMostSourceBytes).value_or("");
}

/// Never in the middle of a character.
std::string shortened(std::string_view text) {
  if (text.size() <= kMostShownBytes) return std::string(text);
  size_t end = kMostShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace

const std::vector<std::string>& SourceText::lines_of(const std::string& file) {
  const auto [at, added] = files_.try_emplace(file);
  if (!added) return at->second;
  const std::string text = unchanged_text(file, unchanged_since_us_);
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    at->second.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return at->second;
}

std::string SourceText::line(const std::string& file, uint32_t number) {
  const std::vector<std::string>& lines = lines_of(file);
  if (number == 0 || number > lines.size()) return {};
  const std::string_view text = lines[number - 1];
  const size_t first = text.find_first_not_of(" \t\r\f");
  if (first == std::string_view::npos) return {};
  const size_t last = text.find_last_not_of(" \t\r\f");
  return shortened(text.substr(first, last - first + 1));
}

std::vector<std::string> SourceText::lines(const std::string& file, uint32_t first,
                                           uint32_t count) {
  const std::vector<std::string>& all = lines_of(file);
  if (first == 0 || first > all.size()) return {};
  const size_t end = std::min<size_t>(all.size(), size_t{first} - 1 + count);
  return {all.begin() + (first - 1), all.begin() + static_cast<ptrdiff_t>(end)};
}

std::shared_ptr<SourceText> source_text_of(const Process& process) {
  const WallTime start = wall_time(process, process.first_time_ns);
  utsname here;
  if (!start.known || uname(&here) != 0 || process.host != here.nodename) return nullptr;
  return std::make_shared<SourceText>(start.time_us);
}

LineText line_text() {
  auto sources = std::make_shared<std::map<const Process*, std::shared_ptr<SourceText>>>();
  return [sources](const Process& process, const std::string& file, uint32_t line) {
    const auto [source, is_first] = sources->try_emplace(&process);
    if (is_first) source->second = source_text_of(process);
    return source->second ? source->second->line(file, line) : std::string();
  };
}

}  // namespace gpumemprof
