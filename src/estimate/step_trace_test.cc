#include "estimate/step_trace.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

const std::string kWhole =
    "gpumemprof-estimate 1\n"
    "{\"batch\":2,\"torch\":\"2.13.0\",\"optimizer\":\"adamw\",\"cudnn_benchmark\":true,"
    "\"assumptions\":[\"one\"]}\n"
    "s layer1\n"
    "p forward\n"
    "a 0 4096 0 p 1\n"
    "a 1 100 1 - 0\n"
    "c w 0 4096 2048 36 9 1 1 64 32 0\n"
    "m\n"
    "f 1\n"
    "x\n"
    "e 7\n";

TEST(StepTrace, IsReadWhole) {
  const auto trace = parse_step_trace(kWhole);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->facts.batch, 2u);
  EXPECT_EQ(trace->facts.torch, "2.13.0");
  EXPECT_TRUE(trace->facts.cudnn_benchmark);
  EXPECT_EQ(trace->facts.assumptions, std::vector<std::string>{"one"});
  ASSERT_EQ(trace->events.size(), 7u);
  EXPECT_EQ(trace->events[0].phase, StepPhase::kForward);
  EXPECT_EQ(trace->events[1].bytes, 4096u);
  EXPECT_EQ(trace->events[1].storage_kind, StorageKind::kParameter);
  EXPECT_EQ(trace->names[trace->events[1].module], "layer1");
  EXPECT_EQ(trace->events[2].stream, 1);
  ASSERT_EQ(trace->convolutions.size(), 1u);
  EXPECT_EQ(trace->convolutions[0].part, ConvolutionPart::kWeightGradient);
  EXPECT_EQ(trace->convolutions[0].kernel_elements, 9u);
  EXPECT_EQ(trace->convolutions[0].out_channels, 32u);
  EXPECT_EQ(trace->events[5].kind, TracedEvent::Kind::kFree);
  EXPECT_EQ(trace->events[5].index, 1u);
  EXPECT_EQ(trace->storages, 2u);
}

TEST(StepTrace, CutAnywhereIsRefusedWithTheByte) {
  for (size_t size = 0; size + 1 < kWhole.size(); ++size) {
    const auto trace = parse_step_trace(std::string_view(kWhole).substr(0, size));
    ASSERT_FALSE(trace) << size;
    EXPECT_EQ(trace.error().code, ErrorCode::kBadInput);
    ASSERT_TRUE(trace.error().offset) << size;
    EXPECT_LE(*trace.error().offset, size);
  }
}

/// The text with one line put in the place of another.
std::string with(std::string_view old_line, std::string_view new_line) {
  std::string text = kWhole;
  const size_t at = text.find(std::string(old_line) + '\n');
  EXPECT_NE(at, text.npos) << old_line;
  return text.replace(at, old_line.size(), new_line);
}

TEST(StepTrace, EveryDamageIsNamedWithItsLine) {
  const std::pair<std::string_view, std::string_view> kDamages[] = {
      {"gpumemprof-estimate 1", "gpumemprof-estimate 2"},
      {"a 0 4096 0 p 1", "a 1 4096 0 p 1"},  // not in order
      {"a 0 4096 0 p 1", "a 0 4096 0 p 2"},  // no such name
      {"a 0 4096 0 p 1", "a 0 4096 0 q 1"},  // no such kind
      {"a 0 4096 0 p 1", "a 0 -1 0 p 1"},
      {"a 0 4096 0 p 1", "a 0 99999999999999999999 0 p 1"},
      {"a 0 4096 0 p 1", "a 0 1125899906842624 0 p 1"},  // 2^50
      {"a 0 4096 0 p 1", "a 0 4096 65536 p 1"},
      {"a 0 4096 0 p 1", "a 0 4096 0 p 1 1"},
      {"a 0 4096 0 p 1", "a 0 4096  p 1"},
      {"f 1", "f 2"},
      {"f 1", "f "},
      {"m", "m 1"},
      {"m", "q"},
      {"m", "mm"},
      {"c w 0 4096 2048 36 9 1 1 64 32 0", "c x 0 4096 2048 36 9 1 1 64 32 0"},
      {"c w 0 4096 2048 36 9 1 1 64 32 0", "c w 0 4096 2048 36 9 1 1 64 32"},
      {"e 7", "e 8"},
      {"e 7", "e 7\nm"},
  };
  for (const auto& [old_line, new_line] : kDamages) {
    const auto trace = parse_step_trace(with(old_line, new_line));
    ASSERT_FALSE(trace) << new_line;
    EXPECT_EQ(trace.error().offset, kWhole.find(std::string(old_line) + '\n')) << new_line;
    EXPECT_EQ(trace.error().message.find('\n'), std::string::npos);
  }
}

TEST(StepTrace, ASecondFreeIsRefused) {
  const auto trace = parse_step_trace(with("x", "f 1"));
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().message, "the second free of a storage");
}

TEST(StepTrace, FactsOfAnotherKindAreRefusedWhereTheyStand) {
  std::string text = kWhole;
  const size_t begin = text.find('{'), end = text.find('}') + 1;
  for (const std::string_view fact :
       {R"("batch":"two")", R"("batch":-2)", R"("batch" :2.5)", R"("batch":null)", R"("torch":7)",
        R"("assumptions":"one")", R"("unknown":[1])", R"("cudnn_benchmark":1)"}) {
    const std::string before = R"({"more":"batch","subject":"torch",)";
    const auto odd = parse_step_trace(
        std::string(text).replace(begin, end - begin, before + std::string(fact) + '}'));
    ASSERT_FALSE(odd) << fact;
    EXPECT_EQ(odd.error().offset, begin + before.size()) << fact;
  }
  EXPECT_TRUE(parse_step_trace(
      std::string(text).replace(begin, end - begin, R"({"cudnn_benchmark":null})")));
  EXPECT_FALSE(parse_step_trace(std::string(text).replace(begin, end - begin, "[]")));
  EXPECT_FALSE(
      parse_step_trace(std::string(text).replace(begin, end - begin, "{\"batch\":99999999999}")));
}

}  // namespace
}  // namespace gpumemprof
