#include "analysis/leaks/double_weights.h"

#include <absl/container/flat_hash_map.h>

#include "analysis/statistics/worth.h"

namespace gpumemprof {
namespace {

/// Parameters of one name.
struct NamedWeights {
  uint64_t count = 0, bytes_each = 0;
  bool is_even = true;  // all of one size
  uint32_t newest_stack = 0;
};
using WeightsByName = absl::flat_hash_map<uint32_t, NamedWeights>;

WeightsByName weights_of(const std::vector<CategoryHolder>& holders) {
  WeightsByName out;
  for (const CategoryHolder& holder : holders) {
    if (holder.category != Category::kParameter || holder.name == 0 || holder.count == 0) continue;
    NamedWeights& weights = out[holder.name];
    const uint64_t each = holder.bytes / holder.count;
    if (weights.count == 0) weights.bytes_each = each;
    weights.is_even &= each == weights.bytes_each && holder.bytes % holder.count == 0;
    weights.count += holder.count;
    weights.newest_stack = std::max(weights.newest_stack, holder.stack);  // ids rise
  }
  return out;
}

std::optional<Finding> double_weights(const DeviceAnalysis& device) {
  const DeviceCategories& known = device.categories;
  if (!known.is_known || !known.has_names) return std::nullopt;
  const WeightsByName at_peak = weights_of(known.at_peak), at_end = weights_of(known.at_end);
  uint64_t gone = 0, kept = 0, names = 0, most = 0;
  uint32_t stack = 0;
  for (const auto& [name, peak] : at_peak) {
    const auto end = at_end.find(name);
    if (end == at_end.end() || end->second.count >= peak.count) continue;
    if (!peak.is_even || !end->second.is_even || end->second.bytes_each != peak.bytes_each) continue;
    ++names;
    gone += (peak.count - end->second.count) * peak.bytes_each;
    kept += end->second.count * peak.bytes_each;
    const bool is_first = peak.bytes_each == most && peak.newest_stack < stack;
    if (peak.bytes_each < most || (peak.bytes_each == most && !is_first)) continue;
    most = peak.bytes_each, stack = peak.newest_stack;
  }
  const uint64_t peak_bytes = device.figures.peak_bytes;
  if (!is_worth(gone, peak_bytes)) return std::nullopt;
  return Finding{
      .kind = "double_weights_in_phase",
      .severity = Severity::kWarning,
      .title = format_bytes(gone) + " of parameters were there twice at the peak: " +
               std::to_string(names) + " names have another set of the same sizes, of which " +
               format_bytes(kept) + " are left at the end",
      .bytes = gone,
      .evidence = {{"second_set_bytes", gone},
                   {"kept_bytes", kept},
                   {"parameters", names},
                   {"peak_bytes", peak_bytes}},
      .stack = stack,
      .fix = "hand over one parameter at a time (copy_ into the weights that are there), or drop or "
             "move to the CPU the old model before the new one is built",
      .device = device.device};
}

}  // namespace

void add_double_weights(Analysis* analysis) {
  for (const DeviceAnalysis& device : analysis->devices)
    if (std::optional<Finding> found = double_weights(device))
      analysis->findings.push_back(*std::move(found));
}

}  // namespace gpumemprof
