#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "analysis/series/recording_patterns.h"
#include "analysis/statistics/statistics.h"

namespace gpumemprof {
namespace {

/// What can be told as one with the like of other processes: no warning, and of no rank.
bool may_be_folded(const Tables& tables, const Finding& one) {
  if (one.severity != Severity::kInfo || one.device >= tables.devices.size()) return false;
  const uint32_t process = tables.devices[one.device].process;
  return process < tables.processes.size() && !tables.processes[process].rank;
}

/// `large` has as many bytes or more, at most twice as many; both have the same figures, so that
/// neither has steps where the other has none.
bool shows_the_same(const Tables& tables, const Finding& large, const Finding& small) {
  const auto name = [](const auto& figure) -> const std::string& { return figure.first; };
  return large.kind == small.kind && 2 * small.bytes.value_or(0) >= large.bytes.value_or(0) &&
         device_name(tables.devices[large.device]) == device_name(tables.devices[small.device]) &&
         std::ranges::equal(large.evidence, small.evidence, {}, name, name);
}

bool is_small_beside(const HighestOfType& highest, const Tables& tables, const Finding& finding) {
  constexpr double kLeastShare = 0.05;
  const bool comes_and_goes =
      finding.kind == FindingKind::kSawtooth || finding.kind == FindingKind::kSpike;
  if (!comes_and_goes || finding.severity != Severity::kInfo) return false;
  if (finding.device >= tables.devices.size()) return false;
  const auto known = highest.find(tables.devices[finding.device].type);
  if (known == highest.end() || known->second->device == finding.device) return false;
  const auto peak_bytes = static_cast<double>(known->second->figures.peak_bytes);
  return static_cast<double>(finding.bytes.value_or(0)) < kLeastShare * peak_bytes;
}

}  // namespace

void fold_like_findings(const Tables& tables, std::vector<Finding>* found) {
  std::vector<size_t> by_size;
  for (size_t i = 0; i < found->size(); ++i) {
    if (may_be_folded(tables, (*found)[i])) by_size.push_back(i);
  }
  std::ranges::stable_sort(by_size, std::greater{}, [&](size_t i) { return (*found)[i].bytes; });
  std::vector<std::pair<size_t, size_t>> told;  // which, with how many more there are
  std::vector<bool> is_folded(found->size());
  for (const size_t i : by_size) {
    const auto like = std::ranges::find_if(told, [&](const auto& large) {
      return shows_the_same(tables, (*found)[large.first], (*found)[i]);
    });
    if (like == told.end()) {
      told.emplace_back(i, 0);
    } else {
      ++like->second;
      is_folded[i] = true;
    }
  }
  for (const auto& [i, more] : told) {
    if (more != 0)
      (*found)[i].title += "; " + std::to_string(more) + " more process" +
                           (more == 1 ? " shows" : "es show") + " the same pattern";
  }
  erase_marked(is_folded, found);
}

void drop_small_findings(const HighestOfType& highest, const Tables& tables,
                         std::vector<Finding>* found) {
  std::erase_if(*found,
                [&](const Finding& one) { return is_small_beside(highest, tables, one); });
}

}  // namespace gpumemprof
