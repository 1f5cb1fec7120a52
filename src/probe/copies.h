// Which copies of storages are recorded: those of or into a parameter or buffer. These are known
// from the first call of their model on, and copies may happen before. So all are recorded until a
// step has ended, up to a limit.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// The storage at the address is a parameter or a buffer.
void watch_copies_of(uint64_t address);

/// A step has ended, so all parameters are known.
void end_watching_all_copies();

/// Whether to record a copy from `source` into `target`. May be true for another storage at one of
/// these addresses. Costs a few loads.
bool is_watched_copy(uint64_t source, uint64_t target);

}  // namespace gpumemprof::probe
