#include "report/export/stack_exports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/export/event_export.h"
#include "report/sample_for_tests.h"

namespace gpumemprof {
namespace {

using nlohmann::json;

class StackExports : public testing::Test {
 protected:
  StackExports() : source_(sample_source()), analysis_(analyze_all(source_)) {}

  TextSink sink() {
    return [this](std::string_view text) {
      text_ += text;
      return Status{};
    };
  }
  const DeviceAnalysis& cpu() const { return analysis_.devices[0]; }

  MemorySource source_;
  Analysis analysis_;
  std::string text_;
};

TEST_F(StackExports, FoldedHasALineAStackLargestFirst) {
  ASSERT_TRUE(export_folded(cpu().holders_at_peak, source_.tables(), sink()));
  EXPECT_EQ(text_,
            "<module> (train.py:90);step (train.py:41);relu (f.py:5) 500\n"
            "<module> (train.py:90);Model.__init__ (model.py:7) 300\n"
            "<module> (train.py:90);step (train.py:41);call (functools.py:2);gelu (f.py:9) 200\n");
}

TEST_F(StackExports, FoldedOfOtherMoments) {
  ASSERT_TRUE(export_folded(cpu().holders_at_end, source_.tables(), sink()));
  EXPECT_THAT(text_, testing::Not(testing::HasSubstr("gelu"))) << "freed before the end";
  text_.clear();
  ASSERT_TRUE(export_folded(analysis_.devices[1].totals,
                            source_.tables(), sink()));
  EXPECT_EQ(text_, "(no stack recorded) 50\n");
}

TEST_F(StackExports, AFrameCannotBreakTheFoldedLine) {
  Tables& tables = source_.mutable_tables();
  const uint32_t frame = tables.stacks.intern_frame(
      {tables.strings.intern("/a/b;c.py"), tables.strings.intern("f\n;g 12"), 1});
  DeviceAnalysis device;
  device.holders_at_peak = {{tables.stacks.push(0, frame), 7, 1}};
  ASSERT_TRUE(export_folded(device.holders_at_peak, tables, sink()));
  EXPECT_EQ(text_, "f\xef\xbf\xbd:g 12 (b:c.py:1) 7\n");
}

TEST_F(StackExports, SpeedscopeHasTheThreeProfiles) {
  ASSERT_TRUE(export_speedscope(analysis_, cpu(), source_.tables(), "9.9", sink()));
  const json out = json::parse(text_);
  EXPECT_EQ(out["exporter"], "gpumemprof 9.9");
  const json& frames = out["shared"]["frames"];
  const json& peak = out["profiles"][0];
  EXPECT_EQ(peak["endValue"], 1000);
  EXPECT_EQ(peak["weights"], json::parse("[500, 300, 200]"));
  std::vector<std::string> names;
  for (const json& frame : peak["samples"][0]) names.push_back(frames[frame.get<size_t>()]["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"<module>", "step", "relu"}));
  EXPECT_EQ(out["profiles"][1]["endValue"], 800);
  EXPECT_EQ(out["profiles"][2]["endValue"], 1000);
}

TEST_F(StackExports, AnErrorOfTheSinkEndsEveryExport) {
  const TextSink full = [](std::string_view) { return fail(ErrorCode::kSystem, "disk full"); };
  const Tables& tables = source_.tables();
  for (const Status& done : {export_folded(cpu().holders_at_peak, tables, full),
                             export_speedscope(analysis_, cpu(), tables, "", full),
                             export_pprof(analysis_, cpu(), tables, "", full)}) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "disk full");
  }
  MemorySource again = sample_source();
  EXPECT_FALSE(export_perfetto(again, full));
}

}  // namespace
}  // namespace gpumemprof
