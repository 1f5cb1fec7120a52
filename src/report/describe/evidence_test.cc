#include "report/describe/sections.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

using EvidenceWhen = EvidencePlace::When;

TEST(EvidenceOfFindings, ASpikeHasItsHighestMomentAndSwingsHaveNone) {
  Analysis analysis;
  analysis.devices.resize(1);
  const auto spike = evidence_of(
      Finding{.kind = FindingKind::kSpike, .evidence = {{"highest_bytes", 700}}}, analysis);
  ASSERT_TRUE(spike);
  EXPECT_EQ(spike->when, EvidenceWhen::kLevel);
  EXPECT_EQ(spike->number, 700u);
  EXPECT_FALSE(evidence_of(Finding{.kind = FindingKind::kSawtooth}, analysis));
}

TEST(EvidenceOfFindings, ARefusalOfTheHostIsShownAmongItsHolders) {
  Analysis analysis;
  analysis.devices.resize(1);
  analysis.devices[0].refusals = {{.size_bytes = 8, .event = 50, .stack = 0, .number = 3,
                                   .live_bytes = 0}};
  const auto told = [&](uint64_t event) {
    return evidence_of(
        Finding{.kind = FindingKind::kOutOfMemory, .evidence = {{"event_index", event}}}, analysis);
  };
  ASSERT_TRUE(told(50));
  EXPECT_EQ(told(50)->view, EvidencePlace::View::kHolders);
  EXPECT_EQ(told(50)->when, EvidenceWhen::kRefusal);
  EXPECT_EQ(told(50)->number, 3u);
  EXPECT_FALSE(told(51));
}

}  // namespace
}  // namespace gpumemprof
