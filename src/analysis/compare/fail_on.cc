#include "analysis/compare/fail_on.h"

#include <algorithm>

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

Result<FailCondition> parse_one(std::string_view text) {
  if (text.starts_with(kPeak)) {
    const auto bytes = parse_size(trimmed(text.substr(kPeak.size())));
    if (!bytes) return std::unexpected(bytes.error());
    return FailCondition{.peak_bytes = *bytes};
  }
  const auto kind = text == kShort ? FindingKind::kOutOfMemory : finding_kind_of(text);
  if (kind) return FailCondition{.finding = kind};
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

std::vector<std::string> failures(const std::vector<FailCondition>& conditions,
                                  const Analysis& analysis, const Tables& tables) {
  std::vector<std::string> out;
  for (const FailCondition& condition : conditions) {
    if (!condition.finding) {
      const DeviceAnalysis* device = main_device(analysis, tables);
      if (!device || device->figures.peak_bytes <= condition.peak_bytes) continue;
      out.push_back("the peak of " + memory_name(*device, tables) + " is " +
                    format_bytes(device->figures.peak_bytes) + ", more than " +
                    format_bytes(condition.peak_bytes));
      continue;
    }
    size_t count = 0;
    const Finding* first = nullptr;
    for (const Finding& finding : analysis.findings) {
      if (!is_of(finding, *condition.finding) || finding.severity == Severity::kInfo) continue;
      if (count++ == 0) first = &finding;
    }
    const std::string kind = finding_kind_name(*condition.finding);
    if (!first) {
      const bool is_refused = condition.finding == FindingKind::kOutOfMemory;
      const std::string what = is_refused ? ran_out(analysis.ends) : "";
      if (!what.empty()) out.push_back(kind + ": " + what);
      continue;
    }
    out.push_back(kind + ": " + first->title +
                  (count > 1 ? " (and " + std::to_string(count - 1) + " more)" : ""));
  }
  return out;
}

}  // namespace gpumemprof
