#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/describe/sections.h"
#include "report/json/document_json.h"

namespace gpumemprof {
namespace {

std::string advice_text_of(const AdviceReport& report) {
  Document document;
  document.add(advice_section(report));
  return document_json(document).dump();
}

TEST(AdviceSection, SaysWhatIsSimulated) {
  AdviceReport report{.applies = true};
  report.advice.push_back({.kind = "checkpointing",
                           .title = "<b>blocks</b>",
                           .fix = "checkpoint & go",
                           .bytes = 3 << 20,
                           .basis = SavingBasis::kSimulated,
                           .peak_bytes = 9 << 20});
  const std::string told = advice_text_of(report);
  EXPECT_NE(told.find(R"("label":"3.00 MiB","text":"<b>blocks</b>")"), std::string::npos);
  EXPECT_NE(told.find(R"("text":"Checkpoint & go")"), std::string::npos);
  EXPECT_NE(told.find("3.00 MiB of the 9.00 MiB peak, simulated on the recorded trace"),
            std::string::npos);
}

TEST(AdviceSection, NothingToSayIsNoSection) {
  EXPECT_TRUE(advice_section({.applies = true}).parts.empty());
  EXPECT_TRUE(advice_section({.unknown = {{"all", "nothing of it"}}}).parts.empty());
  EXPECT_NE(advice_text_of({.not_looked_because = "only when asked"})
                .find("Not computed: only when asked."),
            std::string::npos);
}

}  // namespace
}  // namespace gpumemprof
