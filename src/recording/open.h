// The one way to open what the user names: a recording's folder or one file of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "trace/event_source.h"

namespace gpumemprof {

/// Opens recordings: each path is a folder that `run` wrote, or one .gmp file. Several are read as
/// one stream on one clock. Sealed and unsealed files alike, also while they still grow (what is
/// published at this moment is read).
/// Errors: kNotFound, kBadInput (not a recording; the offset says where), kUnsupported (newer
/// major). Damage after a readable header is not an error: it is stated in loss().
Result<std::unique_ptr<EventSource>> open_recording(const std::vector<std::string>& paths);

}  // namespace gpumemprof
