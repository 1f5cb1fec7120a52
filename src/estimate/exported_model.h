// What an exported model needs where it runs on a processor, not a GPU: figures that are arithmetic
// over its file, and figures that were measured while it ran here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "estimate/boards.h"

namespace gpumemprof {

struct ExportedFigure {
  std::string name;  ///< "weights", "inputs", "planned", "constants", "arena_loaded", "arena_peak",
                     ///< "arena_reserved", "run_peak", "resident_rise"
  uint64_t bytes = 0;
  bool is_measured = false;
  std::string how;  ///< by what it was measured, or of what it is the sum
};

struct ExportedInput {
  std::string name, type;
  std::vector<uint64_t> sizes;
};

struct ExportedAnswer {
  std::string subject, target;  ///< "cpu" or "mobile"
  std::string kind;             ///< "onnx", "pte" or "pt2"
  std::string runtime;          ///< empty: it was not run
  std::vector<ExportedFigure> figures;
  std::vector<ExportedInput> inputs;
  std::optional<PredictedBytes> need;  ///< what must fit: need_figures says what its ends are
  std::optional<uint64_t> capacity_bytes;
  std::vector<std::string> notes;    ///< what to know of the figures
  std::vector<std::string> unknown;  ///< what no figure has in it, and why
};

/// Null where there is none of that name.
const ExportedFigure* figure_of(const ExportedAnswer& answer, std::string_view name);

/// Adds what the process that ran the model wrote. Errors: kSystem where that is not what it writes
/// (a runtime may have been led to write into its memory).
Status add_measured(std::string_view json, ExportedAnswer* answer);

/// Sets `need`. The lower end is what has to be there at once: weights, inputs and the peak of the
/// run, each counted once. The upper end is what the process was seen to take, where that is more.
void set_need(ExportedAnswer* answer);

}  // namespace gpumemprof
