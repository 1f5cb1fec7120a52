// What the live memory of a growing recording is, by category, as far as the recording tells.
#pragma once

#include "live/follow_observer.h"

namespace gpumemprof {

/// For RecordingFollower::open(). Programs that say nothing of their tensors pay for nothing.
std::unique_ptr<FollowObserver> follow_categories(const Tables& tables);

}  // namespace gpumemprof
