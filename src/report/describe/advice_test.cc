#include <gtest/gtest.h>

#include "report/describe/sections.h"
#include "report/render/html.h"

namespace gpumemprof {
namespace {

std::string advice_page(const AdviceReport& report) {
  Document document;
  document.add(advice_section(report));
  return render_html(document);
}

TEST(AdviceSection, SaysWhatIsSimulatedAndLetsNoMarkupIn) {
  AdviceReport report{.applies = true};
  report.advice.push_back({.kind = "checkpointing",
                           .title = "<b>blocks</b>",
                           .fix = "checkpoint & go",
                           .bytes = 3 << 20,
                           .basis = SavingBasis::kSimulated,
                           .peak_bytes = 9 << 20});
  const std::string page = advice_page(report);
  EXPECT_NE(page.find("<b>3.00 MiB</b> &lt;b&gt;blocks&lt;/b&gt;<p>Checkpoint &amp; go</p>"),
            std::string::npos);
  EXPECT_NE(page.find("3.00 MiB of the 9.00 MiB peak, simulated on the recorded trace"),
            std::string::npos);
  EXPECT_EQ(page.find("<b>blocks"), std::string::npos);
}

TEST(AdviceSection, NothingToSayIsNoSection) {
  EXPECT_TRUE(advice_section({.applies = true}).parts.empty());
  EXPECT_TRUE(advice_section({.unknown = {{"all", "nothing of it"}}}).parts.empty());
  EXPECT_NE(advice_page({.not_looked_because = "only when asked"})
                .find("Not looked for: only when asked."),
            std::string::npos);
}

}  // namespace
}  // namespace gpumemprof
