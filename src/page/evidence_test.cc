// Where evidence points: at moments that the page has, by filters that take those blocks alone.
#include "page/answers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "page/filter.h"
#include "page/keeper_for_tests.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kSizes[] = {100, 20, 3};  // of what lines 1, 2 and 3 allocate

/// Three blocks, one a line, and a request that was refused after the second; stacks are 1 to 3.
struct ThreeLines {
  Tables tables;
  std::vector<PageDevice> devices;

  ThreeLines() {
    const uint32_t file = tables.strings.intern("/job/a \"b\"\\.py");
    const uint32_t function = tables.strings.intern("step");
    Keeper keeper;
    keeper.begin(nullptr);
    EventBatch batch;
    const auto add = [&](Action action, uint64_t size_bytes, uint32_t stack) {
      batch.time_ns.push_back(batch.size()), batch.action.push_back(action);
      batch.address.push_back(4096 * batch.size()), batch.size_bytes.push_back(size_bytes);
      batch.stack.push_back(stack), batch.thread.push_back(0), batch.device.push_back(0);
    };
    for (uint32_t line = 1; line <= 3; ++line) {
      const uint32_t frame = tables.stacks.intern_frame({function, file, line});
      const uint32_t stack = tables.stacks.push(0, frame);
      add(Action::kAlloc, kSizes[line - 1], stack);
      if (line != 1) batch.requested.push_back({static_cast<uint32_t>(batch.size() - 1), 2});
      if (line == 2) add(Action::kOom, 1 << 20, stack);
    }
    add(Action::kFreeCompleted, 0, 0);
    batch.address.back() = batch.address.front();
    LiveState state;
    take_numbered(&batch, &state, &keeper);
    devices.resize(2);
    devices[0].index = 4;
    devices[0].table = std::make_unique<BlockTable>();
    devices[1].index = 7;
    devices[1].table = std::move(keeper.finish().at(0));
  }
  uint64_t taken_bytes(const std::string& text) const {
    const auto filter = Filter::parse(text);
    if (!filter) return UINT64_MAX;
    const BlockTable& table = *devices[1].table;
    uint64_t sum = 0;
    const auto taken = filter->taken(table, tables, 0);
    for (size_t b = 0; b < taken.size(); ++b) sum += taken[b] ? table.size_bytes[b] : 0;
    return sum;
  }
};

TEST(Evidence, LinesAreFiltersOfWhichOneIsEnough) {
  const ThreeLines run;
  const auto told = [&](std::vector<uint32_t> lines) {
    const EvidencePlace evidence{.device = 7, .lines = std::move(lines)};
    const auto json = page_evidence(evidence, run.devices, run.tables);
    return run.taken_bytes(json.value("filter", ""));
  };
  EXPECT_EQ(told({}), 123u);
  EXPECT_EQ(told({1}), 100u);
  EXPECT_EQ(told({1, 3}), 103u);
  EXPECT_EQ(told({3, 2, 1}), 123u);
  const std::string first = filter_of({.lines = {1}}, run.tables);
  EXPECT_EQ(run.taken_bytes("not " + first), 23u);
  EXPECT_EQ(run.taken_bytes(first + " bytes<50"), 0u);
  EXPECT_EQ(Filter::parse("line:").error().at, 5u);
}

TEST(Evidence, MomentsAreThoseOfTheDevice) {
  using When = EvidencePlace::When;
  const ThreeLines run;
  const auto told = [&](EvidencePlace evidence) {
    evidence.device = 7;
    return page_evidence(evidence, run.devices, run.tables).dump();
  };
  EXPECT_EQ(told({}), R"({"view":"holders","device":1,"event":4})");
  // 100 bytes, then 20 more: the first moments with them; never 7.
  EXPECT_EQ(told({.when = When::kLevel, .number = 100}), R"({"view":"holders","device":1,"event":1})");
  EXPECT_EQ(told({.when = When::kLevel, .number = 120}), R"({"view":"holders","device":1,"event":2})");
  EXPECT_EQ(told({.when = When::kLevel, .number = 7}), R"({"view":"holders","device":1,"event":4})");
  EXPECT_EQ(told({.when = When::kRefusal}), R"({"view":"holders","device":1,"event":3})");
  EXPECT_EQ(told({.when = When::kRefusal, .number = 1}), "null");
  EXPECT_EQ(told({.when = When::kEvent, .number = 1}),
            R"({"view":"holders","device":1,"event":2})");
  EXPECT_EQ(told({.when = When::kEvent, .number = 5}), "null");
  EXPECT_EQ(told({.when = When::kEvent, .number = UINT64_MAX}), "null");
  EXPECT_EQ(told({.when = When::kLeft}), R"({"view":"holders","device":1,"from":0,"to":4})");
  EXPECT_EQ(told({.view = EvidencePlace::View::kAddressSpace, .category = "optimizer state"}),
            R"({"view":"space","device":1,"event":4,"filter":"category:\"optimizer state\""})");
  EXPECT_TRUE(page_evidence({.device = 1}, run.devices, run.tables).is_null());
  // Nothing was allocated on it: there is no range.
  const EvidencePlace nothing{.when = When::kLeft, .device = 4};
  EXPECT_TRUE(page_evidence(nothing, run.devices, run.tables).is_null());
}

TEST(Keeper, RoundingIsWhatTheAllocatorAdded) {
  const ThreeLines run;
  const BlockTable& table = *run.devices[1].table;
  // Of 20 and of 3 bytes 2 were asked for each.
  EXPECT_EQ(table.rounding.at(1), 0u);
  EXPECT_EQ(table.rounding.at(2), 18u);
  EXPECT_EQ(table.rounding.at(4), 19u);
}

}  // namespace
}  // namespace gpumemprof
