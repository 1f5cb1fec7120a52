#include "report/advice_html.h"

#include <fmt/format.h>

#include "base/size.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

/// As `advise` says it.
std::string basis_words(const Advice& one) {
  switch (one.basis) {
    case SavingBasis::kAtStake:
      return "at stake: at most that can go";
    case SavingBasis::kSimulated:
      return fmt::format("simulated on the recorded trace, of a peak of {}",
                         format_bytes(one.peak_bytes));
    case SavingBasis::kMeasured:
      return fmt::format("measured in another run, of a peak of {}", format_bytes(one.peak_bytes));
  }
  return "";
}

}  // namespace

std::string advice_section(const AdviceReport& report) {
  if (report.advice.empty()) {
    for (const auto& [kind, why] : report.unknown) {
      if (!report.applies && kind == "all" && why.find("--advice") != std::string::npos)
        return fmt::format("<h2>What to change</h2>\n<p>Not looked for: {}.</p>\n", html_text(why));
    }
    return "";
  }
  std::string out = "<h2>What to change</h2>\n<ol class=\"advice\">\n";
  for (const Advice& one : report.advice) {
    out += fmt::format(
        "<li><b>{}</b> {}<p>{}</p><p class=\"dim\">{}</p></li>\n", format_bytes(one.bytes),
        html_text(one.title), html_text(one.fix), html_text(basis_words(one)));
  }
  return out + "</ol>\n";
}

}  // namespace gpumemprof
