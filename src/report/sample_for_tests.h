// A small recording whose every figure can be worked out on paper.
#pragma once

#include "analysis/analysis.h"
#include "trace/memory_source.h"

namespace gpumemprof {

/// Two processes. In the first, "cpu" peaks at 1000 bytes at event 2: train.py:41 holds 700 in two
/// stacks, model.py:7 holds 300. In the second, 50 bytes without a stack.
inline MemorySource sample_source() {
  constexpr uint64_t kMs = 1'000'000;
  EventBatch events;
  append(&events, {1000 * kMs, Action::kAlloc, 0x10, 500, 3, 0, 0});
  append(&events, {1500 * kMs, Action::kAlloc, 0x20, 300, 4, 0, 0});
  append(&events, {3000 * kMs, Action::kAlloc, 0x30, 200, 6, 0, 0});
  append(&events, {3000 * kMs + 400, Action::kFreeCompleted, 0x30, 0, 0, 0, 0});
  append(&events, {4000 * kMs, Action::kAlloc, 0x10, 50, 0, 1, 1});
  append(&events, {5000 * kMs, Action::kFreeCompleted, 0x99, 0, 0, 0, 0});
  MemorySource source(std::move(events));
  Tables& tables = source.mutable_tables();
  const auto frame = [&](const char* file, uint32_t line, const char* function) {
    return tables.stacks.intern_frame(
        {tables.strings.intern(file), tables.strings.intern(function), line});
  };
  const uint32_t main = tables.stacks.push(0, frame("/opt/job/train.py", 90, "<module>"));  // 1
  const uint32_t step = tables.stacks.push(main, frame("/opt/job/train.py", 41, "step"));   // 2
  tables.stacks.push(step,
                     frame("/venv/lib/python3.11/site-packages/torch/nn/f.py", 5, "relu"));  // 3
  tables.stacks.push(main, frame("/opt/job/model.py", 7, "Model.__init__"));                 // 4
  const uint32_t hidden =
      tables.stacks.push(step, frame("/usr/lib/python3.11/functools.py", 2, "call"));  // 5
  tables.stacks.push(hidden,
                     frame("/venv/lib/python3.11/site-packages/torch/nn/f.py", 9, "gelu"));  // 6
  tables.processes = {{.pid = 11,
                       .command = "/usr/bin/python train.py",
                       .stacks = "python",
                       .exited_cleanly = true,
                       .first_time_ns = 500 * kMs,
                       .realtime_offset_ns = 7000},
                      {.pid = 12,
                       .parent_pid = 11,
                       .command = "worker",
                       .stacks = "none: no Python in the process"}};
  tables.devices = {{.process = 0, .size_is_requested = true},
                    {.process = 1, .size_is_requested = true}};
  tables.threads = {{.process = 0, .tid = 11, .name = "python"},
                    {.process = 1, .tid = 12, .name = "w"}};
  return source;
}

inline Analysis analyze_all(MemorySource& source) { return *analyze_source(source, {}); }

}  // namespace gpumemprof
