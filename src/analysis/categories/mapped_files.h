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

inline bool is_of_loader_worker(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    return path_ends_with(tables.strings.get(frame.file), "/torch/utils/data/_utils/worker.py");
  }) != 0;
}

/// Of shared memory: a process sends it to another, or a DataLoader's worker collates it for that.
/// Unless it keeps it, it unmaps it at once.
inline bool is_sent(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    const std::string_view file = tables.strings.get(frame.file);
    return is_torch_file(file, "utils/data/_utils/collate.py") ||
           (is_torch_file(file, "multiprocessing/reductions.py") &&
            is_called(tables.strings.get(frame.function), "reduce_storage"));
  }) != 0;
}

/// Of shared memory: another process made it.
inline bool is_received(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    return is_torch_file(tables.strings.get(frame.file), "multiprocessing/reductions.py") &&
           tables.strings.get(frame.function).contains("rebuild_storage_");
  }) != 0;
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
