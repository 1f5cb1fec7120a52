// Which copies of storages are told: those of or into a parameter or buffer. What is one is known
// from the first call of its model on, and copies may be made before: so until a step has ended
// all are told, up to a number.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// The storage at the address is a parameter or a buffer.
void watch_copies_of(uint64_t address);

/// A step has ended: what is a parameter is known.
void end_watching_all_copies();

/// Whether a copy from `source` into `target` is to be told. True too often where another storage
/// had one of the addresses before. A few loads.
bool is_watched_copy(uint64_t source, uint64_t target);

}  // namespace gpumemprof::probe
