// Whether somebody still writes to a file.
#pragma once

#include "format/format.h"

namespace gpumemprof {

enum class WriterState {
  kAlive,      ///< the process runs on this machine
  kGone,       ///< it ran on this machine
  kElsewhere,  ///< another machine's: only its own `run` can know
};

WriterState writer_state(const format::FileHeader& header, const format::FileState& state);

}  // namespace gpumemprof
