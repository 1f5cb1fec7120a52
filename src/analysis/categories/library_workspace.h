// Scratch memory that a library asks for itself: cuBLAS's and cuDNN's workspaces, what cub and
// thrust sort in, what oneDNN's primitives need. Told by native frames alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trace/tables.h"

namespace gpumemprof {

/// Of a native function between an allocator and the operation that was called: true where it asks
/// for a library's scratch memory, false where it makes a tensor, nothing where it could be either.
std::optional<bool> asks_for_workspace(std::string_view function);

/// The innermost native frame that says either, seen from the allocator outwards, decides; nothing
/// is looked for beyond the operation or the first Python frame. False without native frames.
/// Looks at all of them: keep the answer.
bool is_library_workspace(const Tables& tables, uint32_t stack);

/// What PyTorch gives a cuBLAS handle by default where the device is none of Hopper's
/// (":4096:2:16:8", at::cuda::parseChosenWorkspaceSize): 65 × 128 KiB, which no tensor of powers of
/// two has. Hopper's 32 MiB are also those of many a weight, so that size says nothing.
inline constexpr uint64_t kCublasWorkspaceBytes = (4096 * 2 + 16 * 8) * 1024;

/// Whether it is the size of a cuBLAS or cuBLASLt workspace by default: also Hopper's 32 MiB, and
/// 1 MiB of cuBLASLt. Says something only of a block that its stack made once, for all steps.
inline bool is_workspace_size(uint64_t bytes) {
  return bytes == kCublasWorkspaceBytes || bytes == 32 << 20 || bytes == 1 << 20;
}

}  // namespace gpumemprof
