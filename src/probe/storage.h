// File system operations, and their guarantees.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

namespace gpumemprof::probe {

/// A filter installed before us may punish unusual calls, so then only calls that every program
/// makes are used. (In a container there almost always is one, which only returns an error.)
bool is_filtered();

/// The kind of loss for a negative errno.
format::LossKind loss_of(long error);

/// All of the bytes, or a negative errno.
long write_all(long fd, const void* data, size_t size, uint64_t offset);

/// Allocates blocks for [offset, offset + size), which read as zeros. 0 or a negative errno.
long allocate(long fd, uint64_t offset, size_t size);

/// True if a store into an allocated mapped page never finds the disk full, which would raise
/// SIGBUS. Only where that is known: a file system that writes changed pages to a new place (XFS
/// after a copy that shares blocks, btrfs, …) does not guarantee it, and an unknown one may not. No
/// file system guarantees it for a truncated file.
bool promises_pages(long fd);

/// A shared mapping, null if it is refused.
uint8_t* map_shared(long fd, uint64_t offset, size_t size);

}  // namespace gpumemprof::probe
