#include "analysis/compare/fail_on.h"

#include <algorithm>

#include "analysis/ranks/job_ranks.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kPeak = "peak>";
constexpr std::string_view kShort = "oom";  // of out_of_memory

/// A refusal is one of memory, whatever its kind.
bool is_of(const Finding& finding, FindingKind condition) {
  return condition == FindingKind::kOutOfMemory ? is_refusal(finding) : finding.kind == condition;
}

/// Of the program that was recorded; findings of snapshots are told as such.
std::string ran_out(const ProgramEnds& ends) {
  if (!ends.refused.empty()) {
    const auto& first = ends.refused.front().requested;
    return first ? format_bytes(first->bytes) + " were refused" : "a request was refused";
  }
  return std::ranges::any_of(ends.runs, was_killed_by_the_kernel)
             ? "the kernel's OOM killer ended the program"
             : "";
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// What may have held more, or been found, and is not there; empty where all is.
std::string why_incomplete(const Analysis& analysis) {
  for (const DeviceAnalysis& device : analysis.devices) {
    if (!is_exact(analysis, device)) return why_not_exact(analysis, device);
  }
  if (!analysis.loss.has_every_event()) return why_not_exact(analysis, {});
  if (analysis.devices.empty()) return "nothing was recorded";
  const uint64_t ranks = analysis.ranks ? analysis.ranks->missing_count : 0;
  if (ranks == 0) return "";
  return ranks == 1 ? "a rank has no recording"
                    : std::to_string(ranks) + " ranks have no recording";
}

/// "the peak of cpu is 2.00 GiB, more than 1.00 GiB"; empty where it is not.
std::string peak_above(uint64_t most_bytes, const Analysis& analysis, const Tables& tables) {
  const DeviceAnalysis* device = main_device(analysis, tables);
  const uint64_t peak = device ? device->figures.peak_bytes : 0;
  if (peak <= most_bytes) return "";
  const bool is_rounded_alike = format_bytes(peak) == format_bytes(most_bytes);
  const auto size = [&](uint64_t bytes) {
    return is_rounded_alike ? std::to_string(bytes) + " B" : format_bytes(bytes);
  };
  return "the peak of " + memory_name(*device, tables) + " is " + size(peak) + ", more than " +
         size(most_bytes);
}

/// "leak: a.py:1 (and 1 more)"; empty where nothing was found.
std::string found(FindingKind condition, const Analysis& analysis) {
  size_t count = 0;
  const Finding* first = nullptr;
  for (const Finding& finding : analysis.findings) {
    if (!is_of(finding, condition) || finding.severity == Severity::kInfo) continue;
    if (count++ == 0) first = &finding;
  }
  std::string what;
  if (first)
    what = first->title + (count > 1 ? " (and " + std::to_string(count - 1) + " more)" : "");
  else if (condition == FindingKind::kOutOfMemory)
    what = ran_out(analysis.ends);
  return what.empty() ? what : finding_kind_name(condition) + (": " + what);
}

Result<FailCondition> parse_one(std::string_view text) {
  if (text.starts_with(kPeak)) {
    const auto bytes = parse_size(trimmed(text.substr(kPeak.size())));
    if (!bytes) return std::unexpected(bytes.error());
    return FailCondition{.peak_bytes = *bytes, .text = std::string(text)};
  }
  const auto kind = text == kShort ? FindingKind::kOutOfMemory : finding_kind_of(text);
  if (kind) return FailCondition{.finding = kind, .text = std::string(text)};
  std::string known(kShort);
  for (const char* name : finding_kind_names()) known += std::string(", ") + name;
  return fail(ErrorCode::kUsage, "unknown condition '" + std::string(text) + "'; known are " +
                                     known + " or peak>SIZE");
}

}  // namespace

Result<std::vector<FailCondition>> parse_fail_conditions(std::string_view text) {
  std::vector<FailCondition> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    auto condition = parse_one(trimmed(text.substr(begin, end - begin)));
    if (!condition) return std::unexpected(condition.error());
    out.push_back(std::move(*condition));
    begin = end + 1;
  }
  return out;
}

FailVerdict judge_conditions(const std::vector<FailCondition>& conditions,
                             const Analysis& analysis, const Tables& tables) {
  FailVerdict out;
  const std::string missing = why_incomplete(analysis);
  for (const FailCondition& condition : conditions) {
    std::string failure = condition.finding ? found(*condition.finding, analysis)
                                            : peak_above(condition.peak_bytes, analysis, tables);
    if (!failure.empty())
      out.failures.push_back(std::move(failure));
    else if (!missing.empty())
      out.unknown += (out.unknown.empty() ? "" : ", ") + condition.text;
  }
  if (!out.unknown.empty()) out.unknown += ": unknown whether it holds, because " + missing;
  return out;
}

}  // namespace gpumemprof
