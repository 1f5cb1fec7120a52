#include "trace/site_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace gpumemprof {
namespace {

TEST(SiteTable, IsAMapOfAnyIdsInTheOrderOfTheirFirstUse) {
  std::mt19937 chance(1);
  SiteTable table;
  std::map<uint32_t, uint64_t> expected;
  std::vector<uint32_t> order;
  for (int i = 0; i < 20'000; ++i) {
    const uint32_t id = i % 3 == 0 ? chance() : chance() % 5'000;
    if (expected.try_emplace(id, 0).second) order.push_back(id);
    expected[id] += id + 1u;
    table[id].live_bytes += id + 1u;
  }
  for (const uint32_t id : {0u, UINT32_MAX}) {
    if (expected.try_emplace(id, 0).second) order.push_back(id);
    ++expected[id], ++table[id].live_bytes;
  }
  ASSERT_EQ(table.size(), expected.size());
  size_t at = 0;
  for (const auto& [stack, site] : table) {
    EXPECT_EQ(stack, order[at++]);
    EXPECT_EQ(site.live_bytes, expected[stack]);
    EXPECT_EQ(table.find(stack), &site);
  }
  const SiteTable copy = table;
  table[order[0]].live_bytes = 0;
  EXPECT_EQ(copy.find(order[0])->live_bytes, expected[order[0]]);
  for (uint32_t id = 5'000; id < 5'100; ++id) {
    if (!expected.contains(id)) {
      EXPECT_EQ(table.find(id), nullptr);
    }
  }
}

}  // namespace
}  // namespace gpumemprof
