// Large blocks of the host's memory, where `run --host` asked for them: see host_link.h.
#pragma once

#include "probe/dynamic.h"
#include "probe/host_link.h"
#include "probe/stream.h"

namespace gpumemprof::probe {

/// False before the environment was read, and where nothing is recorded.
bool host_is_wanted();

/// One event of a memory of the host's. `file` is what a map is of; may be null.
void record_host(format::RawAction action, HostMemory memory, uint64_t address, uint64_t size_bytes,
                 const char* file = nullptr);

/// What code in `range` takes is recorded by its framework's hook: not here as well.
void leave_blocks_of(ObjectRange range);
void leave_file_maps_of(ObjectRange range);
bool is_left(const void* caller, bool is_file_map);

/// The same for what the calling thread takes while one of these lives.
class FrameworkTakes {
 public:
  FrameworkTakes();
  ~FrameworkTakes();
};

void host_mapped(void* begin, size_t size_bytes, int fd, const void* caller);
size_t host_unmapped(void* begin, size_t size_bytes, uint32_t* memory);
void host_moved(void* begin, size_t size_bytes, uint32_t memory);

}  // namespace gpumemprof::probe
