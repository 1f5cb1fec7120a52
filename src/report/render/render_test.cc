#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/json/document_json.h"
#include "report/render/text.h"

namespace gpumemprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Table two_lines() {
  Table table{.columns = {{"bytes", true}, {"line"}}, .left_out = 2, .noun = "line"};
  Row row{{{"1.00 MiB"}, {.text = "a.py:1 <f>", .note = "3 blocks", .is_code = true}}};
  row.details.emplace_back(
      Stack{{{"/lib/x.py:1 g", "x.py:1 g"}, {"/opt/a.py:1 <f>", "a.py:1 <f>", true, true}}});
  table.rows = {row, {{{"7 B"}, {.text = "b.py", .is_code = true}}, {}, 0.25}};
  return table;
}

TEST(RenderText, ATableIsAsWideAsWhatIsInItAndSaysWhatIsLeftOut) {
  Section section{"Lines"};
  section.add(two_lines());
  EXPECT_THAT(text_lines(section, {}),
              ElementsAre("", "Lines", "     bytes  line", "  1.00 MiB  a.py:1 <f>  3 blocks",
                          "              … 1 frame of libraries", "              /opt/a.py:1 <f>",
                          "       7 B  b.py", "  and 2 more lines"));
  EXPECT_THAT(text_lines(section, {.full_stacks = true}),
              testing::Contains("              /lib/x.py:1 g"));
}

TEST(RenderText, AnAnswerBeginsAtTheMarginAndPointsAreIndented) {
  Section section;
  section.add(Sentence{"Peak 1 B.", Tone::kHeadline});
  section.add(Sentence{"a \x1b[2J", Tone::kWarning, "Note"});
  section.add(List{{{"critical", "it leaks.", {{"Fix: drop it."}}}, {"", "so"}}});
  EXPECT_THAT(text_lines(section, {}),
              ElementsAre("Peak 1 B.", "Note: a \xef\xbf\xbd[2J", "  critical  it leaks.",
                          "            Fix: drop it.", "            so"));
  EXPECT_EQ(text_lines(section, {.color = true})[0], "\x1b[1mPeak 1 B.\x1b[0m");
}

TEST(RenderText, ASectionOfChartsAloneIsLeftOut) {
  Section section{"Over time"};
  section.add(Chart{.title = "cpu", .lines = {{"allocated", {0, 1}, {1, 2}}}});
  EXPECT_TRUE(text_lines(section, {}).empty());
}

TEST(DocumentJson, RowsKeepTheirDetailsAndNoTextIsChanged) {
  Document document{.title = "<t>"};
  Section section{"Lines"};
  section.add(two_lines());
  document.add(section);
  const nlohmann::ordered_json json = document_json(document);
  EXPECT_EQ(json["title"], "<t>");
  const nlohmann::ordered_json& table = json["sections"][0]["parts"][0];
  EXPECT_EQ(table["left_out_text"], "and 2 more lines");
  EXPECT_EQ(table["rows"][0]["cells"][1]["text"], "a.py:1 <f>");
  EXPECT_EQ(table["rows"][0]["cells"][1]["note"], "3 blocks");
  EXPECT_EQ(table["rows"][0]["details"][0]["frames"][1]["is_user_code"], true);
  EXPECT_EQ(table["rows"][0]["share"], nullptr);
  EXPECT_EQ(table["rows"][1]["share"], 0.25);
}

TEST(DocumentJson, AChartHasItsLinesInTheOrderOfTimeAndNullForWhatIsNotKnown) {
  Chart chart{.title = "cpu",
              .lines = {chart_line("allocated", {2, 1, 3}, {20, 10, std::nan("")})},
              .limit_bytes = 64};
  Document document;
  Section section{"Over time"};
  section.add(chart);
  document.add(section);
  const std::string text = document_json(document).dump();
  EXPECT_THAT(text, HasSubstr(R"("title":"cpu","limit_bytes":64)"));
  EXPECT_THAT(text, HasSubstr(R"("times_s":[1.0,2.0,3.0],"bytes":[10.0,20.0,null])"));
}

TEST(Charts, OfVeryManyPointsEachSpikeIsKept) {
  std::vector<double> times(100'000), bytes(100'000, 5);
  for (size_t i = 0; i < times.size(); ++i) times[i] = static_cast<double>(i);
  bytes[31'337] = 900, bytes[77'777] = 1, bytes[0] = std::nan("");
  const ChartLine line = chart_line("allocated", times, bytes);
  EXPECT_LE(line.bytes.size(), 1000u);
  const auto value_at = [&](double time) {
    const auto at = std::ranges::find(line.times_s, time);
    return at == line.times_s.end() ? -1 : line.bytes[static_cast<size_t>(at - line.times_s.begin())];
  };
  EXPECT_EQ(value_at(31'337), 900);
  EXPECT_EQ(value_at(77'777), 1);
  EXPECT_TRUE(std::ranges::is_sorted(line.times_s));
}

}  // namespace
}  // namespace gpumemprof
