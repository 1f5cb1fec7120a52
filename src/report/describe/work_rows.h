// What TensorFlow's memory was for, as rows of a report: layers and parts of their work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/live_state.h"
#include "trace/tables.h"

namespace gpumemprof {

/// The memory of what reads the same.
struct WorkRow {
  std::string part;   ///< LayerWork::part
  std::string mode;   ///< empty where rows are not told apart by it
  std::string where;  ///< the layer, "XLA cluster f" or "call of f"; empty: none is known
  bool has_layer;
  uint64_t bytes;
  uint64_t graph_bytes;  ///< of them, what a graph's operations allocated
  uint64_t count;
  /// "optimizer adam", "framework's own (not in a layer)".
  std::string text() const;
};
enum class WorkRows { kByPart, kByPartAndMode };
/// Largest first; they add up to `holders`.
std::vector<WorkRow> work_rows(const std::vector<Holder>& holders, const Tables& tables,
                               WorkRows by);

inline constexpr const char* kNotInALayer = "(not in a layer)";

}  // namespace gpumemprof
