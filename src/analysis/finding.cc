#include "analysis/finding.h"

#include <algorithm>
#include <iterator>

#include "analysis/finding_figure.h"

namespace gpumemprof {

const char* severity_name(Severity severity) {
  return severity == Severity::kInfo      ? "info"
         : severity == Severity::kWarning ? "warning"
                                          : "critical";
}

bool is_small_leak(const Finding& finding, uint64_t peak_bytes) {
  constexpr uint64_t kNews = 1 << 20, kNewsShare = 1000;
  return finding.kind == FindingKind::kLeak && finding.bytes && *finding.bytes < kNews &&
         *finding.bytes < peak_bytes / kNewsShare;
}

bool tells_growth_by_line(const Finding& finding) {
  constexpr FindingKind kGrowths[] = {FindingKind::kLeak, FindingKind::kSizesRise,
                                      FindingKind::kFillsToLimit, FindingKind::kGrowthInLoop};
  return std::ranges::find(kGrowths, finding.kind) != std::end(kGrowths);
}

uint64_t grown_bytes(const Finding& finding) {
  const uint64_t* bytes = find_figure(finding, "grown_bytes");
  return bytes ? *bytes : 0;
}

void sort_findings(std::vector<Finding>* findings) {
  std::ranges::stable_sort(*findings, [](const Finding& a, const Finding& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    return a.bytes.value_or(0) > b.bytes.value_or(0);
  });
}

}  // namespace gpumemprof
