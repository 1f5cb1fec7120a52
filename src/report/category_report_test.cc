// What the reports say of what memory is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "analysis/categories/category_sums.h"
#include "report/describe/sections.h"
#include "report/json_report.h"
#include "report/render/text.h"
#include "trace/label_frames.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A parameter of 3 KiB and an activation of 1 KiB, one phase, one step.
MemorySource small_source() {
  EventBatch events;
  append(&events, {.time_ns = 10'000, .address = 1, .size_bytes = 3072});
  append(&events, {.time_ns = 20'000, .address = 2, .size_bytes = 1024, .stack = 1});
  append(&events, {.time_ns = 40'000, .action = Action::kFreeCompleted, .address = 2});
  events.marks = {{1, MarkKind::kPhaseBegin, 0, 1, 15'000, 5, 0},
                  {2, MarkKind::kSaved, 0, 0, 20'000, 2, kSavedIsOutput},
                  {2, MarkKind::kRole, 0, 2, 21'000, 1, 1},
                  {2, MarkKind::kPhaseEnd, 0, 0, 30'000, 5, 0},
                  {3, MarkKind::kStep, 0, 0, 50'000, 0, 0}};
  MemorySource source(events);
  Tables& tables = source.mutable_tables();
  tables.processes.emplace_back();
  tables.threads.push_back({0, 11, "t"});
  tables.devices.push_back(Device{.size_is_requested = true});
  tables.strings.intern("warm <up>");            // 1
  tables.strings.intern("encoder.head.weight");  // 2
  const Frame frame{tables.strings.intern(kModuleFile), tables.strings.intern("encoder.head"), 0};
  tables.stacks.push(0, tables.stacks.intern_frame(frame));  // 1
  return source;
}

TEST(CategoryReport, TextListsCategoriesModulesAndPhases) {
  MemorySource source = small_source();
  const Analysis analysis = *analyze_source(source, {});
  const DescribeOptions options;
  const Section section =
      categories_section({analysis, source.tables(), options}, analysis.devices[0]);
  EXPECT_THAT(
      text_lines(section, {}),
      ElementsAre("", "Memory at the peak, by type", "   3.00 KiB  75.0 %  parameter  1 block",
                  "   1.00 KiB  25.0 %  activation  1 block", "  By module:",
                  "   4.00 KiB  100.0 %  encoder.head  3.00 KiB parameter, 1.00 KiB activation",
                  "  By phase of allocation:",
                  "   3.00 KiB  75.0 %  (outside: setup, data)  3.00 KiB parameter",
                  "   1.00 KiB  25.0 %  forward  1.00 KiB activation"));
}

TEST(CategoryReport, EqualModulesAreFoldedOverTheNumbersThatDiffer) {
  EventBatch events;
  append(&events, {.time_ns = 10'000, .address = 1, .size_bytes = 2048});
  append(&events, {.time_ns = 20'000, .address = 2, .size_bytes = 2048});
  append(&events, {.time_ns = 30'000, .address = 3, .size_bytes = 1024});
  append(&events, {.time_ns = 40'000, .address = 4, .size_bytes = 1024});
  for (uint32_t i = 1; i <= 4; ++i) events.marks.push_back({4, MarkKind::kRole, 0, i, 50'000, i, 1});
  MemorySource source(events);
  Tables& tables = source.mutable_tables();
  tables.processes.emplace_back();
  tables.threads.push_back({0, 11, "t"});
  tables.devices.push_back(Device{.size_is_requested = true});
  for (const char* name : {"layers.0.mlp.0.weight", "layers.1.mlp.0.weight",
                           "layers.0.mlp.2.weight", "layers.1.mlp.2.weight"})
    tables.strings.intern(name);
  const Analysis analysis = *analyze_source(source, {});
  const std::vector<std::string> lines = text_lines(
      categories_section({analysis, source.tables(), {}}, analysis.devices[0]), {});
  EXPECT_THAT(lines, testing::Contains("   4.00 KiB  66.7 %  layers.*.mlp.0  2 × 2.00 KiB "
                                       "parameter"));
  EXPECT_THAT(lines, testing::Contains("   2.00 KiB  33.3 %  layers.*.mlp.2  2 × 1.00 KiB "
                                       "parameter"));
}

TEST(CategoryReport, MembersOfAFamilyThatAreAlikeAreNamedWhereOthersAreNot) {
  EventBatch events;
  const std::vector<uint64_t> sizes = {2048, 1024, 2048, 512, 1024, 1024, 1024};
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    append(&events, {.time_ns = 10'000 * (i + 1), .address = i + 1, .size_bytes = sizes[i]});
    events.marks.push_back({7, MarkKind::kRole, 0, i + 1, 90'000, i + 1, 1});
  }
  MemorySource source(events);
  Tables& tables = source.mutable_tables();
  tables.processes.emplace_back();
  tables.threads.push_back({0, 11, "t"});
  tables.devices.push_back(Device{.size_is_requested = true});
  for (size_t i = 0; i < sizes.size(); ++i)
    tables.strings.intern("features." + std::to_string(i) + ".conv.weight");
  const Analysis analysis = *analyze_source(source, {});
  const std::vector<std::string> lines = text_lines(
      categories_section({analysis, source.tables(), {}}, analysis.devices[0]), {});
  // Of 8.5 KiB.
  EXPECT_THAT(lines, testing::Contains("   4.00 KiB  47.1 %  features.{0,2}.conv  2 × 2.00 KiB "
                                       "parameter"));
  EXPECT_THAT(lines, testing::Contains("   4.00 KiB  47.1 %  features.{1,4-6}.conv  4 × 1.00 KiB "
                                       "parameter"));
  EXPECT_THAT(lines, testing::Contains("      512 B   5.9 %  features.3.conv  512 B parameter"));
}

/// Names of two numbers: three of 2 KiB and three of 1 KiB; four of 512 B and two of 256 B.
TEST(CategoryReport, RowsOfTheSamePatternTellTheirNumbersApart) {
  const std::vector<std::pair<const char*, uint64_t>> modules = {
      {"net.3.block.0.1", 2048}, {"net.3.block.1.1", 2048}, {"net.4.block.0.1", 2048},
      {"net.4.block.1.1", 1024}, {"net.5.block.0.1", 1024}, {"net.5.block.1.1", 1024},
      {"head.0.a.0", 512},       {"head.0.a.1", 512},       {"head.7.a.0", 512},
      {"head.7.a.1", 512},       {"head.8.a.0", 256},       {"head.8.a.2", 256}};
  EventBatch events;
  for (uint32_t i = 0; i < modules.size(); ++i) {
    append(&events,
           {.time_ns = 10'000 * (i + 1), .address = i + 1, .size_bytes = modules[i].second});
    events.marks.push_back({12, MarkKind::kRole, 0, i + 1, 190'000, i + 1, 1});
  }
  MemorySource source(events);
  Tables& tables = source.mutable_tables();
  tables.processes.emplace_back();
  tables.threads.push_back({0, 11, "t"});
  tables.devices.push_back(Device{.size_is_requested = true});
  for (const auto& [name, bytes] : modules) tables.strings.intern(std::string(name) + ".weight");
  const Analysis analysis = *analyze_source(source, {});
  const std::vector<std::string> lines = text_lines(
      categories_section({analysis, source.tables(), {}}, analysis.devices[0]), {});
  const auto has = [&](const char* text) {
    return std::ranges::any_of(lines, [&](const auto& line) { return line.contains(text); });
  };
  EXPECT_TRUE(has("  net.3.block.{0,1}.1, net.4.block.0.1  3 × 2.00 KiB parameter"));
  EXPECT_TRUE(has("  net.4.block.1.1, net.5.block.{0,1}.1  3 × 1.00 KiB parameter"));
  EXPECT_TRUE(has("  head.{0,7}.a.{0,1}  4 × 512 B parameter"));
  EXPECT_TRUE(has("  head.8.a.*  2 × 256 B parameter"));
}

TEST(CategoryReport, ModelsOfOneClassAreFoldedAndNumbersAreOrderedAsNumbers) {
  EventBatch events;
  const char* names[] = {"0.weight", "Net#10.0.weight", "Net#10.2.weight", "Net#2.0.weight",
                         "Net#2.2.weight", "9.weight", "10.weight"};
  for (uint32_t i = 0; i < 7; ++i) {
    const bool is_twice = std::string_view(names[i]).ends_with(".2.weight");
    append(&events, {.time_ns = 10'000 * (i + 1), .address = i + 1,
                     .size_bytes = is_twice ? 2048u : 1024u});
    events.marks.push_back({7, MarkKind::kRole, 0, i + 1, 90'000, i + 1, 1});
  }
  MemorySource source(events);
  Tables& tables = source.mutable_tables();
  tables.processes.emplace_back();
  tables.threads.push_back({0, 11, "t"});
  tables.devices.push_back(Device{.size_is_requested = true});
  for (const char* name : names) tables.strings.intern(name);
  const Analysis analysis = *analyze_source(source, {});
  const std::vector<std::string> lines = text_lines(
      categories_section({analysis, source.tables(), {}}, analysis.devices[0]), {});
  // Of 9 KiB.
  EXPECT_THAT(lines, testing::Contains("   4.00 KiB  44.4 %  Net#*.2  2 × 2.00 KiB parameter"));
  EXPECT_THAT(lines, testing::Contains("   2.00 KiB  22.2 %  Net#*.0  2 × 1.00 KiB parameter"));
  EXPECT_THAT(lines, testing::Contains("   3.00 KiB  33.3 %  *  3 × 1.00 KiB parameter"));
  std::vector<std::string> modules;
  const auto sums = category_sums(analysis.devices[0].categories.at_peak, source.tables());
  for (const CategoryGroup& group : sums.modules) modules.push_back(group.name);
  EXPECT_THAT(modules, ElementsAre("Net#2.2", "Net#10.2", "0", "9", "10", "Net#2.0", "Net#10.0"));
}

TEST(CategoryReport, JsonHasThemAtThePeakOverTimeAndAtMoments) {
  MemorySource source = small_source();
  const Analysis analysis = *analyze_source(source, {});
  const std::string json = json_report(analysis, source.tables(), -1);
  EXPECT_THAT(json, HasSubstr(R"("categories_at_peak":{"unknown":0,"parameter":3072,)"));
  EXPECT_THAT(json, HasSubstr(R"("category":"activation","line":)"));
  EXPECT_THAT(
      json,
      HasSubstr(R"("holders_at_end":[{"bytes":3072,"count":1,"category":"parameter","line":)"));
  EXPECT_THAT(json, HasSubstr(R"("module":"encoder.head","phase":"forward")"));
  EXPECT_THAT(json, HasSubstr(R"("categories_at_moments":{"parameter":[3072,3072,3072],)"
                              R"("activation":[0,1024,0]})"));
  EXPECT_THAT(json, HasSubstr(R"({"kind":"phase_end","step":null,"phase":"warm <up>",)"));
  EXPECT_THAT(json, HasSubstr(R"("attributed_at_peak_bytes":4096)"));
}

}  // namespace
}  // namespace gpumemprof
