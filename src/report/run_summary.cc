#include "report/run_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/leaks/leak_findings.h"
#include "base/shell_word.h"
#include "base/size.h"
#include "report/describe/describe.h"
#include "report/describe/end_words.h"
#include "report/describe/facts.h"
#include "report/render/text.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMaxLines = 12;

/// What was not recorded, in at most `room` lines; the last counts the rest.
void add_unseen(const std::vector<std::string>& unseen, size_t room,
                std::vector<std::string>* lines) {
  const size_t shown = unseen.size() <= room ? unseen.size() : room - 1;
  for (size_t i = 0; i < shown; ++i) lines->push_back(unseen[i]);
  if (shown < unseen.size()) lines->push_back(fmt::format("and {} more", unseen.size() - shown));
}

/// A recording's folder says of itself which processes it lacks; here they come from the context.
Loss without_named(const Loss& loss, const RunSummaryContext& context) {
  Loss rest = loss;
  if (context.not_recorded.empty()) return rest;
  std::erase_if(rest.reasons,
                [](const LossReason& r) { return r.reason.starts_with("not recorded"); });
  return rest;
}

/// The peak of tensors on the host is little beside what Python and libraries need.
std::string resident_sentence_beside(const Analysis& analysis, const Tables& tables,
                                     std::optional<uint64_t> resident_bytes) {
  const DeviceAnalysis* device = main_device(analysis, tables);
  if (device == nullptr || !resident_bytes) return {};
  const Device& memory = device_at(tables, device->device);
  const bool is_of_host = memory.type == 0 || is_host_blocks(memory);
  if (!is_of_host || *resident_bytes / 2 <= device->figures.peak_bytes) return {};
  return fmt::format("The largest process had {} resident at most.", format_bytes(*resident_bytes));
}

/// Of a worker that ran out, the process that waited for it wrote the dump.
std::string what_held(const ProgramEnds& ends) {
  const RefusedRequest* one = ends.refused.size() == 1 ? &ends.refused.front() : nullptr;
  if (one == nullptr || (one->raised_again_from == 0 && one->raised_again_in.empty()))
    return "What held the memory";
  return fmt::format("What process {} held, which waited for it,", one->process.pid);
}

/// Of a leak that is not what the peak consists of, its part.
std::string worst_sentence(const Finding& finding, const Analysis& analysis) {
  std::string text = finding_sentence(finding);
  constexpr std::string_view kLeak = "Leak: ";
  const DeviceAnalysis* device = find_device(analysis, finding.device);
  if (!device || !is_small_part_of_peak(finding, *device) || !text.starts_with(kLeak)) return text;
  return fmt::format("Leak, {} of the {} peak: {}",
                     format_bytes(leak_bytes_at_peak(finding, *device).value_or(0)),
                     format_bytes(device->figures.peak_bytes), text.substr(kLeak.size()));
}

}  // namespace

std::string run_summary(const Analysis& analysis, const Tables& tables, const Loss& loss,
                        const RunSummaryContext& context) {
  const DescribeOptions options{.working_folder = context.working_folder, .shows_source = true};
  std::vector<std::string> lines = text_lines(
      describe_peak(analysis, tables, options,
                    analysis.events == 0 ? "No allocation was recorded."
                                         : fmt::format("{} recorded; none allocated memory.",
                                                       format_plural(analysis.events, "event"))),
      {});
  for (std::string& line : text_lines(describe_host_peak(analysis, tables, options), {}))
    lines.push_back(std::move(line));
  if (std::string text = resident_sentence_beside(analysis, tables, context.resident_bytes);
      !text.empty())
    lines.push_back(std::move(text));
  const Loss rest = without_named(loss, context);
  const bool is_named_below = is_complete(rest) && !context.not_recorded.empty();
  lines.push_back(is_named_below ? "Not complete: not every process was recorded."
                                 : loss_sentence(rest));
  if (!context.oom_bundle.empty()) {
    lines.push_back(what_held(analysis.ends) + " is in " +
                    printable(shell_word(context.oom_bundle)));
  }
  std::vector<std::string> unseen;
  for (const std::string& text : context.not_recorded)
    unseen.push_back("Not recorded: " + printable(text));
  for (std::string& text : caveats(analysis, tables, context.working_folder))
    unseen.push_back(std::move(text));
  add_unseen(unseen, std::max(kMaxLines, lines.size() + 2) - 1 - lines.size(), &lines);
  lines.push_back(fmt::format("Next: {} analyze {}", printable(shell_word(context.tool)),
                              printable(shell_word(context.folder))));
  // The most severe is first; it is said last, where it is seen. A refused request was said first.
  const auto worst = std::ranges::find_if_not(analysis.findings, [&](const Finding& finding) {
    return is_refusal(finding) || is_small_leak(finding, peak_bytes_of(analysis, finding.device));
  });
  if (worst != analysis.findings.end() && worst->severity != Severity::kInfo)
    lines.push_back(printable(worst_sentence(*worst, analysis)));
  std::string out;
  for (const std::string& line : lines) out += context.prefix + ": " + line + '\n';
  return out;
}

}  // namespace gpumemprof
