// Which releases of PyTorch write a file like this one.
#pragma once

#include <cstdint>
#include <string>

#include "readers/torch_snapshot/parts.h"

namespace gpumemprof::torch_snapshot {

/// "torch 2.10 or 2.11"; empty where the file has too little to tell. `top` is the mask of the keys
/// of the whole (0 for a bare list of segments); a key's first release is in
/// docs/torch-snapshots.md.
std::string version_hint(const SeenKeys& seen, uint64_t top, bool has_annotate_action);

}  // namespace gpumemprof::torch_snapshot
