#include "report/advice_html.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(AdviceHtml, SaysWhatIsSimulatedAndLetsNoMarkupIn) {
  AdviceReport report{.applies = true};
  report.advice.push_back({.kind = "checkpointing",
                           .title = "<b>blocks</b>",
                           .fix = "checkpoint & go",
                           .bytes = 3 << 20,
                           .basis = SavingBasis::kSimulated,
                           .peak_bytes = 9 << 20});
  const std::string page = advice_section(report);
  EXPECT_NE(page.find("<b>3.00 MiB</b> &lt;b&gt;blocks&lt;/b&gt;<p>checkpoint &amp; go</p>"),
            std::string::npos);
  EXPECT_NE(page.find("simulated on the recorded trace, of a peak of 9.00 MiB"), std::string::npos);
  EXPECT_EQ(page.find("<b>blocks"), std::string::npos);
}

TEST(AdviceHtml, NothingToSayIsNoSection) {
  EXPECT_EQ(advice_section({.applies = true}), "");
  EXPECT_EQ(advice_section({.applies = false, .unknown = {{"all", "nothing of it"}}}), "");
  EXPECT_NE(advice_section({.applies = false, .unknown = {{"all", "only when asked: --advice"}}})
                .find("Not looked for"),
            std::string::npos);
}

}  // namespace
}  // namespace gpumemprof
