// Which file a native address belongs to, and what function it is in.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "recording/symbols.h"
#include "trace/tables.h"

namespace gpumemprof {

/// A piece of a file that was mapped executable. Address in the file's symbol table = pc - bias.
struct Module {
  uint64_t start = 0, end = 0, bias = 0;
  std::string path;
  auto operator<=>(const Module&) const = default;
};

/// The modules of one process, over its whole life. If two overlap, the latest counts, because a
/// range of addresses can be reused. O(log modules) per call. Not thread-safe.
class ModuleList {
 public:
  /// `recorded_ns`: wall clock when the recording began; a file that changed later is not used for
  /// names. `host`: where it was recorded; on another machine no file is used.
  ModuleList(std::string host, uint64_t recorded_ns);
  void add(Module module);
  /// The frame of an address: function name and module path; "0x1f2e in libc.so.6" if the function
  /// is unknown, the bare address if the module is. Cached by address.
  uint32_t frame(uint64_t pc, Tables* tables);
  /// True in libpython3* or python3*, or in the interpreter's loop.
  bool is_interpreter(uint64_t pc);

 private:
  struct Place {
    const Module* module = nullptr;
    std::string function;  // empty: unknown
  };
  struct Piece {
    uint64_t end = 0;
    const Module* module = nullptr;
  };
  void cover(const Module& module);
  const Module* module_at(uint64_t pc) const;
  const Place& place(uint64_t pc);

  bool ask_files_ = false;
  uint64_t recorded_ns_;
  std::set<Module> modules_;
  std::map<uint64_t, Piece> pieces_;  // by start; none overlap
  absl::flat_hash_map<std::string, std::unique_ptr<SymbolTable>>
      symbols_;  // null: not to be trusted
  absl::flat_hash_map<uint64_t, std::unique_ptr<Place>> places_;
  std::vector<uint64_t> outside_;  // those of places_ that are in no module
};

}  // namespace gpumemprof
