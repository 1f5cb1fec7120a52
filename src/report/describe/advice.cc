// What to change, the most bytes first, with how each saving is known.
#include <fmt/format.h>

#include "base/size.h"
#include "report/describe/sections.h"

namespace gpumemprof {
namespace {

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

Section advice_section(const AdviceReport& report) {
  Section out{"What to change"};
  if (!report.not_looked_because.empty())
    out.add(Sentence{"Not looked for: " + report.not_looked_because + "."});
  List list{.label_width = 9};
  for (const Advice& one : report.advice) {
    list.items.push_back({.label = format_bytes(one.bytes),
                          .text = one.title,
                          .details = {{one.fix}, {basis_words(one), Tone::kDim}}});
  }
  if (!list.items.empty()) out.add(std::move(list));
  return out;
}

}  // namespace gpumemprof
