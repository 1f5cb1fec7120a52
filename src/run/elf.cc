#include "run/elf.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace gpumemprof {
namespace {

constexpr size_t kMaxProgramHeaders = 512;
constexpr size_t kMaxDynamicEntries = 4096;
constexpr size_t kMaxStringTableBytes = 16u << 20;
constexpr size_t kMaxPathBytes = 4096;
constexpr size_t kMaxSections = 4096;
constexpr size_t kMaxSymbols = 1u << 20;
constexpr size_t kMaxRelocations = 1u << 20;

// An instrumented program refers to its runtime's entry point, whether the runtime is shared
// (undefined) or linked in (exported, so that libraries find it).
constexpr std::array<std::string_view, 5> kSanitizerSymbols = {
    "__asan_init", "__hwasan_init", "__lsan_init", "__msan_init", "__tsan_init"};

/// Reads exactly `size` bytes at `offset`; false where the file is shorter or refuses.
bool read_at(int fd, uint64_t offset, void* out, size_t size) {
  if (offset > INT64_MAX - size) return false;
  auto* bytes = static_cast<char*>(out);
  while (size > 0) {
    ssize_t n = pread(fd, bytes, size, static_cast<off_t>(offset));
    if (n <= 0) return false;
    bytes += n, offset += static_cast<uint64_t>(n), size -= static_cast<size_t>(n);
  }
  return true;
}

std::string text_at(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return {};
  std::string_view rest = table.substr(offset);
  return std::string(rest.substr(0, std::min(rest.find('\0'), kMaxPathBytes)));
}

/// File offset of a virtual address; nothing where no segment holds it.
std::optional<uint64_t> file_offset(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) {
      uint64_t delta = address - s.p_vaddr;
      if (s.p_offset > UINT64_MAX - delta) return std::nullopt;
      return s.p_offset + delta;
    }
  }
  return std::nullopt;
}

bool read_dynamic(int fd, const Elf64_Phdr& dynamic, const std::vector<Elf64_Phdr>& segments,
                  ElfFacts* facts) {
  size_t count = std::min<uint64_t>(dynamic.p_filesz / sizeof(Elf64_Dyn), kMaxDynamicEntries);
  std::vector<Elf64_Dyn> entries(count);
  if (!read_at(fd, dynamic.p_offset, entries.data(), count * sizeof(Elf64_Dyn))) return false;
  uint64_t table_address = 0, table_bytes = 0;
  for (const Elf64_Dyn& e : entries) {
    if (e.d_tag == DT_NULL) break;
    if (e.d_tag == DT_STRTAB) table_address = e.d_un.d_ptr;
    if (e.d_tag == DT_STRSZ) table_bytes = e.d_un.d_val;
  }
  if (table_bytes == 0) return true;  // a static-pie program may have no strings
  auto offset = file_offset(segments, table_address);
  if (!offset) return false;
  std::string table(std::min<uint64_t>(table_bytes, kMaxStringTableBytes), '\0');
  if (!read_at(fd, *offset, table.data(), table.size())) return false;
  for (const Elf64_Dyn& e : entries) {
    if (e.d_tag == DT_NULL) break;
    if (e.d_tag == DT_NEEDED) facts->needed.push_back(text_at(table, e.d_un.d_val));
    if (e.d_tag == DT_SONAME) facts->soname = text_at(table, e.d_un.d_val);
  }
  // Names in the dynamic string table are those of .dynsym; looking them up there needs neither
  // section headers (may be stripped) nor a hash table (two kinds).
  for (std::string_view symbol : kSanitizerSymbols) {
    std::string framed = '\0' + std::string(symbol) + '\0';
    if (table.find(framed) != std::string::npos) facts->sanitizer_symbols.emplace_back(symbol);
  }
  return true;
}

bool read_segments(int fd, const Elf64_Ehdr& header, ElfFacts* facts) {
  if (header.e_phnum == 0) return true;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxProgramHeaders) return false;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!read_at(fd, header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr)))
    return false;
  bool whole = true;
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type == PT_INTERP) {
      std::string path(std::min<uint64_t>(s.p_filesz, kMaxPathBytes), '\0');
      if (read_at(fd, s.p_offset, path.data(), path.size())) {
        facts->interpreter = text_at(path, 0);
      } else {
        whole = false;
      }
    } else if (s.p_type == PT_DYNAMIC) {
      whole = read_dynamic(fd, s, segments, facts) && whole;
    }
  }
  return whole;
}

