#include "estimate/exported_model.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

ExportedAnswer with(std::initializer_list<std::pair<const char*, uint64_t>> figures) {
  ExportedAnswer answer;
  for (const auto& [name, bytes] : figures) answer.figures.push_back({name, bytes, false, ""});
  set_need(&answer);
  return answer;
}

TEST(ExportedModel, WhatLiesInTheArenaIsCountedOnce) {
  const auto answer =
      with({{"weights", 100}, {"inputs", 10}, {"arena_loaded", 30}, {"arena_peak", 80}});
  EXPECT_EQ(answer.need->low, 100u + 10 + 50);
  EXPECT_EQ(answer.need->high, answer.need->low);
  EXPECT_EQ(with({{"weights", 20}, {"arena_loaded", 30}, {"arena_peak", 80}}).need->low, 80u);
}

TEST(ExportedModel, TheUpperEndIsWhatWasSeen) {
  const auto answer = with({{"constants", 100}, {"planned", 50}, {"resident_rise", 1000}});
  EXPECT_EQ(answer.need->low, 150u);
  EXPECT_EQ(answer.need->high, 1000u);
  EXPECT_EQ(with({{"weights", 100}, {"run_peak", 50}, {"resident_rise", 20}}).need->high, 150u);
}

TEST(ExportedModel, WhatTheRunWroteIsTaken) {
  ExportedAnswer answer;
  ASSERT_TRUE(add_measured(
      R"({"runtime":"R 1","figures":[{"name":"arena_peak","bytes":7,"how":"it said so","measured":true}],)"
      R"("inputs":[{"name":"x","type":"float32","shape":[2,3]}],"unknown":["u"]})",
      &answer));
  EXPECT_EQ(answer.runtime, "R 1");
  ASSERT_NE(figure_of(answer, "arena_peak"), nullptr);
  EXPECT_TRUE(figure_of(answer, "arena_peak")->is_measured);
  EXPECT_EQ(answer.inputs[0].sizes, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(answer.unknown, std::vector<std::string>{"u"});
}

TEST(ExportedModel, WhatTheRunWroteMayBeAnything) {
  for (const char* text : {"", "[]", "{\"figures\":[1]}", "{\"figures\":[{\"name\":\"x\"}]}",
                           "{\"figures\":[{\"name\":\"x\",\"bytes\":-1}]}",
                           "{\"figures\":[{\"name\":\"x\",\"bytes\":1e300}]}", "{\"inputs\":[[]]}",
                           "{\"inputs\":[{\"shape\":[\"a\"]}]}"}) {
    ExportedAnswer answer;
    EXPECT_FALSE(add_measured(text, &answer)) << text;
  }
}

}  // namespace
}  // namespace gpumemprof
