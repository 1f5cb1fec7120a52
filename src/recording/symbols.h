// Function names of an ELF file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"

namespace gpumemprof {

/// The functions of one 64-bit ELF file, from .symtab, or .dynsym where it is stripped. The file
/// may be anything; every offset is checked. Not thread-safe.
class SymbolTable {
 public:
  /// Null if the file is missing, not ELF, without symbols, or changed after `unchanged_since_ns`
  /// (wall clock): names of another build would be wrong.
  static std::unique_ptr<SymbolTable> open(const std::string& path, uint64_t unchanged_since_ns);

  /// The demangled name of the function that covers `address`; empty if there is none.
  std::string name(uint64_t address);

 private:
  struct Function {
    uint64_t address, size;
    uint32_t name;
  };
  bool read_sections();
  bool read_symbols(uint64_t offset, uint64_t size, uint64_t names, uint64_t names_size);

  std::unique_ptr<File> file_;
  uint64_t names_offset_ = 0, names_size_ = 0;
  std::vector<Function> functions_;  // by address
};

}  // namespace gpumemprof
