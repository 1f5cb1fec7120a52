// Programs whose memory is known step by step, as recordings.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/finding_figure.h"
#include "analysis/series/recording_patterns.h"
#include "base/size.h"
#include "trace/memory_source.h"

namespace gpumemprof {

inline constexpr uint64_t kMs = 1'000'000;

/// Rounds of 10 ms: a floor of 100 MiB, a rise to `high(round)`, the floor plus `kept(round)`, which
/// t.py:7 keeps.
template <class High, class Kept>
MemorySource rounds(size_t count, bool with_steps, High high, Kept kept, uint64_t first_ns = 0) {
  EventBatch events;
  append(&events, {.time_ns = first_ns, .address = 1, .size_bytes = 100 * kMiB});
  uint64_t address = 2;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t start = first_ns + i * 10 * kMs;
    if (kept(i) != 0) {
      append(&events, {.time_ns = start, .address = address++, .size_bytes = kept(i) * kMiB,
                       .stack = 1});
    }
    append(&events, {.time_ns = start + 3 * kMs, .address = address, .size_bytes = high(i) * kMiB});
    append(&events,
           {.time_ns = start + 8 * kMs, .action = Action::kFreeCompleted, .address = address++});
    if (!with_steps) continue;
    events.marks.push_back(
        {static_cast<uint32_t>(events.size()), MarkKind::kStep, 0, 0, start + 9 * kMs, 0, i});
  }
  MemorySource source(events);
  Tables& tables = source.mutable_tables();
  const uint32_t file = tables.strings.intern("/job/t.py");
  tables.stacks.push(0, tables.stacks.intern_frame({.file = file, .function = file, .line = 7}));
  tables.processes.emplace_back();
  tables.threads.push_back({0, 11, "t"});
  tables.devices.push_back(Device{.size_is_requested = true});
  return source;
}

/// A program written out, on one device.
class SteppedProgram {
 public:
  uint64_t allocate(uint64_t mib) { return allocate_bytes(mib * kMiB); }
  uint64_t allocate_bytes(uint64_t bytes) {
    append(&events_, {.time_ns = now_, .address = ++address_, .size_bytes = bytes});
    return address_;
  }
  void free(uint64_t address) {
    append(&events_, {.time_ns = now_, .action = Action::kFreeCompleted, .address = address});
  }
  void wait(uint64_t ms) { now_ += ms * kMs; }
  /// Memory rises by each of these for 1 ms, one after the other; then the step ends.
  void step(const std::vector<uint64_t>& rises_mib) {
    for (uint64_t mib : rises_mib) {
      const uint64_t block = allocate(mib);
      wait(1);
      free(block);
      wait(1);
    }
    end_step();
  }
  void end_step() {
    wait(1);
    events_.marks.push_back(
        {static_cast<uint32_t>(events_.size()), MarkKind::kStep, 0, 0, now_, 0, steps_++});
    wait(1);
  }
  MemorySource source() const {
    MemorySource source(events_);
    Tables& tables = source.mutable_tables();
    tables.processes.emplace_back();
    tables.threads.push_back({0, 11, "t"});
    tables.devices.push_back(Device{.size_is_requested = true});
    return source;
  }

 private:
  EventBatch events_;
  uint64_t now_ = 0, address_ = 0, steps_ = 0;
};

inline Analysis analyzed(MemorySource source, std::optional<uint64_t> capacity = std::nullopt) {
  Analysis analysis = *analyze_source(source, {});
  add_patterns(source.tables(), capacity, &analysis);
  return analysis;
}

inline std::optional<uint64_t> figure(const Finding& finding, std::string_view name) {
  const uint64_t* value = find_figure(finding, name);
  return value ? std::optional(*value) : std::nullopt;
}

inline const Finding* found(const Analysis& analysis, FindingKind kind) {
  const auto at = std::ranges::find(analysis.findings, kind, &Finding::kind);
  return at == analysis.findings.end() ? nullptr : &*at;
}

inline const auto kNothing = [](size_t) { return 0; };
inline const auto kTwenty = [](size_t) { return 20; };

}  // namespace gpumemprof
