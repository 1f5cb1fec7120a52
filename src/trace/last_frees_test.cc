#include "trace/last_frees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LastFrees, AreThoseSinceTheLastAllocationOfTheProcess) {
  LastFrees<int> frees;
  EXPECT_THAT(frees.of(0, 0), IsEmpty());
  frees.on_free(0, 0, 1);  // of what was live before
  EXPECT_THAT(frees.of(0, 0), ElementsAre(1));
  frees.on_alloc(0);
  EXPECT_THAT(frees.of(0, 0), IsEmpty());
  frees.on_free(0, 0, 2), frees.on_free(1, 0, 3), frees.on_free(0, 0, 4);
  EXPECT_THAT(frees.of(0, 0), ElementsAre(2, 4));
  EXPECT_THAT(frees.of(1, 0), ElementsAre(3));
}

TEST(LastFrees, AnAllocationOnAnotherDeviceOfTheProcessEmptiesAll) {
  LastFrees<int> frees;
  frees.on_free(1, 7, 1), frees.on_free(2, 8, 2);
  frees.on_alloc(7);
  EXPECT_THAT(frees.of(1, 7), IsEmpty());
  EXPECT_THAT(frees.of(2, 8), ElementsAre(2));  // of another process
  frees.on_free(1, 7, 3);
  EXPECT_THAT(frees.of(1, 7), ElementsAre(3));
}

}  // namespace
}  // namespace gpumemprof
