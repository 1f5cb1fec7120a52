#include "analysis/pass/moments.h"

#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "trace/label_frames.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

/// Steps 0 and 1 end after the third and the fifth event; the recording begins at 0.
MemorySource two_steps(size_t batch_size) {
  EventBatch events;
  append(&events, {.time_ns = 10, .address = 1, .size_bytes = 100, .stack = 1});
  append(&events, {.time_ns = 20, .address = 2, .size_bytes = 30, .stack = 2});
  append(&events, {.time_ns = 20, .action = Action::kFreeCompleted, .address = 2});
  append(&events, {.time_ns = 30, .address = 3, .size_bytes = 7, .stack = 2});
  append(&events, {.time_ns = 40, .action = Action::kFreeCompleted, .address = 1});
  append(&events, {.time_ns = 50, .address = 4, .size_bytes = 1000, .stack = 1});
  events.marks = {{3, MarkKind::kStep, 0, 0, 25, 0, 0}, {5, MarkKind::kStep, 0, 0, 45, 0, 1}};
  MemorySource source(events, batch_size);
  Tables& tables = source.mutable_tables();
  tables.processes.push_back({.first_time_ns = 5});
  tables.threads.push_back({0, 11, "t"});
  tables.devices.push_back(Device{.size_is_requested = true});
  for (const char* function : {"f", "g"}) {
    tables.stacks.push(0, tables.stacks.intern_frame(
                              {tables.strings.intern("a.py"), tables.strings.intern(function), 1}));
  }
  return source;
}

Analysis at(std::vector<MomentRequest> wanted, size_t batch_size) {
  MemorySource source = two_steps(batch_size);
  AnalysisOptions options;
  options.moments = std::move(wanted);
  return *analyze_source(source, options);
}

TEST(Moments, TheEndOfAStepIsBetweenTwoEventsHoweverTheBatchesLie) {
  for (size_t batch_size : {1, 2, 3, 4, 5, 6, 100}) {
    const Analysis analysis = at(
        {{MomentRequest::kStepEnd, 0}, {MomentRequest::kStepEnd, 1}, {MomentRequest::kStepEnd, 2}},
        batch_size);
    const std::vector<LiveMoment>& moments = analysis.devices[0].live_moments;
    ASSERT_EQ(moments.size(), 3u);
    EXPECT_EQ(moments[0].live_bytes, 100u) << batch_size;
    EXPECT_EQ(moments[0].event, 3u) << batch_size;
    EXPECT_EQ(moments[0].time_ns, 25u);
    ASSERT_EQ(moments[0].holders.size(), 1u);
    EXPECT_EQ(moments[0].holders[0].stack, 1u);
    EXPECT_EQ(moments[0].totals.size(), 2u);
    EXPECT_EQ(moments[1].live_bytes, 7u) << batch_size;
    EXPECT_EQ(moments[1].event, 5u);
    EXPECT_EQ(moments[1].holders[0].stack, 2u);
    EXPECT_FALSE(moments[2].is_reached);
  }
}

TEST(Moments, CategoriesAddUpToWhatWasLive) {
  const Analysis analysis = at({{MomentRequest::kStepEnd, 1}}, 2);
  const LiveMoment& moment = analysis.devices[0].live_moments[0];
  uint64_t sum = 0;
  for (const CategoryHolder& holder : moment.categories) sum += holder.bytes;
  EXPECT_TRUE(sum == 7 || !moment.why_no_categories.empty());
}

TEST(Moments, ATimeIsAfterTheEventsThatHaveIt) {
  for (size_t batch_size : {1, 2, 3, 100}) {
    // The recording begins at 5.
    const Analysis analysis = at({{MomentRequest::kTime, 4},
                                  {MomentRequest::kTime, 15},
                                  {MomentRequest::kTime, 25},
                                  {MomentRequest::kTime, 45},
                                  {MomentRequest::kTime, 46}},
                                 batch_size);
    const std::vector<LiveMoment>& moments = analysis.devices[0].live_moments;
    EXPECT_TRUE(moments[0].is_reached);
    EXPECT_EQ(moments[0].live_bytes, 0u) << batch_size;
    EXPECT_EQ(moments[1].live_bytes, 100u) << batch_size;
    EXPECT_EQ(moments[2].live_bytes, 107u) << batch_size;
    EXPECT_EQ(moments[3].live_bytes, 1007u) << "at the last event";
    EXPECT_FALSE(moments[4].is_reached) << "after the last event nothing is known";
  }
}

TEST(Moments, EachStepHasItsLevels) {
  for (size_t batch_size : {1, 3, 100}) {
    const Analysis analysis = at({}, batch_size);
    const std::vector<StepLevel>& levels = analysis.devices[0].step_levels.levels();
    ASSERT_EQ(levels.size(), 2u);
    EXPECT_EQ(levels[0].end_bytes, 100u);
    EXPECT_EQ(levels[0].most_bytes, 130u);
    EXPECT_EQ(levels[1].end_bytes, 7u);
    EXPECT_EQ(levels[1].least_bytes, 7u);
    EXPECT_EQ(levels[1].most_bytes, 107u);
    EXPECT_EQ(levels[1].end_ns, 45u);
  }
}

}  // namespace
}  // namespace gpumemprof
