#include <fstream>
#include <map>
#include <string_view>

#include "devices/proc_text.h"
#include "devices/process_memory.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostMappedFiles = 10'000;
constexpr const char* kNotAllowed = "no permission to read the pages of this process";

struct MappedFile {
  uint64_t copied_bytes = 0;
  bool has_code = false;  ///< relocations of libraries are copies, too, and nobody's weights
};

/// "7f00-7f10 rw-p 00000000 08:01 99    /a file": its mode and path; no path for what is no file.
struct MappingHead {
  std::string_view mode, path;
};

std::optional<MappingHead> mapping_head(std::string_view line) {
  const size_t dash = line.find('-'), space = line.find(' ');
  if (dash == line.npos || space == line.npos || dash > space || space + 5 > line.size())
    return std::nullopt;
  MappingHead out{line.substr(space + 1, 4), {}};
  if (const size_t slash = line.find('/', space); slash != line.npos) out.path = line.substr(slash);
  return out;
}

/// Line by line: of a program with thousands of mappings the text is megabytes.
void add_copied_files(const std::string& path, ProcessPages* out) {
  std::ifstream file(path);
  std::map<std::string, MappedFile, std::less<>> files;
  MappedFile* now = nullptr;
  bool is_any = false;
  for (std::string line; std::getline(file, line);) {
    if (const auto head = mapping_head(line)) {
      is_any = true, now = nullptr;
      // Of shared memory everything is a copy of nothing.
      if (head->path.empty() || head->mode[3] != 'p' || head->path.starts_with("/dev/")) continue;
      auto known = files.find(head->path);
      if (known == files.end() && files.size() < kMostMappedFiles)
        known = files.emplace(head->path, MappedFile{}).first;
      if (known == files.end()) continue;
      now = &known->second;
      now->has_code |= head->mode[2] == 'x';
    } else if (now != nullptr && line.starts_with("Anonymous:")) {
      now->copied_bytes += field_bytes(line, "Anonymous").value_or(0);
    }
  }
  if (!is_any) {
    out->copied_file = Quantity::absent(kNotAllowed);
    return;
  }
  uint64_t sum = 0, most = 0;
  for (const auto& [name, one] : files) {
    if (one.has_code) continue;
    sum += one.copied_bytes;
    if (one.copied_bytes > most) most = one.copied_bytes, out->most_copied = name;
  }
  out->copied_file = Quantity::of(sum);
}

}  // namespace

ProcessPages read_process_pages(const std::string& proc, int pid) {
  const std::string folder = proc + '/' + std::to_string(pid);
  const std::string text = read_proc_text(folder + "/smaps_rollup");
  const auto rollup = [&](const char* key) {
    const auto bytes = field_bytes(text, key);
    return bytes ? Quantity::of(*bytes)
                 : Quantity::absent(text.empty() ? kNotAllowed : "the kernel does not report it");
  };
  ProcessPages out{.proportional = rollup("Pss"),
                   .proportional_anonymous = rollup("Pss_Anon"),
                   .proportional_file = rollup("Pss_File"),
                   .proportional_shared = rollup("Pss_Shmem"),
                   .private_clean = rollup("Private_Clean"),
                   .private_dirty = rollup("Private_Dirty"),
                   .locked = rollup("Locked"),
                   .copied_file = {},
                   .most_copied = {}};
  add_copied_files(folder + "/smaps", &out);
  return out;
}

}  // namespace gpumemprof
