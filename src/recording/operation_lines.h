// Lines of code for operations whose allocations have a name and no Python frames. The Python half
// writes them beside a recording (operations.PID.START.json, docs/recording-format.md).
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "trace/event.h"
#include "trace/event_source.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Files of frames with more facts about an operation: the variable that it writes, the layer to
/// which that variable belongs or whose optimizer state it is, and the function that XLA compiled
/// into one cluster. They are below the operation, the last first.
inline constexpr std::string_view kVariableFile = "<tensorflow variable>";
inline constexpr std::string_view kLayerFile = "<tensorflow layer>";
inline constexpr std::string_view kClusterFile = "<tensorflow XLA cluster>";

/// The content of one file. Errors name the byte. Every index in it is checked.
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
  struct Variable {
    std::string name, layer;  ///< the layer is empty where it is not known
  };
  std::map<std::string, Variable, std::less<>> variables;  ///< by operation
  /// Layers, by the variable whose initial value it is. Which of the layer's variables it becomes
  /// is unknown.
  std::map<std::string, std::string, std::less<>> initial_values;
  std::map<std::string, std::string, std::less<>> xla;  ///< functions, by operation
  /// Paths of Keras' layers, by scope of a graph. Empty: graphs disagree.
  std::map<std::string, std::string, std::less<>> layers;
  uint64_t left_out_operations = 0, left_out_graphs = 0, left_out_scopes = 0;
  std::map<std::string, uint64_t, std::less<>> errors;  ///< what could not be asked: how often
};
Result<OperationFile> parse_operation_file(std::string_view text);

/// Adds the frames of the code that created an operation below the operation, if the stack consists
/// only of it, and the other facts below any. Not thread-safe.
class OperationLines {
 public:
  /// All files of the folder. Unreadable ones are reported in `loss`.
  void load_folder(const std::string& folder, Loss* loss);
  /// Whether no stack of `tables` can be changed or missed by apply().
  bool is_idle(const Tables& tables) const;
  /// `tables` gains frames and stacks; existing ids stay.
  void apply(EventBatch* batch, Tables* tables);
  /// After the last event. A graph that was gone is a loss if an operation that allocated is in no
  /// remaining graph: frameworks make many graphs that never run. So is an operation that allocated
  /// in a Python process that did not end by itself, and so wrote no file.
  void tell_losses(const Tables& tables, Loss* loss) const;

 private:
  struct Known {
    std::string name;  // of the file
    OperationFile file;
    std::vector<uint32_t> stacks;  // by index in file.stacks: id in Tables, UINT32_MAX: not yet
    uint64_t unknown = 0;          // operations that allocated and that the file does not have
  };
  uint32_t with_lines(uint32_t process, uint32_t stack, Tables* tables);
  uint32_t made_by(Known* known, uint32_t index, Tables* tables);
  static uint32_t with_facts(const OperationFile& file, std::string_view operation, uint32_t below,
                             Tables* tables);
  Known* find(const Process& process);

  std::vector<Known> files_;
  std::set<std::string, std::less<>> unreadable_;  // names of files
  std::map<uint32_t, uint64_t> without_file_;      // by process: operations that allocated
  absl::flat_hash_map<uint64_t, uint32_t> stacks_;  // process << 32 | stack
};

}  // namespace gpumemprof
