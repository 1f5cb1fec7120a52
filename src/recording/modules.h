// Which file a native address belongs to, and what function it is in.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "recording/symbols.h"
#include "trace/tables.h"

namespace gpumemprof {

/// A piece of a file that was mapped executable. Address in the file's symbol table = pc - bias.
struct Module {
  uint64_t start = 0, end = 0, bias = 0;
  std::string path;
};

/// The modules of one process, over its whole life. Not thread-safe.
class ModuleList {
 public:
  /// `recorded_ns`: wall clock when the recording began; a file that changed after it is not asked
  /// for names. `host`: where it was recorded; on another machine no file is asked.
  ModuleList(std::string host, uint64_t recorded_ns);
  void add(Module module);
  /// The frame of an address: function name and module path; "0x1f2e in libc.so.6" where the name
  /// is unknown, the bare address where the module is. Remembered by address.
  uint32_t frame(uint64_t pc, Tables* tables);
  /// True in libpython3* or python3*, or in the interpreter's loop.
  bool is_interpreter(uint64_t pc);

 private:
  struct Place {
    const Module* module = nullptr;
    std::string function;  // empty: unknown
  };
  const Place& place(uint64_t pc);

  bool ask_files_ = false;
  uint64_t recorded_ns_;
  std::vector<std::unique_ptr<Module>> modules_;  // the latest last: an address range can be reused
  absl::flat_hash_map<std::string, std::unique_ptr<SymbolTable>>
      symbols_;  // null: not to be trusted
  absl::flat_hash_map<uint64_t, std::unique_ptr<Place>> places_;
};

}  // namespace gpumemprof
