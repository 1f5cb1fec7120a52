// What recorded programs hold now, as a profile that scrapers of pprof take.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "picture/camera.h"

namespace gpumemprof {

/// A gzipped profile.proto: inuse_objects and inuse_space of every stack of every recording. Labels
/// of a sample: those of labels_of(), device, and stream and category where they are known. What is
/// missing is in the comments. Errors: kSystem without memory.
Result<std::string> live_profile(Camera& camera, std::string_view version);

}  // namespace gpumemprof
