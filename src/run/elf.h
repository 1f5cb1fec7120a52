// What the header of an ELF file says about how it will be loaded. Enough to know, before a program
// starts, whether a preloaded library can be in it; nothing of it is executed or mapped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpumemprof {

struct ElfFacts {
  bool is_64_bit = false;
  uint16_t machine = 0;     ///< EM_X86_64, EM_AARCH64, …
  bool damaged = false;     ///< a table lies outside the file; what follows is then incomplete
  std::string interpreter;  ///< PT_INTERP; empty for static programs and libraries
  std::string soname;       ///< DT_SONAME
  std::vector<std::string> needed;             ///< DT_NEEDED
  std::vector<std::string> sanitizer_symbols;  ///< of the sanitizers' entry points, those it names
};

/// Reads the facts of an open file. Nothing where it is no ELF file.
/// The file is hostile: every offset and count is checked and bounded, at most some MiB are read.
std::optional<ElfFacts> read_elf_facts(int fd);

/// The functions that the library exports and whose names begin so, sorted; each once. By the
/// dynamic symbols, which the section headers lead to: none where those were stripped or are
/// damaged.
std::vector<std::string> read_elf_exports(int fd, std::string_view beginning);

/// Whether the library reaches a function by its name, so that one of the same name in a library
/// that was loaded before it gets the calls. Not where it was linked with -Bsymbolic. By the
/// relocations, which the section headers lead to: false where those were stripped or are damaged.
bool elf_calls_by_name(int fd, std::string_view function);

/// The machine that this command was compiled for.
uint16_t own_elf_machine();

}  // namespace gpumemprof
