#include "recording/allocator_history.h"

#include <algorithm>

#include "trace/followed_allocator.h"

namespace gpumemprof {
namespace {

constexpr int8_t kCuda = 1;  // c10::DeviceType

bool is_cuda(const Device& device) {
  return device.type == kCuda && device.layer == Layer::kAllocator && device.name.empty();
}

/// 13 for "2.13.0+cu130"; 0 where that cannot be read.
unsigned minor_of(const std::string& version) {
  unsigned minor = 0;
  if (!version.starts_with("2.")) return 0;
  for (size_t i = 2; i < version.size() && version[i] >= '0' && version[i] <= '9' && i < 6; ++i) {
    minor = minor * 10 + static_cast<unsigned>(version[i] - '0');
  }
  return minor;
}
constexpr unsigned kFirstWithPools = 8;  // before, trace entries do not name their memory pool

/// In microseconds; a damaged file may hold any.
int64_t clamped_us(uint64_t time_ns) {
  return static_cast<int64_t>(std::min(time_ns, uint64_t{INT64_MAX}) / 1000);
}

}  // namespace

AllocatorHistory::AllocatorHistory(const EventSource& source, HistoryOptions options)
    : source_(source), options_(options) {}

DeviceHistory* AllocatorHistory::history_of(uint16_t index) {
  if (index >= is_asked_.size()) is_asked_.resize(index + size_t{1});
  if (is_asked_[index] == 0) {
    const Device& device = source_.tables().devices[index];
    const FollowedAllocator* allocator =
        is_cuda(device) ? allocator_of(source_.tables(), device) : nullptr;
    const bool is_followed = allocator != nullptr && allocator->is_followed;
    is_asked_[index] = is_followed ? 2 : 1;
    if (is_followed) {
      const bool has_pools = minor_of(allocator->torch_version) >= kFirstWithPools;
      devices_.try_emplace(index, device.index, has_pools);
    }
  }
  return is_asked_[index] == 2 ? &devices_.at(index) : nullptr;
}

/// The stack in tables of our own.
uint32_t AllocatorHistory::own_stack(uint32_t stack) {
  if (!options_.stands_alone || stack == 0) return stack;
  const Tables& from = source_.tables();
  if (stack >= own_stacks_.size()) own_stacks_.resize(from.stacks.stack_count(), 0);
  if (stack >= own_stacks_.size()) return 0;
  if (own_stacks_[stack] != 0) return own_stacks_[stack];
  std::vector<uint32_t> path;  // from the stack towards its root, up to one that is known
  uint32_t node = stack;
  for (; from.stacks.node(node).depth != 0 && own_stacks_[node] == 0;
       node = from.stacks.node(node).parent) {
    path.push_back(node);
  }
  uint32_t own = own_stacks_[node];
  for (; !path.empty(); path.pop_back()) {
    const Frame& frame = from.stacks.frame_of(path.back());
    own = own_.stacks.push(
        own, own_.stacks.intern_frame({own_.strings.intern(from.strings.get(frame.file)),
                                       own_.strings.intern(from.strings.get(frame.function)),
                                       frame.line}));
    own_stacks_[path.back()] = own;
  }
  return own;
}

void AllocatorHistory::add(const EventBatch& batch) {
  Place place;
  for (uint32_t i = 0; i < batch.size(); ++i) add(batch, i, &place);
}

void AllocatorHistory::add(const EventBatch& batch, uint32_t i, Place* place) {
  size_t& requested = place->next_requested;
  size_t& detail = place->next_detail;
  while (requested < batch.requested.size() && batch.requested[requested].event < i) ++requested;
  while (detail < batch.details.size() && batch.details[detail].event < i) ++detail;
  DeviceHistory* history = history_of(batch.device[i]);
  if (history == nullptr) return;
  HistoryEvent event{.action = batch.action[i],
                     .address = batch.address[i],
                     .size_bytes = batch.size_bytes[i],
                     .requested_bytes = batch.size_bytes[i],
                     .stack = own_stack(batch.stack[i]),
                     .detail = {}};
  const uint32_t process = source_.tables().devices[batch.device[i]].process;
  const uint64_t offset =
      options_.stands_alone
          ? static_cast<uint64_t>(source_.tables().processes[process].realtime_offset_ns)
          : 0;
  event.time_us = clamped_us(batch.time_ns[i] + offset);
  if (requested < batch.requested.size() && batch.requested[requested].event == i) {
    event.requested_bytes = batch.requested[requested].bytes;
  }
  if (detail < batch.details.size() && batch.details[detail].event == i) {
    event.detail = batch.details[detail];
  }
  history->add(event);
}

AllocatorSnapshot AllocatorHistory::snapshot_of(uint32_t process,
                                                const FollowedAllocator& allocator) {
  AllocatorSnapshot out;
  out.info = source_.info();
  out.info.can.segments = out.info.can.complete_history = true;
  if (const unsigned minor = minor_of(allocator.torch_version); minor != 0) {
    out.info.writer_version_hint = "torch 2." + std::to_string(minor);
  }
  out.settings.known = true;
  out.settings.conf = allocator.settings;
  out.loss = source_.loss();
  out.tables.processes = source_.tables().processes;
  for (auto& [index, history] : devices_) {
    const Device& device = source_.tables().devices[index];
    if (device.process != process || !history.contradiction().empty()) continue;
    out.tables.devices.push_back(device);
    out.traces.push_back(history.finish());
    if (const FollowedAllocator* each = allocator_of(source_.tables(), device)) {
      out.traces.back().device_bytes = each->device_bytes;
    }
  }
  return out;
}

std::vector<AllocatorSnapshot> AllocatorHistory::finish() {
  const Tables& tables = source_.tables();
  const bool is_whole = source_.state_before_first_event() == nullptr;
  std::map<uint32_t, FollowedAllocator> processes;
  for (size_t index = 0; index < tables.devices.size(); ++index) {
    const Device& device = tables.devices[index];
    if (!is_cuda(device)) continue;
    const FollowedAllocator* allocator = allocator_of(tables, device);
    const auto history = devices_.find(static_cast<uint16_t>(index));
    std::string why;
    if (allocator == nullptr) {
      why = "the recording does not have its allocator's history";
    } else if (!allocator->is_followed) {
      why = allocator->why_not;
    } else if (!is_whole) {
      why = "the oldest events were dropped to save disk";
    } else if (!source_.loss().has_every_event()) {
      why = "events of the recording were lost";
    } else if (history != devices_.end() && !history->second.contradiction().empty()) {
      why = "its history contradicts itself: " + history->second.contradiction();
    }
    if (!why.empty()) {
      reasons_.push_back(device_name(device) + ": " + why);
      devices_.erase(static_cast<uint16_t>(index));
    } else if (history != devices_.end()) {
      processes.try_emplace(device.process, *allocator);
    }
  }
  std::vector<AllocatorSnapshot> snapshots;
  for (const auto& [process, allocator] : processes) {
    snapshots.push_back(snapshot_of(process, allocator));
  }
  if (snapshots.size() == 1 && options_.stands_alone) {
    snapshots[0].tables.strings = std::move(own_.strings);
    snapshots[0].tables.stacks = std::move(own_.stacks);
  }
  return snapshots;
}

Result<AllocatorSnapshot> read_allocator_history(EventSource& source) {
  AllocatorHistory history(source, {.stands_alone = true});
  EventBatch batch;
  for (;;) {
    Result<bool> more = source.next(&batch);
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    history.add(batch);
  }
  std::vector<AllocatorSnapshot> found = history.finish();
  if (found.size() == 1) return std::move(found[0]);
  if (found.size() > 1) {
    return fail(ErrorCode::kUnsupported,
                std::to_string(found.size()) +
                    " processes used a CUDA allocator: give the file of one of them");
  }
  if (history.reasons().empty())
    return fail(ErrorCode::kBadInput, "no CUDA memory was recorded");
  return fail(ErrorCode::kUnsupported,
              "the recording has no segments, streams and requested sizes of a CUDA allocator (" +
                  history.reasons().front() + ")");
}

}  // namespace gpumemprof
