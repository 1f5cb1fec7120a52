#include "readers/torch_snapshot/assemble.h"

#include <algorithm>
#include <map>

namespace gpumemprof::torch_snapshot {
namespace {

constexpr int32_t kHost = -1;
class Assembler {
 public:
  explicit Assembler(Builder& builder) : texts_(builder.texts()), parts_(builder.parts()) {}

  Result<AllocatorSnapshot> run(const SnapshotRecord& record, uint64_t end) {
    take_traces(record.traces, false);
    take_traces(record.host_traces, true);
    take_segments(record.segments, false);
    take_segments(record.host_segments, true);
    if (too_many_) return fail_at(end, "a device has more than 65,536 streams or memory pools");
    if (record.annotations != kNoPart)
      out_.annotations = std::move(parts_.annotation_lists[record.annotations]);
    if (record.settings != kNoPart) out_.settings = std::move(parts_.settings[record.settings]);
    finish_traces();
    say_what_was_not_read();
    count_what_is_not_kept();
    out_.info.kind = SourceKind::kPytorchSnapshot;
    out_.info.writer_version_hint = version_hint(parts_.seen, record.keys, has_annotate_);
    out_.tables.strings = std::move(parts_.tables.strings);
    out_.tables.stacks = std::move(parts_.tables.stacks);
    return std::move(out_);
  }

 private:
  struct PerDevice {
    AllocatorTrace trace;
    absl::flat_hash_map<int64_t, uint16_t> streams;
    absl::flat_hash_map<uint32_t, uint16_t> pools;  // by index of Parts::pairs
  };

  PerDevice& device(int32_t number) {
    auto [known, added] = by_device_.try_emplace(number);
    PerDevice& device = known->second;
    if (added) {
      device.trace.device = number;
      device.trace.streams = {0};
      device.trace.pools = {{0, 0}};
      device.streams.emplace(0, 0);
      device.pools.emplace(0, 0);
    }
    return device;
  }

  /// The place of a list is its device; those of pinned memory are one.
  void take_traces(uint32_t list, bool is_host) {
    if (list == kNoPart) return;
    for (size_t i = 0; i < parts_.trace_lists[list].size(); ++i) {
      const uint32_t index = parts_.trace_lists[list][i];
      if (index == kNoPart || !parts_.traces[index]) continue;
      const int32_t device = is_host ? kHost : static_cast<int32_t>(i);
      if (device > INT8_MAX || by_device_.contains(device)) {
        out_.loss.add(parts_.traces[index]->trace.events.size(), 0,
                      "the events of one device exceed the space left by the others");
        continue;
      }
      TraceRecord& record = *parts_.traces[index];
      AllocatorTrace& trace =
          (by_device_[device] = {std::move(record.trace), std::move(record.streams),
                                 std::move(record.pools)})
              .trace;
      trace.device = device;
      trace.has_history = !trace.events.empty();
      parts_.traces[index].reset();
    }
  }

  void take_segments(uint32_t list, bool is_host) {
    if (list == kNoPart) return;
    auto& records = parts_.segment_lists[list];
    for (SegmentRecord& record : records) {
      PerDevice& held = device(is_host ? kHost : static_cast<int32_t>(record.device));
      if (held.trace.segments.empty()) held.trace.segments.reserve(records.size());
      record.segment.stream =
          index_of(&held.streams, &held.trace.streams, record.stream, record.stream);
      record.segment.pool =
          index_of(&held.pools, &held.trace.pools, record.pool, parts_.pairs[record.pool]);
      held.trace.segments.push_back(std::move(record.segment));
    }
  }

  template <class Key, class T>
  uint16_t index_of(absl::flat_hash_map<Key, uint16_t>* known, std::vector<T>* list, Key key,
                    const T& value) {
    auto [found, added] = known->try_emplace(key, static_cast<uint16_t>(list->size()));
    if (added) list->push_back(value);
    too_many_ |= list->size() > kMostIndexes;
    return found->second;
  }

