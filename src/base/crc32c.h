// CRC32C (Castagnoli), as iSCSI and ext4 use it. C library only: the probe uses it too.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gpumemprof {

/// The CRC of `size` bytes, continuing from `crc` (0 to begin). SSE4.2 where the CPU has it, in three
/// lanes at once, else eight tables.
uint32_t crc32c(uint32_t crc, const void* data, size_t size);

}  // namespace gpumemprof
