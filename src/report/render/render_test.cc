#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/render/html.h"
#include "report/render/text.h"

namespace gpumemprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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
  section.add(Chart{[] { return std::string("<svg></svg>"); }});
  EXPECT_TRUE(text_lines(section, {}).empty());
}

TEST(RenderHtml, EveryTextIsEscapedAndRowsOpen) {
  Document document{.title = "<t>"};
  Section section{"Lines"};
  section.add(two_lines());
  section.add(Chart{[] { return std::string("<svg></svg>"); }});
  document.add(section);
  const std::string page = render_html(document);
  EXPECT_THAT(page, HasSubstr("<title>&lt;t&gt;</title>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"n\">1.00 MiB</td><td class=\"w\"><details><summary>"
                              "<code>a.py:1 &lt;f&gt;</code> <code class=\"dim\">3 blocks</code>"));
  EXPECT_THAT(page, HasSubstr("<p class=\"u\" title=\"/opt/a.py:1 &lt;f&gt;\">a.py:1 &lt;f&gt;"));
  EXPECT_THAT(page, HasSubstr("<i style=\"width:25.0%\">"));
  EXPECT_THAT(page, HasSubstr("and 2 more lines"));
  EXPECT_THAT(page, HasSubstr("<svg></svg>"));
}

TEST(RenderHtml, ASectionWithoutAnythingToShowIsLeftOut) {
  Document document;
  Section section{"Over time"};
  section.add(Chart{[] { return std::string(); }});
  document.add(section);
  EXPECT_THAT(render_html(document), Not(HasSubstr("Over time")));
}

}  // namespace
}  // namespace gpumemprof
