#include "analysis/oom_message/oom_verdict.h"

namespace gpumemprof {
namespace {

// c10/core/AllocatorConfig.h: kSmallBuffer and kLargeBuffer.
constexpr uint64_t kSmallSegment = 2 << 20;
constexpr uint64_t kLargeSegment = 20 << 20;

bool is_cuda_like(const OomMessage& message) {
  return message.wording == OomWording::kPyTorch1 || message.wording == OomWording::kPyTorch2;
}

std::string requested_meaning(const OomMessage& message) {
  const uint64_t bytes = message.requested->bytes;
  if (is_cuda_like(message) && bytes == kSmallSegment) {
    return "the allocator's request to the driver: 2 MiB is a whole segment for tensors of up to 1 "
           "MiB, so the tensor itself may be far smaller";
  }
  if (is_cuda_like(message) && bytes == kLargeSegment) {
    return "the allocator's request to the driver: 20 MiB is a whole segment for tensors of 1 to "
           "10 MiB, so the tensor itself may be smaller";
  }
  if (message.framework == "tensorflow") {
    std::string text = "the request";
    if (!message.shape.empty()) text += ", a tensor of shape [" + message.shape + "]";
    if (!message.type.empty()) text += " of " + message.type;
    if (message.rounded_bytes && *message.rounded_bytes != message.requested->bytes)
      text += "; the pool looked for " + std::to_string(*message.rounded_bytes) + " bytes";
    return text;
  }
  if (message.framework == "numpy" && !message.type.empty())
    return "the refused array, " + message.type + " of shape (" + message.shape + ")";
  if (!is_cuda_like(message)) return "the refused size";
  return "the allocator's request to the driver: the tensor's size, rounded up (by less than 2 MiB "
         "unless roundup_power2_divisions is set)";
}

}  // namespace

const char* cause_name(OomCause cause) {
  static constexpr const char* kNames[] = {"want_of_memory", "fragmentation", "own_limit",
                                           "cannot_tell"};
  return kNames[static_cast<size_t>(cause)];
}

std::vector<OomFigure> oom_figures(const OomMessage& message) {
  std::vector<OomFigure> out;
  const auto add = [&](const char* key, const std::optional<PrintedSize>& size,
                       std::string meaning) {
    if (size) out.push_back({key, *size, std::move(meaning)});
  };
  const bool is_two = message.wording == OomWording::kPyTorch2;
  if (message.requested) add("requested", message.requested, requested_meaning(message));
  add("capacity", message.capacity, "the device's total memory");
  add("free", message.free,
      is_cuda_like(message) ? "free on the GPU, after PyTorch had released its unused segments"
                            : "free on the GPU");
  add("allowed", message.allowed,
      message.wording == OomWording::kPyTorchMps
          ? "the backend's own limit (PYTORCH_MPS_HIGH_WATERMARK_RATIO)"
          : "this process's own limit (set_per_process_memory_fraction)");
  add("process_in_use", message.process_in_use,
      "the driver's figure for this process: PyTorch's segments, the context, and libraries such "
      "as NCCL");
  add("allocated", message.allocated,
      message.private_pools ? "in live tensors and in the cache of private pools"
      : is_two              ? "in live tensors"
                            : "in live tensors, rounded by the allocator");
  add("private_pools", message.private_pools,
      "of that, free blocks in private pools (CUDA graphs, MemPool), which other tensors cannot "
      "use");
  add("unallocated", message.unallocated,
      "reserved by PyTorch but free, in pieces between live tensors");
  add("reserved", message.reserved, "reserved by PyTorch: live tensors and free pieces");
  add("other_in_use", message.other_in_use, "Metal's figure for this process without PyTorch");
  if (message.pool) {
    add("pool_limit", message.pool->limit, "the pool's own limit");
    add("pool_in_use", message.pool->in_use, "in use, by the pool's count");
    add("pool_peak_in_use", message.pool->peak_in_use, "its peak since the program began");
    add("pool_largest_allocation", message.pool->largest_allocation,
        "the largest chunk allocated since the program began");
  }
  return out;
}

}  // namespace gpumemprof
