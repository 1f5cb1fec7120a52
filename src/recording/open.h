// The only way to open what the user names: a recording's folder or one file of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "trace/event_source.h"

namespace gpumemprof {

/// Opens recordings: each path is a folder of `run`, or one .gmp file. Several are read as one
/// stream on one clock. Files may be sealed or not, and may still grow (then what is published now
/// is read). Errors: kNotFound, kBadInput (not a recording; with the offset), kUnsupported (newer
/// major version). Damage after a readable header is not an error; loss() reports it.
Result<std::unique_ptr<EventSource>> open_recording(const std::vector<std::string>& paths);

}  // namespace gpumemprof
