// Reports of a recording in which a framework names its operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/describe/explanation.h"
#include "report/json_report.h"
#include "report/text_report.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

using testing::HasSubstr;

/// A pool with 800 bytes of a layer and 200 of the optimizer, in a region of 4096.
MemorySource sample() {
  EventBatch events;
  append(&events, {100, Action::kAlloc, 0x1000, 4096, 0, 0, 1});
  append(&events, {200, Action::kAlloc, 0x1000, 800, 1, 0, 0});
  append(&events, {300, Action::kAlloc, 0x1400, 200, 2, 0, 0});
  MemorySource source(std::move(events));
  Tables& tables = source.mutable_tables();
  for (const char* name : {"StatefulPartitionedCall/net/dense_1/Relu", "adam/Sub_3"}) {
    tables.stacks.push(0, tables.stacks.intern_frame({tables.strings.intern(kOperationFile),
                                                      tables.strings.intern(name), 0}));
  }
  tables.processes = {{.pid = 11, .command = "python", .stacks = "python"}};
  tables.devices = {{.type = kTensorflowGpu, .index = 0, .layer = Layer::kAllocator},
                    {.type = kTensorflowGpu, .index = 0, .layer = Layer::kDriver}};
  tables.devices[0].name = "GPU_0_bfc", tables.devices[1].name = "GPU_0_bfc regions";
  tables.threads = {{.process = 0, .tid = 11, .name = "tf"}};
  return source;
}

TEST(TensorflowWork, TheTextSaysWhatEachPhaseAndLayerHeld) {
  MemorySource source = sample();
  const Analysis analysis = *analyze_source(source, {});
  const std::string text = text_report(analysis, source.tables(), {});
  EXPECT_THAT(text, HasSubstr("Peak 1000 B on tensorflow:GPU_0_bfc")) << "not the region it is in";
  EXPECT_THAT(text, HasSubstr("What was live at the peak, by phase and layer of TensorFlow\n"
                              "      800 B  80.0 %  forward    graph  net/dense_1  1 "
                              "block\n"
                              "      200 B  20.0 %  optimizer  graph  (not in a layer)  1 "
                              "block\n"));
}

/// Blocks of operations with these names, on one pool.
MemorySource pool_source(const std::vector<std::pair<std::string, uint64_t>>& blocks) {
  EventBatch events;
  for (uint64_t i = 0; i < blocks.size(); ++i) {
    append(&events, {100 + i, Action::kAlloc, 0x10000 * (i + 1), blocks[i].second,
                     static_cast<uint32_t>(i + 1), 0, 0});
  }
  MemorySource source(std::move(events));
  Tables& tables = source.mutable_tables();
  for (const auto& [name, unused] : blocks) {
    tables.stacks.push(0, tables.stacks.intern_frame({tables.strings.intern(kOperationFile),
                                                      tables.strings.intern(name), 0}));
  }
  tables.processes = {{.pid = 11, .command = "python", .stacks = "python"}};
  tables.devices = {{.type = kTensorflowGpu, .index = 0, .layer = Layer::kAllocator}};
  tables.devices[0].name = "GPU_0_bfc";
  tables.threads = {{.process = 0, .tid = 11, .name = "tf"}};
  return source;
}

std::string plain_words(const std::vector<std::pair<std::string, uint64_t>>& blocks) {
  MemorySource source = pool_source(blocks);
  const Analysis analysis = *analyze_source(source, {});
  return explain_peak(analysis, source.tables(), analysis.devices[0], "").text;
}

TEST(TensorflowWork, PlainWordsNameTheLargestWhetherOrNotTheyAreInALayer) {
  EXPECT_THAT(plain_words({{"Mul", 634}, {"adam/Sub", 271}, {"net/d/Relu", 95}}),
              HasSubstr(": 63.4 % of unknown type, 27.1 % optimizer and 9.5 % forward net/d. "));
}

TEST(TensorflowWork, PlainWordsLeaveOutWhatIsLessThanATwentiethUnlessItIsTheFirst) {
  EXPECT_THAT(plain_words({{"adam/Sub", 951}, {"net/d/Relu", 49}}),
              HasSubstr(": 95.1 % optimizer. "));
  EXPECT_THAT(plain_words({{"Mul", 999}, {"net/d/Relu", 1}}),
              HasSubstr(": 99.9 % of unknown type. "));
  EXPECT_THAT(plain_words({{"Mul", 999}}), HasSubstr("; their types are unknown, because "));
  std::vector<std::pair<std::string, uint64_t>> many;
  for (int i = 0; i < 25; ++i) many.emplace_back("net/d" + std::to_string(i) + "/Relu", 40);
  EXPECT_THAT(plain_words(many), HasSubstr(": 4.0 % forward net/d0. "));
}

/// The text before "Nothing was lost.", without its first line.
std::string summary_rows(const MemorySource& source, const Analysis& analysis) {
  const std::string text = text_report(analysis, source.tables(), {});
  const size_t start = text.find('\n') + 1;
  return text.substr(start, text.find("Nothing was lost.") - start);
}

std::string summary_rows(const std::vector<std::pair<std::string, uint64_t>>& blocks) {
  MemorySource source = pool_source(blocks);
  const Analysis analysis = *analyze_source(source, {});
  return summary_rows(source, analysis);
}

TEST(TensorflowWork, TheSummaryHasLayersWhereTheyHoldMoreThanHalfAndElseLines) {
  EXPECT_EQ(summary_rows({{"net/d/Relu", 501}, {"gradient_tape/Mul", 300}, {"Mul", 199}}),
            "      501 B  50.1 %  forward net/d  1 block\n"
            "      300 B  30.0 %  gradient (not in a layer)  1 block\n"
            "      199 B  19.9 %  unknown (not in a layer)  1 block\n");
  EXPECT_EQ(summary_rows({{"net/d/Relu", 500}, {"gradient_tape/Mul", 300}, {"Mul", 200}}),
            "      500 B  50.0 %  <tensorflow> net/d/Relu\n"
            "      300 B  30.0 %  <tensorflow> gradient_tape/Mul\n"
            "      200 B  20.0 %  <tensorflow> Mul\n");
}

