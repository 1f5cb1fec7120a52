#include "report/describe/snapshot_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/size.h"
#include "report/user_code.h"

namespace gpumemprof {
namespace {

/// 4 GiB that were refused, where 4,970 MiB more would have held them and two settings would not.
OomExplanation refusal_that_no_setting_helps() {
  OomExplanation oom;
  oom.asked_bytes = 4096 * kMiB;
  oom.missing_bytes = 3900 * kMiB;  // 3.8086 GiB
  oom.is_reproduced = true;
  oom.trials = {{.settings = "expandable_segments:True"}, {.settings = "max_split_size_mb:64"}};
  oom.more_bytes_needed = 4970 * kMiB;  // 4.8535 GiB
  return oom;
}

TEST(SnapshotWords, WhatARequestNeededIsRoundedUpAndNotMoreThanThatIsPromised) {
  OomExplanation oom = refusal_that_no_setting_helps();
  EXPECT_EQ(what_would_have_fitted(oom),
            "No allocator setting helps (2 simulated, as by whatif --sweep). This request would "
            "have fitted with 4.86 GiB more device memory; what follows is unknown.");
  EXPECT_EQ(why_refused(oom), "The device had 0 B left.");
  oom.room.basis = RoomBasis::kLimit;
  EXPECT_EQ(what_would_have_fitted(oom),
            "No allocator setting helps (2 simulated, as by whatif --sweep). This request would "
            "have fitted with a limit higher by 4.86 GiB; what follows is unknown.");
  // Where the replay does not know it, all that was free is subtracted.
  oom.room = {}, oom.is_reproduced = false;
  EXPECT_EQ(why_refused(oom), "The device had 0 B left: at least 3.81 GiB too little.");
}

TEST(SnapshotWords, TheLargestRequestThatFitsNamesThePoolOfSmallBlocks) {
  OomExplanation oom{.asked_bytes = 3 * kMiB};
  const auto details = [&](uint64_t fit_bytes) {
    oom.largest_fit_bytes = fit_bytes;
    return oom_details(oom, {.is_consistent = true}, {}, "", true);
  };
  EXPECT_THAT(details(2 * kMiB), testing::Contains(
      "A request of up to 2.00 MiB would have been served, 1.00 MiB less."));
  EXPECT_THAT(details(kMiB), testing::Contains(
      "A request of up to 1.00 MiB would have been served by the pool of small blocks, 2.00 MiB "
      "less."));
  EXPECT_THAT(details(0),
              testing::Contains("No request, however small, would have been served."));
}

TEST(SnapshotWords, ARetryIsToldWithWhatItReleased) {
  SnapshotDevice device;
  EXPECT_EQ(retries_sentence(device), "");
  device.retries = {.count = 1, .first_event = 4, .released_bytes = 600 * kMiB};
  EXPECT_EQ(retries_sentence(device), "1 retry, at event 5: no more memory could be reserved, so "
                                      "600 MiB of cache were released first.");
  device.retries.count = 2;
  EXPECT_EQ(retries_sentence(device), "2 retries, the first at event 5: no more memory could be "
                                      "reserved, so 600 MiB of cache were released first, in all.");
}

TEST(SnapshotWords, WhatTheHeadlineHasIsNotSaidAgain) {
  const OomExplanation oom = refusal_that_no_setting_helps();
  const SnapshotDevice device{.is_consistent = true};
  const auto details = [&](bool is_headline) {
    return oom_details(oom, device, {}, "", is_headline);
  };
  EXPECT_THAT(details(true), testing::Each(testing::Not(testing::HasSubstr("would have fitted"))));
  EXPECT_THAT(details(true), testing::Each(testing::Not(testing::HasSubstr("simulated"))));
  EXPECT_THAT(details(false), testing::Contains(what_would_have_fitted(oom)));
}

TEST(SnapshotWords, OfOnePieceInAPrivatePoolThePoolIsNamed) {
  OomExplanation oom{.asked_bytes = 500 * kMiB, .device_free_bytes = 300 * kMiB,
                     .free_inside_bytes = 850 * kMiB, .cause = RefusalCause::kOtherCache};
  oom.other_cache = {.place = "private pool (0,1)", .piece_bytes = 850 * kMiB};
  EXPECT_EQ(why_refused(oom),
            "The device had 300 MiB left, and 850 MiB were free in one piece, but in private pool "
            "(0,1).");
  EXPECT_THAT(oom_details(oom, {.is_consistent = true}, {}, "", true),
              testing::Contains(
                  "Why: 850 MiB were free in one piece, but in private pool (0,1)."));
}

TEST(SnapshotWords, ARefusalForFragmentationNamesWhatPinsTheFreePieces) {
  OomExplanation oom{.asked_bytes = 700 * kMiB, .cause = RefusalCause::kFragmentation};
  const SegmentPicture segment{
      .pinned_bytes = 19 * kMiB,
      .blocks = {{kMiB, 0, SimulatedBlock::State::kAllocated}, {19 * kMiB}}};
  oom.moment.segments = {segment, segment};
  EXPECT_THAT(oom_details(oom, {.is_consistent = true}, {}, "", true),
              testing::Contains("Pinned: 38.0 MiB in 2 segments by 2.00 MiB of " +
                                headline_text({}, 0, "") + '.'));
  oom.cause = RefusalCause::kWantOfMemory;
  EXPECT_THAT(oom_details(oom, {.is_consistent = true}, {}, "", true),
              testing::Each(testing::Not(testing::StartsWith("Pinned"))));
}

}  // namespace
}  // namespace gpumemprof
