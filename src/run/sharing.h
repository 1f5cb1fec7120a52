// Who may record into a folder that has a recording.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// Whether a new run may add to what the folder holds: nothing, or runs of the same job. These are
/// other ranks by the variables that launchers set, runs that go on on other machines, and what a
/// launcher starts again. `environment`: "NAME=value" of the new run.
/// Errors: kUsage, one line: the folder has the recording of another run.
Status may_record_into(const std::string& folder, const std::vector<std::string>& environment);

/// True where runs left notes of their end and samples of the machine in the folder, and recorded
/// nothing: there is nothing that a new run could spoil.
bool has_recorded_nothing(const std::string& folder);

/// Deletes the recording in a folder, and nothing else that is there.
/// Errors: kUsage, one line: a run goes on in it, or a file cannot be deleted.
Status remove_recording(const std::string& folder);

}  // namespace gpumemprof
