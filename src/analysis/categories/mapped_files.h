// Files that a program maps as tensors. PyTorch reports them as shared memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "analysis/categories/torch_frames.h"
#include "base/path_parts.h"
#include "trace/own_code.h"
#include "trace/tables.h"

namespace gpumemprof {

inline bool is_shared_memory(const Tables& tables, size_t device) {
  return device < tables.devices.size() && device_name(tables.devices[device]) == "shared memory";
}

/// Of shared memory: the stack maps a file, as torch.from_file and torch.load(…, mmap=True) do. What
/// tensors are moved to or received in is made by PyTorch's storages and its multiprocessing.
inline bool maps_file(const Tables& tables, uint32_t stack) {
  const uint32_t node = python_node(tables, stack);
  if (node == 0) return false;
  const Frame& frame = tables.stacks.frame_of(node);
  const std::string_view file = tables.strings.get(frame.file);
  if (is_torch_file(file, "storage.py"))
    return is_called(tables.strings.get(frame.function), "from_file");
  return !path_has(file, "/torch/multiprocessing/");
}

/// Bytes of mapped files among `holders` of a device; 0 where it is no shared memory.
inline uint64_t mapped_file_bytes(const Tables& tables, size_t device, const auto& holders) {
  if (!is_shared_memory(tables, device)) return 0;
  uint64_t bytes = 0;
  for (const auto& holder : holders) bytes += maps_file(tables, holder.stack) ? holder.bytes : 0;
  return bytes;
}

}  // namespace gpumemprof
