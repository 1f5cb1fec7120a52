// What our cgroup is charged for, by class: the other side of "killed at the limit".
#pragma once

#include "devices/host_memory.h"
#include "devices/quantity.h"

namespace gpumemprof {

/// usage = anonymous + file + shared + kernel, but for what the kernel has not yet counted into the
/// classes, which lag behind.
struct CgroupMemory {
  Quantity usage;        ///< all that is charged, page cache included: what the limit is about
  Quantity anonymous;    ///< without shared memory
  Quantity file;         ///< page cache, without shared memory and tmpfs
  Quantity shared;       ///< shared memory and tmpfs, so /dev/shm too
  Quantity kernel;       ///< page tables, stacks, slab, buffers of sockets
  Quantity reclaimable;  ///< of `file`, what the kernel may drop: on its lists of file pages
  Quantity swapped;
  Known<uint64_t> limit_hits;  ///< how often a charge met the limit, since the cgroup was made
  Known<uint64_t> kills;       ///< by the OOM killer, since then
};

/// Of the cgroup that read_host_memory() found: the one with the least room, else our own.
CgroupMemory read_cgroup_memory(const HostMemory& host);

}  // namespace gpumemprof