TEST(TensorflowWork, RowsOfOnePartOfALayerAreOneRowWhateverTheirMode) {
  MemorySource source = pool_source({{"net/d/Relu", 700}, {"Mul", 200}, {"Mul_1", 100}});
  Tables& tables = source.mutable_tables();
  // The second stack again, of a thread that runs Python.
  const Frame python{tables.strings.intern("a.py"), tables.strings.intern("f"), 3};
  const uint32_t line = tables.stacks.push(0, tables.stacks.intern_frame(python));
  const uint32_t eager = tables.stacks.push(
      line, tables.stacks.intern_frame({tables.strings.intern(kOperationFile),
                                        tables.strings.intern("Mul"), 0}));
  Analysis analysis = *analyze_source(source, {});
  for (Holder& holder : analysis.devices[0].holders_at_peak) {
    if (holder.bytes == 200) holder.stack = eager;
  }
  EXPECT_EQ(summary_rows(source, analysis),
            "      700 B  70.0 %  forward net/d  1 block\n"
            "      300 B  30.0 %  unknown (not in a layer)  2 blocks\n");
  EXPECT_THAT(text_report(analysis, source.tables(), {}),
              HasSubstr("      700 B  70.0 %  forward  graph  net/d  1 block\n"
                        "      200 B  20.0 %  unknown  eager  (not in a layer)  1 block\n"
                        "      100 B  10.0 %  unknown  graph  (not in a layer)  1 block\n"));
}

TEST(TensorflowWork, TheLayersOfEagerOperationsDoNotTakeThePlaceOfTheirLines) {
  MemorySource source = pool_source({{"Mul", 1000}});
  Tables& tables = source.mutable_tables();
  const auto frame = [&](std::string_view file, std::string_view function, uint32_t line) {
    return tables.stacks.intern_frame(
        {tables.strings.intern(file), tables.strings.intern(function), line});
  };
  uint32_t eager = tables.stacks.push(0, frame("keep.py", "f", 8));
  eager = tables.stacks.push(eager, frame("<layer>", "net/d", 0));
  eager = tables.stacks.push(eager, frame(kOperationFile, "BiasAdd", 0));
  Analysis analysis = *analyze_source(source, {});
  analysis.devices[0].holders_at_peak[0].stack = eager;
  EXPECT_EQ(summary_rows(source, analysis), "     1000 B  100.0 %  keep.py:8 f\n");
  EXPECT_THAT(text_report(analysis, source.tables(), {}),
              HasSubstr("     1000 B  100.0 %  unknown  eager  net/d  1 block\n"));
}

/// Blocks of 600, 400 and 300 bytes, of which 500, 400 and 10 were asked for; the first is freed
/// before the last. The peak is that of the first two.
TEST(TensorflowWork, TheTextSaysHowMuchOfThePeakIsRounding) {
  EventBatch events;
  append(&events, {100, Action::kAlloc, 0x1000, 600, 0, 0, 0});
  append(&events, {200, Action::kAlloc, 0x2000, 400, 0, 0, 0});
  append(&events, {300, Action::kFreeCompleted, 0x1000, 0, 0, 0, 0});
  append(&events, {400, Action::kAlloc, 0x3000, 300, 0, 0, 0});
  events.requested = {{0, 500}, {3, 10}};
  for (const size_t batch_size : {1, 100}) {
    MemorySource source(events, batch_size);
    Tables& tables = source.mutable_tables();
    tables.processes = {{.pid = 11, .command = "python", .stacks = "python"}};
    tables.threads = {{.process = 0, .tid = 11, .name = "tf"}};
    tables.devices = {{.type = kTensorflowGpu, .index = 0, .layer = Layer::kAllocator}};
    const Analysis analysis = *analyze_source(source, {});
    EXPECT_EQ(analysis.devices[0].unasked_at_peak_bytes, 100u);
    EXPECT_THAT(text_report(analysis, tables, {}),
                HasSubstr("  TensorFlow's pools hand out whole chunks: of 1000 B, 900 B were asked "
                          "for and 100 B are\n  rounding.\n"));
  }
}

TEST(TensorflowWork, TheJsonHasTheSameNumbersAndTheNames) {
  MemorySource source = sample();
  const Analysis analysis = *analyze_source(source, {});
  const auto json = nlohmann::json::parse(json_report(analysis, source.tables(), 0));
  const auto& device = json["devices"][0];
  EXPECT_EQ(device["framework"], "tensorflow");
  EXPECT_EQ(device["allocator_name"], "GPU_0_bfc");
  EXPECT_EQ(device["backend"], "GPU");
  const auto& work = device["work_at_peak"];
  ASSERT_EQ(work.size(), 2u);
  EXPECT_EQ(work[0]["bytes"], 800);
  EXPECT_EQ(work[0]["phase"], "forward");
  EXPECT_EQ(work[0]["part"], "forward");
  EXPECT_EQ(work[0]["module"], "net/dense_1");
  EXPECT_EQ(work[1]["phase"], "optimizer");
  EXPECT_TRUE(work[1]["module"].is_null());
  EXPECT_EQ(device["holders_at_peak"][1]["operation"], "adam/Sub_3");
  EXPECT_EQ(device["holders_at_peak"][1]["mode"], "graph");
  EXPECT_EQ(device["holders_at_peak"][0]["module"], "net/dense_1");
}

}  // namespace
}  // namespace gpumemprof
