// What a gated run held: the program, and the tests that its pytest plugin measured.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/memory_baseline.h"
#include "base/error.h"
#include "run/run_program.h"

namespace gpumemprof {

/// The pytest plugin writes a measurement of each test into the folder that it names.
inline constexpr const char* kGateVariable = "GPUMEMPROF_GATE";

/// The program first, then tests by name; without the program where it allocated nothing. `folder`:
/// of the tests' measurements. Errors: those of reading either.
Result<std::vector<PeakSubject>> gate_subjects(const RunOutcome& outcome,
                                               const std::string& folder);

}  // namespace gpumemprof
