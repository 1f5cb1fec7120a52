// The pages of the system.
#pragma once

#include <stdint.h>
#include <sys/auxv.h>

namespace gpumemprof {

/// Where a mapping may begin: 4 KiB, on arm64 also 16 or 64, where format::kPage is not enough.
/// Needs libc alone.
inline uint64_t system_page() { return getauxval(AT_PAGESZ); }

}  // namespace gpumemprof
