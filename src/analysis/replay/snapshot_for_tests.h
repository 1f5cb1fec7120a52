// A snapshot whose every figure can be worked out on paper.
#pragma once

#include "base/size.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// Builds one device's history. Each site is a stack of one frame, train.py:N.
class PaperSnapshot {
 public:
  static constexpr uint64_t kFirst = 0x7f0000000000, kSecond = 0x7f0010000000;

  PaperSnapshot() {
    Tables& tables = snapshot.tables;
    tables.devices = {{.process = UINT32_MAX, .type = 1, .index = 0, .size_is_requested = true}};
    snapshot.info = {.path = "paper", .kind = SourceKind::kPytorchSnapshot, .bytes = 1};
    snapshot.info.writer_version_hint = "torch 2.7 or 2.8";
    snapshot.info.can = {.times = true, .addresses = true, .stacks = true, .segments = true};
    snapshot.settings.known = true;
    AllocatorTrace& trace = snapshot.traces.emplace_back();
    trace.has_times = trace.has_history = true;
    trace.streams = {0};
    trace.pools = {{0, 0}};
  }

  uint32_t site(uint32_t line) {
    Tables& tables = snapshot.tables;
    const uint32_t frame = tables.stacks.intern_frame(
        {tables.strings.intern("/job/train.py"), tables.strings.intern("f"), line});
    return tables.stacks.push(0, frame);
  }
  void add(Action action, uint64_t address, uint64_t size_bytes, uint32_t line) {
    AllocatorTrace& trace = snapshot.traces[0];
    trace.events.append({.address = address,
                         .size_bytes = size_bytes,
                         .time_us = 1000 + static_cast<int64_t>(trace.events.size()),
                         .stack = site(line),
                         .action = action});
  }
  void free(uint64_t address, uint64_t size_bytes, uint32_t line) {
    add(Action::kFreeRequested, address, size_bytes, line);
    add(Action::kFreeCompleted, address, size_bytes, line);
  }
  /// Pieces as {bytes, line}; line 0 is free.
  void segment(uint64_t address, std::vector<std::pair<uint64_t, uint32_t>> pieces) {
    AllocatorSegment segment{.address = address, .is_large = true};
    for (auto [bytes, line] : pieces) {
      const bool live = line != 0;
      segment.blocks.push_back({.address = address + segment.size_bytes,
                                .size_bytes = bytes,
                                .requested_bytes = bytes,
                                .stack = live ? site(line) : 0,
                                .state = live ? BlockState::kAllocated : BlockState::kFree});
      segment.size_bytes += bytes;
      if (!live) continue;
      segment.allocated_bytes += bytes;
      segment.active_bytes += bytes;
      segment.requested_bytes += bytes;
    }
    snapshot.traces[0].segments.push_back(std::move(segment));
  }

  AllocatorSnapshot snapshot;
};

/// 20 MiB of which line 2 keeps 4 MiB amid free pieces (12 behind it), 16 MiB of line 4, then 32
/// MiB of line 5 are refused with 24 MiB free on the device.
inline PaperSnapshot out_of_memory_on_paper() {
  using P = PaperSnapshot;
  P paper;
  paper.add(Action::kSegmentAlloc, P::kFirst, 20 * kMiB, 1);
  paper.add(Action::kAlloc, P::kFirst, 4 * kMiB, 1);
  paper.add(Action::kAlloc, P::kFirst + 4 * kMiB, 4 * kMiB, 2);
  paper.add(Action::kAlloc, P::kFirst + 8 * kMiB, 4 * kMiB, 3);
  paper.free(P::kFirst, 4 * kMiB, 1);
  paper.free(P::kFirst + 8 * kMiB, 4 * kMiB, 3);
  paper.add(Action::kSegmentAlloc, P::kSecond, 16 * kMiB, 4);
  paper.add(Action::kAlloc, P::kSecond, 16 * kMiB, 4);
  paper.add(Action::kOom, 24 * kMiB, 32 * kMiB, 5);
  paper.segment(P::kFirst, {{4 * kMiB, 0}, {4 * kMiB, 2}, {12 * kMiB, 0}});
  paper.segment(P::kSecond, {{16 * kMiB, 4}});
  return paper;
}

}  // namespace gpumemprof