/// Empty where the file has none that can be used.
std::vector<Elf64_Shdr> read_sections(int fd) {
  Elf64_Ehdr header = {};
  if (!read_at(fd, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum > kMaxSections) {
    return {};
  }
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!read_at(fd, header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr)))
    return {};
  return sections;
}

/// The section as a table of at most `most` entries; empty where it lies outside the file.
template <class Entry>
std::vector<Entry> read_table(int fd, const Elf64_Shdr& section, size_t most) {
  std::vector<Entry> table(std::min<uint64_t>(section.sh_size / sizeof(Entry), most));
  if (!read_at(fd, section.sh_offset, table.data(), table.size() * sizeof(Entry))) return {};
  return table;
}

struct Symbols {
  std::vector<Elf64_Sym> entries;
  std::string names;
};

Symbols read_symbols(int fd, const std::vector<Elf64_Shdr>& sections, const Elf64_Shdr& section) {
  if (section.sh_link >= sections.size()) return {};
  const Elf64_Shdr& strings = sections[section.sh_link];
  Symbols symbols;
  symbols.names.resize(std::min<uint64_t>(strings.sh_size, kMaxStringTableBytes));
  if (!read_at(fd, strings.sh_offset, symbols.names.data(), symbols.names.size())) return {};
  symbols.entries = read_table<Elf64_Sym>(fd, section, kMaxSymbols);
  return symbols;
}

}  // namespace

uint16_t own_elf_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#else
#error "no probe for this machine"
#endif
}

std::vector<std::string> read_elf_exports(int fd, std::string_view beginning) {
  std::vector<std::string> names;
  const std::vector<Elf64_Shdr> sections = read_sections(fd);
  for (const Elf64_Shdr& s : sections) {
    if (s.sh_type != SHT_DYNSYM) continue;
    const Symbols symbols = read_symbols(fd, sections, s);
    for (const Elf64_Sym& symbol : symbols.entries) {
      if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
      std::string name = text_at(symbols.names, symbol.st_name);
      if (name.starts_with(beginning)) names.push_back(std::move(name));
    }
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

bool elf_calls_by_name(int fd, std::string_view function) {
  const std::vector<Elf64_Shdr> sections = read_sections(fd);
  for (const Elf64_Shdr& s : sections) {
    if (s.sh_type != SHT_RELA || s.sh_link >= sections.size() ||
        sections[s.sh_link].sh_type != SHT_DYNSYM) {
      continue;
    }
    const Symbols symbols = read_symbols(fd, sections, sections[s.sh_link]);
    for (const Elf64_Rela& one : read_table<Elf64_Rela>(fd, s, kMaxRelocations)) {
      const uint64_t symbol = ELF64_R_SYM(one.r_info);
      if (symbol == 0 || symbol >= symbols.entries.size()) continue;
      if (text_at(symbols.names, symbols.entries[symbol].st_name) == function) return true;
    }
  }
  return false;
}

std::optional<ElfFacts> read_elf_facts(int fd) {
  unsigned char ident[EI_NIDENT] = {};
  if (!read_at(fd, 0, ident, sizeof ident) || memcmp(ident, ELFMAG, SELFMAG) != 0)
    return std::nullopt;
  ElfFacts facts;
  facts.is_64_bit = ident[EI_CLASS] == ELFCLASS64;
  Elf64_Ehdr header = {};
  // e_machine is at the same place in both classes, in the file's own byte order; a big-endian
  // number read as little-endian is a machine that does not exist, hence foreign.
  if (!read_at(fd, offsetof(Elf64_Ehdr, e_machine), &facts.machine, sizeof facts.machine)) {
    facts.damaged = true;
    return facts;
  }
  if (!facts.is_64_bit || ident[EI_DATA] != ELFDATA2LSB) return facts;
  facts.damaged = !read_at(fd, 0, &header, sizeof header) || !read_segments(fd, header, &facts);
  return facts;
}

}  // namespace gpumemprof
