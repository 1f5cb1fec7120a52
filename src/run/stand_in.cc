#include "run/stand_in.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

#include "run/elf.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kSpare = "gpumemprof_spare_";  // src/driver_proxy/CMakeLists.txt

/// `count` entries at `offset` of a file; empty where they are not within it.
template <class Entry>
std::span<Entry> table_at(std::string& file, uint64_t offset, uint64_t count) {
  if (offset > file.size() || count > (file.size() - offset) / sizeof(Entry) ||
      offset % alignof(Entry) != 0) {
    return {};
  }
  return {reinterpret_cast<Entry*>(file.data() + offset), count};
}

template <class Entry>
std::span<Entry> table_of(std::string& file, const Elf64_Shdr& section) {
  return table_at<Entry>(file, section.sh_offset, section.sh_size / sizeof(Entry));
}

/// As the System V ABI has it.
uint32_t hash_of(const char* name) {
  uint32_t hash = 0;
  for (; *name; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    hash = (hash ^ (hash & 0xf0000000) >> 24) & 0x0fffffff;
  }
  return hash;
}

/// Fills the table anew by which the loader finds symbols, for their names as they are now. The
/// newer kind of table (DT_GNU_HASH) wants them sorted: its entry gets a tag that loaders ignore,
/// so that they take this one.
bool hash_anew(std::string& file) {
  const auto header = table_at<Elf64_Ehdr>(file, 0, 1);
  if (header.empty()) return false;
  const auto sections = table_at<Elf64_Shdr>(file, header[0].e_shoff, header[0].e_shnum);
  bool is_done = false;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_DYNAMIC) {
      for (Elf64_Dyn& entry : table_of<Elf64_Dyn>(file, section))
        if (entry.d_tag == DT_GNU_HASH) entry.d_tag = DT_CHECKSUM;
    }
    if (section.sh_type != SHT_HASH || section.sh_link >= sections.size()) continue;
    const auto words = table_of<uint32_t>(file, section);
    const auto symbols = table_of<Elf64_Sym>(file, sections[section.sh_link]);
    if (words.size() < 2 || sections[section.sh_link].sh_link >= sections.size()) return false;
    const auto names = table_of<char>(file, sections[sections[section.sh_link].sh_link]);
    const uint64_t heads = words[0], count = words[1];
    if (heads == 0 || words.size() != 2 + heads + count || symbols.size() != count) return false;
    const auto chains = words.subspan(2 + heads);
    std::ranges::fill(words.subspan(2), 0);
    for (uint32_t i = 1; i < count; ++i) {
      if (symbols[i].st_name >= names.size()) return false;
      uint32_t& head = words[2 + hash_of(&names[symbols[i].st_name]) % heads];
      chains[i] = head, head = i;
    }
    is_done = true;
  }
  return is_done;
}

/// In a process of its own, as nothing of it is to come into this one.
bool has_all(const std::string& library, const std::vector<std::string>& names) {
  const pid_t pid = fork();
  if (pid == 0) {
    void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto is_in = [&](const std::string& name) { return dlsym(opened, name.c_str()); };
    _exit(opened && std::ranges::all_of(names, is_in) ? 0 : 1);
  }
  int status = -1;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::vector<std::string> spares_of(const std::string& library) {
  const int fd = open(library.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::vector<std::string> names = read_elf_exports(fd, kSpare);
  close(fd);
  return names;
}

}  // namespace

Status write_stand_in_with(const std::string& stand_in, const std::vector<std::string>& names,
                           const std::string& path) {
  const std::vector<std::string> spares = spares_of(stand_in);
  if (names.size() > spares.size()) {
    return fail(ErrorCode::kUnsupported,
                "exports " + std::to_string(names.size()) +
                    " functions unknown to this version (" + names[0] +
                    ", …), which has room for " + std::to_string(spares.size()));
  }
  std::ifstream in(stand_in, std::ios::binary);
  std::string file{std::istreambuf_iterator<char>(in), {}};
  for (size_t i = 0; i < names.size(); ++i) {
    std::string name = names[i];
    if (name.size() > spares[i].size())
      return fail(ErrorCode::kUnsupported, "exports a function of too long a name: " + name);
    name.resize(spares[i].size());
    // Each is in the table of the loader's names, in that of the function's own (kNames), and where
    // the library was not stripped in that of a debugger's.
    for (size_t at = 0; (at = file.find(spares[i], at)) != file.npos; at += name.size())
      file.replace(at, name.size(), name);
  }
  const bool is_hashed = hash_anew(file);
  std::ofstream out(path, std::ios::binary);
  out.write(file.data(), static_cast<std::streamsize>(file.size()));
  out.close();
  if (out && is_hashed && has_all(path, names)) return {};
  return fail(ErrorCode::kSystem, "exports functions unknown to this version (" + names[0] +
                                      ", …), and a library that has them cannot be " +
                                      (out ? "loaded from " : "written to ") + path);
}

}  // namespace gpumemprof
