// The time of an event: CLOCK_MONOTONIC, read off the processor's counter where the kernel itself
// tells it by that.
//
// clock_gettime waits for every load before it, which in a real step costs more than the reading.
// Here only a program that records in several threads waits so: there a free must not get a time
// before that of the allocation whose address it had to load.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// The time of an event of `writer`, which represents the calling thread: LineClock::time_ns.
/// Signal-safe.
uint64_t event_time_ns(const void* writer);

/// False while every event queries the kernel.
bool is_read_off_the_counter();

}  // namespace gpumemprof::probe
