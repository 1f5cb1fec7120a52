#include "analysis/compare/peak_memories.h"

#include <gtest/gtest.h>

#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

/// Two CPUs and a GPU; `train.py` lies in /job, model.py elsewhere.
MemorySource cpus_and_gpu() {
  EventBatch events;
  append(&events, {1, Action::kAlloc, 0x10, 700, 1, 0, 0});
  append(&events, {2, Action::kAlloc, 0x20, 300, 2, 0, 0});
  append(&events, {3, Action::kAlloc, 0x10, 900, 3, 0, 1});
  append(&events, {4, Action::kFreeCompleted, 0x20, 0, 0, 0, 0});
  append(&events, {5, Action::kAlloc, 0x10, 64, 0, 0, 2});
  MemorySource source(std::move(events));
  Tables& tables = source.mutable_tables();
  const auto push = [&](const char* file, uint32_t line) {
    tables.stacks.push(0, tables.stacks.intern_frame(
                              {tables.strings.intern(file), tables.strings.intern("f"), line}));
  };
  push("/job/sub/train.py", 4);                                   // 1
  push("/elsewhere/model.py", 7);                                 // 2
  push("/job/.venv/lib/python3.11/site-packages/torch/x.py", 9);  // 3
  tables.processes.resize(1);
  tables.threads.resize(1);
  tables.devices = {
      {.size_is_requested = true}, {.size_is_requested = true}, {.type = 1, .index = 0}};
  return source;
}

TEST(PeakMemories, OfEachKindTheDeviceThatHeldMostCounts) {
  MemorySource source = cpus_and_gpu();
  const Analysis analysis = *analyze_source(source, {});
  const auto memories = peak_memories(analysis, source.tables(), "/job", {});
  ASSERT_EQ(memories.size(), 2u);
  EXPECT_EQ(memories[0].kind, "cpu");
  EXPECT_EQ(memories[0].peak_bytes, 1000u);
  EXPECT_EQ(memories[0].basis, "requested");
  EXPECT_EQ(memories[0].end_bytes, 700u);
  EXPECT_EQ(memories[1].kind, "cuda");
  EXPECT_EQ(memories[1].peak_bytes, 64u);
  EXPECT_EQ(memories[1].basis, "allocated");
}

TEST(PeakMemories, TheRankIsThatOfTheProcessAmongSeveral) {
  MemorySource source = cpus_and_gpu();
  Tables& tables = source.mutable_tables();
  tables.processes.resize(2);
  tables.processes[0].rank = 3;
  const Analysis analysis = *analyze_source(source, {});
  EXPECT_EQ(peak_memories(analysis, tables, "/job", {})[0].rank, std::nullopt);
  tables.processes[1].rank = 4;
  EXPECT_EQ(peak_memories(analysis, tables, "/job", {})[0].rank, 3u);
}

TEST(PeakMemories, NoPathOfTheMachineIsInALine) {
  MemorySource source = cpus_and_gpu();
  const Analysis analysis = *analyze_source(source, {});
  const auto memories = peak_memories(analysis, source.tables(), "/job",
                                      [](const Process&, const std::string& file, uint32_t line) {
                                        return file + std::to_string(line);
                                      });
  ASSERT_EQ(memories[0].lines.size(), 2u);
  EXPECT_EQ(memories[0].lines[0].file, "sub/train.py");
  EXPECT_EQ(memories[0].lines[0].bytes, 700u);
  EXPECT_EQ(memories[0].lines[0].source, "/job/sub/train.py4");
  EXPECT_EQ(memories[0].lines[1].file, "model.py");
  ASSERT_EQ(memories[0].lines_at_end.size(), 1u);
  EXPECT_EQ(memories[1].lines.at(0).file, "") << "no stack";
}

}  // namespace
}  // namespace gpumemprof
