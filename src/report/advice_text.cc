#include "report/advice_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/advice/practices.h"
#include "report/describe/sections.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

std::string what_to_do(std::string_view type) {
  if (type == "monotonic_increase")
    return "Find what keeps tensors from step to step: a list of losses, a metric that is never "
           "reset, a tf.function that is retraced for every new Python argument";
  if (type == "spikes")
    return "Need less at that moment: smaller batches, or tf.recompute_grad around the largest "
           "layers";
  return "Drop what is no longer needed before the next phase: del the model and its datasets, "
         "then tf.keras.backend.clear_session()";
}

std::string why_none(const AdviceReport& report) {
  for (const auto& [kind, why] : report.unknown) {
    if (kind == "all") return why;
  }
  return "no memory of PyTorch or TensorFlow was recorded";
}

/// Without what no recording tells: that is no news of this one, and docs/commands/advise.md has it.
std::string unknown_text(const AdviceReport& report) {
  std::string out;
  std::vector<std::pair<std::string, std::string>> reasons;  // kinds, why
  for (const auto& [kind, why] : report.unknown) {
    if (kind == "all" || is_told_by_no_recording(kind, why)) continue;  // the first was said before
    const bool is_same = !reasons.empty() && reasons.back().second == why;
    if (is_same)
      reasons.back().first += ", " + kind;
    else
      reasons.emplace_back(kind, why);
  }
  for (const auto& [kinds, why] : reasons)
    out += fmt::format("Not checked: {} ({})\n", kinds, printable(why));
  return out;
}

}  // namespace

std::string advice_text(const AdviceReport& report, const std::string& otherwise) {
  std::string out;
  if (!report.failure.empty())
    out = fmt::format(
        "Note: {}; the suggestions cover what was recorded until then and were not measured.\n",
        printable(report.failure));
  if (!report.applies) {
    out += fmt::format("No suggestions: {}.\n", why_none(report));
    if (!otherwise.empty()) out += otherwise + '\n';
    return out + unknown_text(report);
  }
  const auto saving = report.advice.size() - static_cast<size_t>(std::ranges::count_if(
                                                 report.advice, was_measured_for_nothing));
  // What saves time alone leaves the question of memory open.
  const bool has_other =
      !otherwise.empty() && std::ranges::all_of(report.advice, [](const Advice& one) {
        return one.basis == SavingBasis::kTime || was_measured_for_nothing(one);
      });
  out += saving != 0 ? format_plural(static_cast<uint64_t>(saving), "suggestion") + '\n'
         : has_other && report.advice.empty() ? "No suggestion has a computed saving.\n"
                     : "No suggestions.\n";
  bool was_choice = report.advice.empty() || report.advice.front().is_choice();
  size_t width = 16;
  for (const Advice& one : report.advice) width = std::max(width, one.kind.size());
  const std::string margin(2 + width + 1 + 9 + 2, ' ');
  for (const Advice& one : report.advice) {
    if (one.is_choice() && !was_choice) out += fmt::format("{}\n", kChoicesFollow);
    was_choice |= one.is_choice();
    out += fmt::format("  {:<{}} {:>9}  {}\n", one.kind, width, saving_label(one),
                       printable(title_beside_bytes(one)));
    if (!was_measured_for_nothing(one))
      out += fmt::format("{}{}.\n", margin, printable(capitalized(one.fix)));
    out += fmt::format("{}{}.\n", margin, printable(saving_words(one)));
    if (!one.cost.empty()) out += fmt::format("{}Costs: {}.\n", margin, printable(one.cost));
  }
  if (has_other) out += otherwise + '\n';
  return out + unknown_text(report);
}

AdviceReport advise_of_samples(const TelemetryAnalysis& analysis) {
  AdviceReport report;
  report.applies = true;
  for (const TelemetrySeries& series : analysis.series) {
    for (const SeriesFinding& finding : series.report.findings) {
      const auto bytes = static_cast<uint64_t>(std::max(finding.bytes, 0.0));
      report.advice.push_back({finding.type,
                               finding.description,
                               what_to_do(finding.type),
                               bytes,
                               {{finding.type + "_bytes", bytes}}});
    }
  }
  for (const char* kind : {"tf_function", "mixed_precision", "tf_data", "distribution",
                           "memory_growth", "allocator"}) {
    report.unknown.emplace_back(
        kind, "samples do not show what a program does; record it with tfmemprof run");
  }
  return report;
}

std::string advice_markdown(const std::string& path, const std::string& text,
                            const AdviceReport* advice, const std::string& otherwise) {
  std::string out = fmt::format("# Memory of {}\n\n", printable(path));
  if (advice) {
    out += "## What to change\n\n";
    if (!advice->applies)
      out += fmt::format("Nothing: {}.\n", printable(why_none(*advice)));
    else if (advice->advice.empty())
      out += "No suggestions.\n";
    if (advice->advice.empty() && !otherwise.empty())
      out += '\n' + printable(otherwise) + '\n';
    for (const Advice& one : advice->advice) {
      out += fmt::format("- **{}**: {} {}. {}.\n", one.kind, saving_label(one),
                         printable(title_beside_bytes(one)), printable(capitalized(one.fix)));
    }
    if (!advice->unknown.empty()) out += "\nNot known:\n\n";
    for (const auto& [kind, why] : advice->unknown)
      out += fmt::format("- {}: {}\n", kind, printable(why));
    out += '\n';
  }
  // Four backticks: what a recording holds may have three.
  std::string safe = text;
  for (size_t at = 0; (at = safe.find("````", at)) != std::string::npos;)
    safe.replace(at, 4, "''''");
  return out + "## The analysis\n\n````text\n" + safe + "````\n";
}

}  // namespace gpumemprof
