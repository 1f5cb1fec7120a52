// What a file system does for us, and what it promises.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

namespace gpumemprof::probe {

/// A filter that was there before us may punish what is unusual, so then we keep to calls that
/// every program makes. (In a container there nearly always is one, which refuses with an error.)
bool is_filtered();

/// The kind of loss that a negative errno stands for.
format::LossKind loss_of(long error);

/// All of the bytes, or a negative errno.
long write_all(long fd, const void* data, size_t size, uint64_t offset);

/// Blocks for [offset, offset + size), which read as zeros. 0 or a negative errno.
long allocate(long fd, uint64_t offset, size_t size);

/// True where a store into a mapped page that is allocated never finds the disk full, which would
/// be a SIGBUS. Only where that is known: a file system that writes a changed page to a new place
/// (XFS after a copy that shares blocks, btrfs, …) does not promise it, one that we do not know may
/// not. Nobody promises it of a file that is cut.
bool promises_pages(long fd);

/// A shared mapping, null where it is refused.
uint8_t* map_shared(long fd, uint64_t offset, size_t size);

}  // namespace gpumemprof::probe
