// What to change, waste before choices that have a price, with how each saving is known.
#include <fmt/format.h>

#include <utility>

#include "base/size.h"
#include "report/describe/sections.h"
#include "report/words.h"

namespace gpumemprof {

std::string saving_words(const Advice& one) {
  const std::string peak = format_bytes(one.peak_bytes);
  std::string text;
  if (one.basis == SavingBasis::kTime)
    text = "Saves time, not memory; not simulated";
  else if (one.basis == SavingBasis::kAtStake)
    text = "Upper bound; not simulated";
  else if (one.makes_fit)
    text = fmt::format("Makes the refused request of {} fit, simulated on the recorded trace",
                       format_bytes(one.bytes));
  else if (was_measured_for_nothing(one))
    text = fmt::format("Saves nothing: the peak was {}, and {} in a run with the change", peak,
                       format_bytes(one.changed_peak_bytes));
  else
    text =
        fmt::format("{} of the {} {}{}, {}", format_bytes(one.bytes), peak,
                    one.is_of_reserved ? "reserved at most" : "peak",
                    one.peak_of.empty() ? "" : " of " + one.peak_of,
                    one.basis == SavingBasis::kMeasured ? "measured in a second run with the change"
                                                        : "simulated on the recorded trace");
  if (one.step_ns && one.changed_step_ns)
    text += fmt::format("; a step took {:.2f} ms, {:.2f} ms with the change",
                        static_cast<double>(*one.step_ns) / 1e6,
                        static_cast<double>(*one.changed_step_ns) / 1e6);
  if (!one.not_measured.empty()) text += "; not measured, because " + one.not_measured;
  return text;
}

std::string saving_label(const Advice& one) {
  return one.basis == SavingBasis::kTime ? "time" : format_bytes(one.bytes);
}

std::string title_beside_bytes(const Advice& one) {
  const std::string bytes = format_bytes(one.bytes) + ' ';
  return one.title.starts_with(bytes) ? one.title.substr(bytes.size()) : one.title;
}

bool was_measured_for_nothing(const Advice& one) {
  return one.bytes == 0 && one.changed_peak_bytes != 0;
}

Section advice_section(const AdviceReport& report) {
  Section out{"What to change"};
  if (!report.not_looked_because.empty())
    out.add(Sentence{"Not computed: " + report.not_looked_because + "."});
  List list{.label_width = 9};
  bool was_choice = false;
  for (const Advice& one : report.advice) {
    if (one.is_choice() && !was_choice && !list.items.empty()) {
      out.add(std::exchange(list, {.label_width = 9}));
      out.add(Sentence{kChoicesFollow});
    }
    was_choice |= one.is_choice();
    Item item{.label = saving_label(one),
              .text = title_beside_bytes(one),
              .details = {{capitalized(one.fix)}, {saving_words(one), Tone::kDim}},
              .evidence = evidence_of(one)};
    if (!one.cost.empty()) item.details.push_back({"Costs: " + one.cost, Tone::kDim});
    list.items.push_back(std::move(item));
  }
  if (!list.items.empty()) out.add(std::move(list));
  return out;
}

}  // namespace gpumemprof
