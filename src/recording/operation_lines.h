// Lines of code for operations whose allocations have a name and no Python frames. The Python half
// writes them beside a recording (operations.PID.START.json, docs/recording-format.md).
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "trace/event.h"
#include "trace/event_source.h"
#include "trace/tables.h"

namespace gpumemprof {

/// What one file says. Errors name the byte. Every index in it is checked.
struct OperationFile {
  struct Place {
    std::string file, function;
    uint32_t line = 0;
  };
  std::string host;
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  std::vector<Place> frames;
  std::vector<std::vector<uint32_t>> stacks;                ///< indices of frames, the root first
  std::map<std::string, uint32_t, std::less<>> operations;  ///< -> stack; UINT32_MAX: several
  uint64_t left_out_operations = 0, left_out_graphs = 0;
};
Result<OperationFile> parse_operation_file(std::string_view text);

/// Puts the frames of the code that made an operation under the operation's own, where a stack is
/// nothing but the operation. Not thread-safe.
class OperationLines {
 public:
  /// All files of the folder. What cannot be read is told in `loss`.
  void load_folder(const std::string& folder, Loss* loss);
  bool empty() const { return files_.empty(); }
  /// `tables` gains frames and stacks; ids that were handed out stay.
  void apply(EventBatch* batch, Tables* tables);

 private:
  struct Known {
    OperationFile file;
    std::vector<uint32_t> stacks;  // by index in file.stacks: id in Tables, UINT32_MAX: not yet
  };
  uint32_t with_lines(uint32_t process, uint32_t stack, Tables* tables);
  uint32_t made_by(Known* known, uint32_t index, Tables* tables);
  Known* find(const Process& process);

  std::vector<Known> files_;
  absl::flat_hash_map<uint64_t, uint32_t> stacks_;  // process << 32 | stack
};

}  // namespace gpumemprof
