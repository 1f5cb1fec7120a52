#include "analysis/advice/practices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

TEST(Practices, LargeRecordingsAreNotReadAgainInPassing) {
  Analysis analysis;
  analysis.events = kMostEventsInPassing + 1;
  unsigned opened = 0;
  const SourceOpener open = [&]() -> Result<std::unique_ptr<EventSource>> {
    ++opened;
    return fail(ErrorCode::kSystem, "opened");
  };
  const auto report = advise_in_passing(analysis, Tables(), open, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(opened, 0u);
  EXPECT_FALSE(report->applies);
  ASSERT_EQ(report->unknown.size(), 1u);
  EXPECT_NE(report->unknown[0].second.find("5000000 events"), std::string::npos);
  EXPECT_NE(report->unknown[0].second.find("--advice"), std::string::npos);
}

TEST(Practices, TellTheLineOfWhichAllStacksTogetherHaveMostInWhateverOrder) {
  Tables tables;
  const auto stack = [&](uint32_t line, const char* module) {
    const uint32_t called = tables.stacks.push(
        0, tables.stacks.intern_frame({tables.strings.intern("/me/net.py"), tables.strings.intern("forward"), line}));
    return tables.stacks.push(called, tables.stacks.intern_frame({tables.strings.intern(kModuleFile),
                                                                  tables.strings.intern(module), 0}));
  };
  std::vector<std::pair<uint32_t, uint64_t>> held = {
      {stack(9, "a"), 300}, {stack(10, "a"), 500}, {stack(9, "b"), 300}};
  for (int order = 0; order < 6; ++order) {
    PracticeCandidate candidate{DeviceAnalysis()};
    for (const auto& [one, bytes] : held) candidate.tell_line(one, bytes, tables);
    EXPECT_EQ(tables.stacks.frame_of(candidate.advice.stack).line, 9u);
    std::ranges::next_permutation(held);
  }
}

}  // namespace
}  // namespace gpumemprof
