#include "analysis/categories/loader_tasks.h"

#include <gtest/gtest.h>

#include "analysis/leaks/graph_lives.h"
#include "analysis/leaks/leak_history.h"
#include "analysis/leaks/leak_period.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kTasks = 40, kItems = 8, kJoined = 3, kItemBytes = 1024;
constexpr uint16_t kShared = 1;

/// A DataLoader's worker, whose tasks make kItems items and join them into kJoined tensors.
class LoaderTasks : public testing::Test {
 protected:
  LoaderTasks() {
    tables_.processes.resize(1);
    tables_.threads.resize(1);
    tables_.devices = {{.type = 0}, {.type = 0, .layer = Layer::kHost}};
    const uint32_t run = tables_.stacks.push(
        0, frame("/usr/lib/python3.11/multiprocessing/process.py", "BaseProcess.run", 108));
    item_ = at_line(run, 54, "Items.__getitem__");
    join_ = at_line(run, 57, "collate");
  }
  void task() {
    for (uint64_t i = 0; i < kItems; ++i) make(0, kItemBytes, item_);
    for (uint64_t i = 0; i < kJoined; ++i) make(kShared, kItems * kItemBytes, join_);
  }
  std::optional<Rounds> rounds() {
    LeakGatherer gatherer;
    const LiveState state;
    gatherer.begin_batch(events_, tables_, state);
    for (size_t i = 0; i < events_.size(); ++i) gatherer.on_alloc(i, events_.device[i]);
    gatherer.end_batch();
    const auto histories =
        gatherer.finish(state, [](uint16_t) { return std::span<const LiveBlock>(); });
    std::string why;
    return find_rounds(histories.at(0), tables_, 0, &why);
  }
  LoaderBatches batches() {
    MemorySource source(events_);
    source.mutable_tables() = tables_;
    const auto graph = gather_graph_lives(source, {});
    return graph ? graph->loader_batches.at({0, join_}) : LoaderBatches();
  }
  void make(uint16_t device, uint64_t size_bytes, uint32_t stack) {
    EventRow row{.time_ns = ++time_, .address = time_, .size_bytes = size_bytes};
    row.device = device, row.stack = stack;
    append(&events_, row);
  }

  Tables tables_;
  EventBatch events_;
  uint64_t time_ = 0;
  uint32_t item_ = 0, join_ = 0;

 private:
  uint32_t frame(std::string_view file, std::string_view function, uint32_t line) {
    return tables_.stacks.intern_frame(
        {tables_.strings.intern(file), tables_.strings.intern(function), line});
  }
  uint32_t at_line(uint32_t run, uint32_t line, std::string_view function) {
    const uint32_t fetch = tables_.stacks.push(
        run, frame("/v/torch/utils/data/_utils/fetch.py", "_MapDatasetFetcher.fetch", line));
    return tables_.stacks.push(fetch, frame("/srv/me/data.py", function, line));
  }
};

TEST_F(LoaderTasks, ATaskIsARoundHoweverManyBlocksItMakes) {
  for (uint64_t i = 0; i < kTasks; ++i) task();
  const auto found = rounds();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->count, kTasks);
  EXPECT_EQ(found->allocs_a_round, found->stack == item_ ? kItems : kJoined);
}

TEST_F(LoaderTasks, ABatchIsAllThatATaskJoins) {
  for (uint64_t i = 0; i < kTasks; ++i) task();
  make(0, kItemBytes, item_);
  make(kShared, kItemBytes, join_);  // the last one is smaller
  EXPECT_EQ(batches().tasks, kTasks + 1);
  EXPECT_EQ(batches().largest_bytes, kJoined * kItems * kItemBytes);
}

TEST_F(LoaderTasks, WhereItemsAllocateNothingTasksAreNotToldApart) {
  for (uint64_t i = 0; i < kTasks * kJoined; ++i) make(kShared, kItemBytes, join_);
  EXPECT_EQ(batches().tasks, 1);
  const auto found = rounds();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->count, kTasks * kJoined);
}

}  // namespace
}  // namespace gpumemprof