  void finish_traces() {
    uint64_t uneven = 0, wrong_sums = 0;
    for (auto& [number, held] : by_device_) {
      AllocatorTrace& trace = held.trace;
      std::ranges::sort(trace.segments, {}, &AllocatorSegment::address);
      for (AllocatorSegment& segment : trace.segments) check(&segment, &uneven, &wrong_sums);
      trace.overflowed = parts_.ring_overflowed;
    }
    if (uneven != 0) {
      out_.loss.add(0, 0, std::to_string(uneven) + " segments are not filled by their blocks");
    }
    if (wrong_sums != 0) {
      out_.loss.add(
          0, 0, std::to_string(wrong_sums) + " segments have sums that differ from their blocks");
    }
    for (bool host : {false, true}) {  // pinned memory last, so that device 0 is the first
      for (auto& [number, held] : by_device_) {
        if ((number == kHost) != host) continue;
        Device memory;
        memory.process = UINT32_MAX;  // the file does not name one
        memory.type = host ? 0 : 1;   // c10::DeviceType: CPU or CUDA
        memory.index = static_cast<int8_t>(number);
        memory.size_is_requested = true;
        out_.tables.devices.push_back(memory);
        out_.traces.push_back(std::move(held.trace));
      }
    }
  }

  /// Brings the blocks into order, gives them the addresses that torch 2.0 leaves out, and compares
  /// them with what the segment says of itself.
  static void check(AllocatorSegment* segment, uint64_t* uneven, uint64_t* wrong_sums) {
    std::vector<AllocatorBlock>& blocks = segment->blocks;
    const bool has_addresses =
        std::ranges::any_of(blocks, [](const AllocatorBlock& block) { return block.address != 0; });
    if (has_addresses && !std::ranges::is_sorted(blocks, {}, &AllocatorBlock::address))
      std::ranges::sort(blocks, {}, &AllocatorBlock::address);
    uint64_t at = segment->address, allocated = 0, active = 0, requested = 0;
    bool even = true;
    for (AllocatorBlock& block : blocks) {
      if (!has_addresses) block.address = at;
      even &= block.address == at;
      at = block.address + block.size_bytes;
      if (block.state == BlockState::kFree) continue;
      active += block.size_bytes;
      requested += block.requested_bytes;
      if (block.state == BlockState::kAllocated) allocated += block.size_bytes;
    }
    *uneven += !even || at != segment->address + segment->size_bytes;
    *wrong_sums += allocated != segment->allocated_bytes || active != segment->active_bytes ||
                   requested != segment->requested_bytes;
  }

  void say_what_was_not_read() {
    std::map<std::string, uint64_t> actions;  // in an order that does not depend on a hash
    for (const auto& [id, events] : parts_.unread_actions) {
      if (id == kWordAnnotate) has_annotate_ = true;
      // Marks in the trace, not changes of memory: nothing is less exact without them.
      if (id == kWordAnnotate || id == kWordWorkspaceSnapshot) {
        out_.loss.add(0, 0,
                      std::to_string(events) + " marks '" + std::string(texts_.get(id)) +
                          "' in the trace are ignored");
      } else if (actions.size() < 16) {
        actions[std::string(texts_.get(id).substr(0, 64))] += events;
      } else {
        actions["others"] += events;
      }
    }
    for (const auto& [name, events] : actions) {
      out_.loss.add(events, 0, "events of the unknown action '" + name + "'");
    }
    for (uint32_t id : parts_.unread_keys) {
      out_.loss.add(
          0, 0, "the unknown key '" + std::string(texts_.get(id).substr(0, 64)) + "' is not read");
    }
    for (const std::string& name : parts_.unread_layouts) {
      out_.loss.add(0, 0, "'" + name + "' has an unknown layout and is not read");
    }
  }

  void count_what_is_not_kept() {
    const auto add = [&](uint64_t count, const char* what) {
      if (count != 0) out_.not_kept.push_back({count, what});
    };
    add(parts_.forward_frames, "events' forward_frames");
    add(parts_.categories, "events' categories");
    add(parts_.other_contexts, "compile contexts or user metadata that are not strings");
    add(parts_.fx_frames, "torch.fx notes of frames");
  }

  const Texts& texts_;
  Parts& parts_;
  AllocatorSnapshot out_;
  std::map<int32_t, PerDevice> by_device_;
  bool too_many_ = false;
  bool has_annotate_ = false;
};

}  // namespace

Result<AllocatorSnapshot> assemble(Builder& builder, const Value& top, uint64_t end) {
  Parts& parts = builder.parts();
  if (top.kind == Kind::kWrong) return std::unexpected(builder.complaint(top));
  SnapshotRecord record;
  if (top.kind == Kind::kSnapshot) {
    record = parts.snapshots[top.bits];
  } else if (top.kind == Kind::kSegments) {  // torch.cuda.memory_snapshot()
    record.segments = static_cast<uint32_t>(top.bits);
  } else if (top.kind != Kind::kEmptyList) {  // the same of a program without a segment
    return fail_at(end, "not a PyTorch memory snapshot: it has neither segments nor device_traces");
  }
  return Assembler(builder).run(record, end);
}

}  // namespace gpumemprof::torch_snapshot
