// The allocator of a device whose own history was recorded.
#pragma once

#include "trace/tables.h"

namespace gpumemprof {

/// What is known of `device`'s allocator; null if nothing is.
inline const FollowedAllocator* allocator_of(const Tables& tables, const Device& device) {
  for (const FollowedAllocator& each : tables.allocators) {
    if (each.process == device.process && each.type == device.type && each.index == device.index) {
      return &each;
    }
  }
  return nullptr;
}

}  // namespace gpumemprof
