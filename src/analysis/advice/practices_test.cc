#include "analysis/advice/practices.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gpumemprof
