#include "trace/tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace gpumemprof {
namespace {

TEST(IdIndex, ThingsOfOneHashAreToldApart) {
  IdIndex index;
  const std::vector<int> things = {7, 8, 9};
  const auto put = [&](int thing, uint32_t next) {
    return index.find_or_put(42, next, [&](uint32_t id) { return things[id] == thing; });
  };
  EXPECT_EQ(put(7, 0), 0u);
  EXPECT_EQ(put(8, 1), 1u);
  EXPECT_EQ(put(9, 2), 2u);
  EXPECT_EQ(put(8, 3), 1u);
  EXPECT_EQ(put(7, 3), 0u);
}

TEST(StringTable, FindsWhatIsThereAndPutsNothing) {
  StringTable table;
  EXPECT_EQ(table.find(""), 0u);
  EXPECT_FALSE(table.find("a"));
  const uint32_t a = table.intern("a");
  EXPECT_EQ(table.find("a"), a);
  EXPECT_FALSE(table.find("b"));
  EXPECT_EQ(table.size(), 2u);
}

TEST(StringTable, EachTextHasOneIdAndStaysWhereItIs) {
  constexpr uint32_t kTexts = 50'000;
  StringTable table;
  std::vector<std::string_view> views = {table.get(0)};
  const auto text = [](uint32_t i) { return std::string(i % 300, 'x') + std::to_string(i); };
  for (uint32_t i = 1; i <= kTexts; ++i) {
    ASSERT_EQ(table.intern(text(i)), i);
    views.push_back(table.get(i));
  }
  StringTable moved = std::move(table);
  for (uint32_t i = 1; i <= kTexts; ++i) {
    ASSERT_EQ(views[i], text(i));
    ASSERT_EQ(moved.get(i).data(), views[i].data());
    ASSERT_EQ(moved.intern(text(i)), i);
  }
  EXPECT_EQ(moved.intern(""), 0u);
  EXPECT_EQ(moved.get(kTexts + 1), "");
  EXPECT_EQ(moved.intern(std::string(1 << 20, 'y')), kTexts + 1);
}

TEST(StackTable, AParentAndAFrameAreOneNodeInWhateverOrderTheyCome) {
  StackTable table;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> known;  // what a plain map says
  std::vector<uint32_t> nodes = {0};
  uint64_t random = 1;
  for (int i = 0; i < 200'000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const uint32_t parent = nodes[(random >> 33) % std::min<size_t>(nodes.size(), 5000)];
    const uint32_t frame = static_cast<uint32_t>((random >> 20) % 30);
    const uint32_t node = table.push(parent, frame);
    const auto [at, is_new] = known.try_emplace({parent, frame}, node);
    ASSERT_EQ(at->second, node);
    if (!is_new) continue;
    ASSERT_EQ(node, nodes.size());
    ASSERT_EQ(table.node(node).parent, parent);
    ASSERT_EQ(table.node(node).frame, frame);
    ASSERT_EQ(table.node(node).depth, table.node(parent).depth + 1);
    nodes.push_back(node);
  }
  EXPECT_EQ(table.stack_count(), nodes.size());
}

TEST(StackTable, FramesThatAreEqualAreOne) {
  StackTable table;
  EXPECT_EQ(table.intern_frame({}), 0u);
  for (uint32_t round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(table.intern_frame({i, i / 2, 1 + i % 7}), 1 + i);
  }
  EXPECT_EQ(table.frame_count(), 1001u);
}

}  // namespace
}  // namespace gpumemprof
