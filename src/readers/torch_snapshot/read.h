// Reads snapshots of PyTorch's CUDA memory: what torch.cuda.memory._dump_snapshot() and its
// relatives write, and what was made of it as JSON. docs/torch-snapshots.md says what is read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

struct SnapshotLimits {
  /// Memory for what is kept of a file, in bytes; 0: twice the file's size and 256 MiB.
  uint64_t memory_bytes = 0;
};

struct SnapshotOptions {
  std::function<void(double)> on_progress;  ///< called now and then with 0 to 1; may be empty
  SnapshotLimits limits;
};

/// Nothing of the file is ever run: a pickle's opcodes that could are not known here. Memory is
/// about 24 bytes an event, and 4 bytes a value that the pickle numbers until the end is reached.
/// Errors: kNotFound, kSystem, kBadInput with the offset of what is wrong.
Result<AllocatorSnapshot> read_torch_snapshot(const std::string& path,
                                              const SnapshotOptions& options = {});

/// The same of an open file, whose size is looked up once.
Result<AllocatorSnapshot> read_torch_snapshot(File& file, const SnapshotOptions& options = {});

/// Whether a file that begins with `bytes` (64 KiB are enough) is to be read as a snapshot: by its
/// content, never by its name. True for every pickle of protocol 2 to 5, so that a pickle of
/// something else is named as such.
bool looks_like_torch_snapshot(std::string_view bytes);
/// The same of a file; false where it cannot be read.
bool is_torch_snapshot(const std::string& path);

}  // namespace gpumemprof
