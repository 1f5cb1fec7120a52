#include "base/large_pages.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

constexpr size_t kPage = kLargePageBytes;

TEST(FreedLargePages, ARegionIsTakenAgainInParts) {
  FreedLargePages pages;
  pages.keep_up_to(8 * kPage);
  auto* whole = static_cast<char*>(pages.take(4 * kPage));
  whole[0] = whole[4 * kPage - 1] = 1;
  pages.give(whole, 4 * kPage);
  EXPECT_EQ(pages.take(kPage), whole);
  EXPECT_EQ(pages.take(3 * kPage), whole + kPage);
}

TEST(FreedLargePages, PartsThatTouchBecomeOneRegionInAnyOrder) {
  for (const auto& order : {std::vector{0, 1, 2}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}}) {
    FreedLargePages pages;
    pages.keep_up_to(8 * kPage);
    auto* whole = static_cast<char*>(pages.take(3 * kPage));
    for (const int part : order) pages.give(whole + part * kPage, kPage);
    EXPECT_EQ(pages.take(3 * kPage), whole);
  }
}

TEST(FreedLargePages, TheSmallestRegionThatFitsIsTaken) {
  FreedLargePages pages;
  pages.keep_up_to(16 * kPage);
  auto* whole = static_cast<char*>(pages.take(9 * kPage));
  pages.give(whole, 4 * kPage);
  pages.give(whole + 5 * kPage, 2 * kPage);  // what lies between stays
  EXPECT_EQ(pages.take(2 * kPage), whole + 5 * kPage);
  EXPECT_EQ(pages.take(3 * kPage), whole);
}

TEST(FreedLargePages, NothingIsKeptAboveTheLimit) {
  const auto is_mapped = [](void* at) { return madvise(at, kPage, MADV_NORMAL) == 0; };
  FreedLargePages pages;
  auto* first = static_cast<char*>(pages.take(2 * kPage));
  pages.give(first, 2 * kPage);
  EXPECT_FALSE(is_mapped(first));
  pages.keep_up_to(2 * kPage);
  first = static_cast<char*>(pages.take(2 * kPage));
  auto* second = static_cast<char*>(pages.take(kPage));
  pages.give(first, 2 * kPage);
  pages.give(second, kPage);
  EXPECT_TRUE(is_mapped(first));
  EXPECT_FALSE(is_mapped(second));
}

}  // namespace
}  // namespace gpumemprof
