#include "analysis/finding_kind.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(FindingKind, HasTheNameThatReportsAndConditionsUse) {
  EXPECT_STREQ(finding_kind_name(FindingKind::kLeak), "leak");
  EXPECT_STREQ(finding_kind_name(FindingKind::kSteadyGrowth), "steady_growth");
  EXPECT_STREQ(finding_kind_name(FindingKind::kOutOfMemory), "out_of_memory");
  EXPECT_STREQ(finding_kind_name(FindingKind::kPinnedCacheGrowth), "pinned_cache_growth");
  EXPECT_STREQ(finding_kind_name(FindingKind::kKilledByTheKernel), "killed_by_the_kernel");
  EXPECT_STREQ(finding_kind_name(FindingKind::kCheckpointStaging), "checkpoint_staging");
}

TEST(FindingKind, IsFoundByItsNameAlone) {
  for (int i = 0; i <= int(FindingKind::kCheckpointStaging); ++i) {
    const auto kind = FindingKind(i);
    EXPECT_EQ(finding_kind_of(finding_kind_name(kind)), kind);
  }
  EXPECT_EQ(finding_kind_of("leaks"), std::nullopt);
}

}  // namespace
}  // namespace gpumemprof
