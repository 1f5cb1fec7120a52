// What a picture tells of a growing recording beyond its devices: what its live memory is, by
// category, and what the driver handed out.
#pragma once

#include "live/follow_observer.h"

namespace gpumemprof {

/// For RecordingFollower::open(). Programs that say nothing of their tensors, and those whose
/// driver is not recorded, pay for nothing.
std::unique_ptr<FollowObserver> follow_for_pictures(const Tables& tables);

}  // namespace gpumemprof
