#include "recording/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>

namespace gpumemprof {
namespace {

constexpr uint64_t kMostSymbols = 16u << 20;
constexpr size_t kMostSections = 4096;
constexpr size_t kLongestName = 4096;

bool changed_since(const std::string& path, uint64_t since_ns) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return true;
  // The change time, not the modification time: package managers set the latter to the build's
  // date.
  return uint64_t(st.st_ctim.tv_sec) * 1'000'000'000 + uint64_t(st.st_ctim.tv_nsec) > since_ns;
}

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string out = status == 0 && text ? text : name;
  free(text);
  return out;
}

template <class T>
bool read_array(File& file, uint64_t offset, size_t count, std::vector<T>* out) {
  out->resize(count);
  auto got = file.read_at(offset, out->data(), count * sizeof(T));
  return got && *got == count * sizeof(T);
}

}  // namespace

std::unique_ptr<SymbolTable> SymbolTable::open(const std::string& path,
                                               uint64_t unchanged_since_ns) {
  if (!path.starts_with('/') || changed_since(path, unchanged_since_ns)) return nullptr;
  auto file = open_file(path, FileMode::kRead);
  if (!file) return nullptr;
  auto table = std::make_unique<SymbolTable>();
  table->file_ = std::move(*file);
  return table->read_sections() ? std::move(table) : nullptr;
}

bool SymbolTable::read_sections() {
  Elf64_Ehdr elf;
  auto got = file_->read_at(0, &elf, sizeof(elf));
  if (!got || *got != sizeof(elf) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_shentsize != sizeof(Elf64_Shdr)) return false;
  if (elf.e_shnum == 0 || elf.e_shnum > kMostSections) return false;
  std::vector<Elf64_Shdr> sections;
  if (!read_array(*file_, elf.e_shoff, elf.e_shnum, &sections)) return false;
  for (uint32_t wanted : {SHT_SYMTAB, SHT_DYNSYM}) {
    for (const Elf64_Shdr& s : sections) {
      if (s.sh_type != wanted || s.sh_link >= sections.size()) continue;
      const Elf64_Shdr& names = sections[s.sh_link];
      if (read_symbols(s.sh_offset, s.sh_size, names.sh_offset, names.sh_size)) return true;
    }
  }
  return false;
}

bool SymbolTable::read_symbols(uint64_t offset, uint64_t size, uint64_t names,
                               uint64_t names_size) {
  uint64_t count = size / sizeof(Elf64_Sym);
  auto bytes = file_->size();
  if (!bytes || count > kMostSymbols || offset > *bytes || size > *bytes - offset) return false;
  std::vector<Elf64_Sym> block;
  for (uint64_t at = 0; at < count; at += block.size()) {
    if (!read_array(*file_, offset + at * sizeof(Elf64_Sym), std::min<uint64_t>(count - at, 8192),
                    &block)) {
      return false;
    }
    for (const Elf64_Sym& s : block) {
      int type = ELF64_ST_TYPE(s.st_info);
      if ((type != STT_FUNC && type != STT_GNU_IFUNC) || s.st_shndx == SHN_UNDEF || s.st_size == 0)
        continue;
      functions_.push_back({s.st_value, s.st_size, s.st_name});
    }
  }
  std::ranges::sort(functions_, {}, &Function::address);
  names_offset_ = names, names_size_ = names_size;
  return !functions_.empty();
}

std::string SymbolTable::name(uint64_t address) {
  auto after = std::upper_bound(functions_.begin(), functions_.end(), address,
                                [](uint64_t a, const Function& f) { return a < f.address; });
  if (after == functions_.begin()) return {};
  const Function& function = *--after;
  if (address - function.address >= function.size || function.name >= names_size_) return {};
  char text[kLongestName + 1] = {};
  size_t most = std::min<uint64_t>(kLongestName, names_size_ - function.name);
  auto got = file_->read_at(names_offset_ + function.name, text, most);
  if (!got || memchr(text, 0, *got) == nullptr) return {};
  return demangled(text);
}

}  // namespace gpumemprof
