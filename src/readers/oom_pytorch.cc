// What PyTorch and its backends print. Wordings: c10/cuda/CUDACachingAllocator.cpp (1.0 to 2.15),
// c10/cuda/CUDAMallocAsyncAllocator.cpp, c10/xpu/XPUCachingAllocator.cpp,
// aten/src/ATen/mps/MPSAllocator.mm, c10/core/impl/alloc_cpu.cpp.
#include <algorithm>

#include "readers/oom_message.h"

namespace gpumemprof {
namespace {

constexpr size_t kMaxProcesses = 64;
constexpr std::string_view kKey = "out of memory";
constexpr std::string_view kCpuKey = "you tried to allocate ";

/// The size that stands behind `words`.
std::optional<PrintedSize> size_after(std::string_view text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  return parse_printed_size(text.substr(at + words.size()));
}

/// The size that stands in front of `words`: a number, a space, a unit.
std::optional<PrintedSize> size_before(std::string_view text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::string_view front = text.substr(0, at);
  const size_t unit = front.rfind(' ');
  if (unit == std::string_view::npos || unit == 0) return std::nullopt;
  const size_t space = front.find_last_of(" (", unit - 1);
  const size_t number = space == std::string_view::npos ? 0 : space + 1;
  auto size = parse_printed_size(front.substr(number));
  if (size && size->text.size() != front.size() - number) return std::nullopt;
  return size;
}

std::optional<uint64_t> number_at(std::string_view text, size_t at) {
  if (at == std::string_view::npos) return std::nullopt;
  uint64_t number = 0;
  const size_t first = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9' && at - first < 18) {
    number = number * 10 + static_cast<uint64_t>(text[at++] - '0');
  }
  return at == first ? std::nullopt : std::optional(number);
}

std::optional<uint64_t> number_after(std::string_view text, std::string_view words) {
  const size_t at = text.find(words);
  return at == std::string_view::npos ? std::nullopt : number_at(text, at + words.size());
}

/// "CUDA" of "… OutOfMemoryError: CUDA".
std::string last_word(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  const size_t at =
      text.find_last_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
  return std::string(at == std::string_view::npos ? text : text.substr(at + 1));
}

/// What the message says, up to where the next one begins.
std::string_view own_text(std::string_view text) {
  return text.substr(0, text.find(kKey, kKey.size()));
}

void read_hint(std::string_view text, OomMessage* message) {
  const size_t at = text.find("_ALLOC_CONF");
  if (at == std::string_view::npos) return;
  message->hint_variable = last_word(text.substr(0, at)) + "_ALLOC_CONF";
  message->hints_expandable_segments =
      text.find("expandable_segments:True") != std::string_view::npos;
}

void read_processes(std::string_view text, OomMessage* message) {
  constexpr std::string_view kProcess = "Process ", kHas = " has ";
  for (size_t at = 0; (at = text.find(kProcess, at)) != std::string_view::npos;) {
    at += kProcess.size();
    const auto pid = number_at(text, at);
    const size_t has = text.find_first_not_of("0123456789", at);
    if (!pid || has == std::string_view::npos || !text.substr(has).starts_with(kHas)) continue;
    auto size = parse_printed_size(text.substr(has + kHas.size()));
    if (!size) continue;
    if (message->processes.size() == kMaxProcesses) return;
    message->processes.push_back({*pid, std::move(*size)});
  }
}

/// A size that overflowed is refused before anything else: "more than 1EB".
std::optional<PrintedSize> requested_size(std::string_view text) {
  if (text.find("Tried to allocate more than 1EB") == std::string_view::npos) {
    return size_after(text, "Tried to allocate ");
  }
  constexpr uint64_t kExbibyte = uint64_t{1} << 60;
  return PrintedSize{"more than 1EB", kExbibyte, kExbibyte, UINT64_MAX};
}

void read_pytorch2(std::string_view text, OomMessage* message) {
  message->wording = OomWording::kPyTorch2;
  // 2.1 printed "capacty".
  message->capacity = size_after(text, "has a total capacity of ");
  if (!message->capacity) message->capacity = size_after(text, "has a total capacty of ");
  message->free = size_after(text, " of which ");
  message->process_in_use = size_after(text, "this process has ");
  message->allowed = size_before(text, " allowed;");
  message->allocated = size_before(text, " is allocated by PyTorch");
  message->private_pools = size_before(text, " allocated in private pools");
  message->unallocated = size_before(text, " is reserved by PyTorch but unallocated");
  message->expandable_segments_on =
      text.find("expandable_segments is enabled") != std::string_view::npos;
  message->exceeds_reserve =
      text.find("exceeds the expandable-segment reserve") != std::string_view::npos;
  message->expandable_segments_on |= message->exceeds_reserve;
  message->is_custom_pool =
      text.find("custom allocator backing this MemPool") != std::string_view::npos;
  read_processes(text, message);
  // 2^64 - 1 bytes: the driver gave no figure (WSL, virtual GPUs).
  if (message->process_in_use && message->process_in_use->most_bytes == UINT64_MAX) {
    message->process_in_use.reset();
  }
}

void read_pytorch1(std::string_view text, OomMessage* message) {
  message->wording = OomWording::kPyTorch1;
  message->capacity = size_before(text, " total capacity;");
  message->allocated = size_before(text, " already allocated;");
  message->free = size_before(text, " free;");
  message->allowed = size_before(text, " allowed;");
  message->reserved = size_before(text, " reserved in total by PyTorch)");
  if (!message->reserved) message->reserved = size_before(text, " cached)");  // up to 1.3
}

void read_async(std::string_view before, std::string_view text, OomMessage* message) {
  message->wording = OomWording::kPyTorchAsync;
  message->backend = "CUDA";
  message->device = number_after(before, "Allocation on device ");
  message->allocated = size_after(text, "Currently allocated : ");
  message->requested = size_after(text, "Requested : ");
  message->capacity = size_after(text, "Device limit : ");
  message->free = size_after(text, "Free (according to CUDA): ");
  message->allowed = size_after(text, "memory fraction) : ");
  // 2^64 - 1 bytes: no limit was set.
  if (message->allowed && message->allowed->most_bytes == UINT64_MAX) message->allowed.reset();
}

void read_mps(std::string_view text, OomMessage* message) {
  message->wording = OomWording::kPyTorchMps;
  message->backend = "MPS";
  message->allocated = size_after(text, "(MPS allocated: ");
  message->other_in_use = size_after(text, "other allocations: ");
  message->allowed = size_after(text, "max allowed: ");
  message->requested = size_after(text, "Tried to allocate ");
}

/// Errors of the driver and of libraries that only say that it was memory.
bool is_bare_error(std::string_view before, std::string_view text) {
  for (std::string_view start : {"CUDA error:", "HIP error:", "runtime error (2) :",
                                 "runtime error (2):", "Cuda failure '", "Cuda failure 2 '"}) {
    if (before.ends_with(start)) return true;
  }
  return text.starts_with("OUT_OF_MEMORY") && before.ends_with("CUDA_ERROR_");
}

std::optional<OomMessage> parse_cpu(std::string_view before, std::string_view text) {
  const bool is_known = before.find("can't allocate memory") != std::string_view::npos ||
                        before.find("not enough memory") != std::string_view::npos;
  if (!is_known) return std::nullopt;
  OomMessage message{.framework = "pytorch", .backend = "CPU", .wording = OomWording::kPyTorchCpu};
  message.requested = parse_printed_size(text.substr(std::min(kCpuKey.size(), text.size())));
  if (!message.requested) return std::nullopt;
  if (message.requested->least_bytes == message.requested->most_bytes)
    message.requested = exact_size(message.requested->bytes);  // not as up to 19 digits
  return message;
}

std::optional<OomMessage> parse_pytorch(std::string_view before, std::string_view text) {
  if (text.starts_with(kCpuKey)) return parse_cpu(before, text);
  OomMessage message{.framework = "pytorch"};
  if (is_bare_error(before, text)) {
    message.backend = before.find("HIP") != std::string_view::npos ? "HIP" : "CUDA";
    return message;
  }
  if (!text.starts_with(kKey)) return std::nullopt;
  text = own_text(text);
  if (before.ends_with("MPS backend")) {
    read_mps(text, &message);
  } else if (before.ends_with("would exceed allowed memory. (")) {
    read_async(before, text, &message);
  } else if (text.starts_with("out of memory. Allocation was preemptively rejected")) {
    message.wording = OomWording::kPyTorch2;
    message.backend = last_word(before);
    message.requested = size_after(text, "Requested size: ");
    message.is_own_limit = true;
  } else if (text.starts_with("out of memory. Tried to allocate ")) {
    message.backend = last_word(before);
    message.requested = requested_size(text);
    const size_t bracket = text.find('(');
    const bool is_old = bracket != std::string_view::npos && bracket < 64;
    if (is_old) {
      message.device = number_at(text, text.find_first_of("0123456789", bracket));
      read_pytorch1(text, &message);
    } else {
      message.device = number_after(text, ". GPU ");
      read_pytorch2(text, &message);
    }
    read_hint(text, &message);
  } else {
    return std::nullopt;
  }
  return message.requested ? std::optional(std::move(message)) : std::nullopt;
}

}  // namespace

OomDialect pytorch_oom_dialect() {
  return {.keys = {"out of", "OUT_OF_MEMORY", "you tried to allocate"},
          .beginnings = {kKey, "OUT_OF_MEMORY", kCpuKey},
          .parse = parse_pytorch};
}

}  // namespace gpumemprof
