#include "report/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "report/render/timeline_svg.h"
#include "report/sample_for_tests.h"

namespace gpumemprof {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string page_of(MemorySource& source) {
  const Analysis analysis = analyze_all(source);
  return html_report(analysis, source.tables(), {.working_folder = "/opt/job"});
}

/// The names of all tags of a page.
std::set<std::string> tags_of(const std::string& html) {
  std::set<std::string> tags;
  for (size_t at = 0; (at = html.find('<', at)) != std::string::npos; ++at) {
    const size_t begin = at + (html[at + 1] == '/' ? 2 : 1);
    tags.insert(html.substr(begin, html.find_first_of(" >/\n", begin) - begin));
  }
  return tags;
}

TEST(HtmlReport, ShowsThePeakItsHoldersAndTheTimeline) {
  MemorySource source = sample_source();
  const std::string html = page_of(source);
  EXPECT_THAT(html, HasSubstr("Peak 1000 B on cpu, 2.500 s after the start"));
  EXPECT_THAT(html,
              HasSubstr("<td class=\"n\">700 B</td><td class=\"n\">70.0 %</td><td class=\"w\">"
                        "<code>train.py:41 step</code>"));
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, HasSubstr("peak 1000 B</span>"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(html, HasSubstr("width=device-width"));
  EXPECT_THAT(html, HasSubstr("Nothing was lost."));
}

TEST(HtmlReport, LoadsNothingAndRunsNothing) {
  MemorySource source = sample_source();
  const std::string html = page_of(source);
  for (const char* word : {"http://", "https://", "src=", "href=", "<script", "url(", "@import"}) {
    EXPECT_THAT(html, Not(HasSubstr(word)));
  }
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST(HtmlReport, NothingOfTheRecordingBecomesMarkup) {
  MemorySource harmless = sample_source();
  const std::string evil = "\"'><script>alert(1)</script><img onerror=x>&";
  MemorySource source = sample_source();
  Tables& tables = source.mutable_tables();
  const uint32_t frame =
      tables.stacks.intern_frame({tables.strings.intern(evil), tables.strings.intern(evil), 1});
  const uint32_t stack = tables.stacks.push(0, frame);
  for (Process& process : tables.processes) {
    process.command = process.host = process.python_version = evil;
    process.stacks = "none" + evil;
  }
  for (Thread& thread : tables.threads) thread.name = evil;
  source.mutable_info().path = evil;
  for (int i = 0; i < 5; ++i) source.mutable_loss().add(1, 1, evil + std::to_string(i));
  Analysis analysis = analyze_all(source);
  for (DeviceAnalysis& device : analysis.devices) {
    for (Holder& holder : device.holders_at_peak) holder.stack = stack;
    for (Temporary& temporary : device.temporaries) temporary.stack = stack;
  }
  const std::string html = html_report(analysis, tables, {});
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  std::set<std::string> allowed = tags_of(page_of(harmless));
  allowed.insert({"ul", "li"});
  for (const std::string& tag : tags_of(html)) EXPECT_TRUE(allowed.contains(tag)) << tag;
}

TEST(HtmlReport, AnEmptyRecordingIsAPageToo) {
  MemorySource source{EventBatch{}};
  EXPECT_THAT(page_of(source), HasSubstr("No events: nothing was recorded."));
}

TEST(TimelineSvg, TheAxisEndsAtARoundNumberAboveThePeak) {
  EXPECT_EQ(axis_top(0), 1u);
  EXPECT_EQ(axis_top(1), 1u);
  EXPECT_EQ(axis_top(1000), 1024u);
  EXPECT_EQ(axis_top(42 << 20), 48u << 20);
  for (uint64_t bytes = 1; bytes < (uint64_t{1} << 60); bytes = bytes * 5 / 3 + 1) {
    EXPECT_GE(axis_top(bytes), bytes);
    EXPECT_LE(axis_top(bytes), 2 * bytes);
  }
  EXPECT_EQ(axis_top(UINT64_MAX), UINT64_MAX);
}

}  // namespace
}  // namespace gpumemprof
