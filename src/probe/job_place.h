// Which of a job's processes this is, according to what launched it.
#pragma once

#include "format/format.h"

namespace gpumemprof::probe {

/// Reads the environment: while there is one thread. Returns the rank + 1; 0 where no launcher
/// numbered the process.
uint32_t read_job_place(format::JobPlace* place);

/// The rest of what is stored: the clock, and the CRC.
void seal_job_place(uint64_t recording_id, format::JobPlace* place);

}  // namespace gpumemprof::probe
