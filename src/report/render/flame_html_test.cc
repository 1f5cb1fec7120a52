#include "report/render/flame_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/sample_for_tests.h"

namespace gpumemprof {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The sum of what boxes hold that is in no box within.
uint64_t own_bytes(const std::string& html) {
  constexpr std::string_view kOwn = "data-o=\"";
  uint64_t sum = 0;
  for (size_t at = html.find(kOwn); at != html.npos; at = html.find(kOwn, at + 1)) {
    sum += std::stoull(html.substr(at + kOwn.size()));
  }
  return sum;
}

TEST(FlameHtml, EveryByteIsInOneBoxAndWhatIsNotKnownIsSaid) {
  MemorySource source = sample_source();
  const Analysis analysis = analyze_all(source);
  const std::string html =
      flame_figure({{"at the peak", live_at_peak(analysis.devices[0])}}, source.tables());
  EXPECT_EQ(own_bytes(html), 1000u) << "of the one grouping that is known";
  EXPECT_THAT(html, HasSubstr("data-b=\"700\" data-o=\"0\" style=\"left:0.0000%;width:70.0000%"));
  EXPECT_THAT(html, HasSubstr(">step (train.py:41)<span>step (train.py:41): 700 B (70.0 %)"));
  EXPECT_THAT(html, HasSubstr("by category: unknown, because the recording has no"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
}

TEST(FlameHtml, BoxesTooSmallToSeeAreOne) {
  Tables tables;
  std::vector<Holder> holders{{0, 1'000'000, 1}};
  for (uint32_t i = 1; i <= 30; ++i) {
    const uint32_t frame = tables.stacks.intern_frame(
        {tables.strings.intern("<b>.py"), tables.strings.intern("f"), i});
    holders.push_back({tables.stacks.push(0, frame), i, 1});
  }
  const std::string html = flame_figure({{"now", {&holders, nullptr, "x"}}}, tables);
  EXPECT_THAT(html, HasSubstr("30 smaller"));
  EXPECT_EQ(own_bytes(html), 1'000'000u + 30 * 31 / 2);
  EXPECT_THAT(html, Not(HasSubstr("<b>.py")));
}

TEST(FlameHtml, AStackOfAnyDepthIsDrawn) {
  Tables tables;
  uint32_t stack = 0;
  const uint32_t frame =
      tables.stacks.intern_frame({tables.strings.intern("a.py"), tables.strings.intern("f"), 1});
  for (int i = 0; i < 100'000; ++i) stack = tables.stacks.push(stack, frame);
  const std::vector<Holder> holders{{stack, 5, 1}};
  const std::string html = flame_figure({{"now", {&holders, nullptr, "x"}}}, tables);
  EXPECT_EQ(own_bytes(html), 5u);
  EXPECT_LT(html.size(), 100'000u);
}

}  // namespace
}  // namespace gpumemprof
