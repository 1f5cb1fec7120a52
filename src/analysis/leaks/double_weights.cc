#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "analysis/leaks/leak_findings.h"
#include "analysis/statistics/statistics.h"
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

/// What is left of the parameters after the peak, without `gone` of them, for a 50th of the run: the
/// median of these levels, as a sample can fall while a set is being freed. Absent where they stay
/// until the program ends, which frees all.
std::optional<uint64_t> left_after_peak(const DeviceAnalysis& device, uint64_t gone) {
  constexpr size_t kLeastSamples = 3, kLeastShare = 50;
  constexpr auto kWeights = static_cast<size_t>(Category::kParameter);
  const DeviceCategories& known = device.categories;
  const uint64_t all = known.bytes_at_peak()[kWeights];
  std::vector<uint64_t> left;
  for (size_t i = 0; i < known.timeline.size(); ++i) {
    const uint64_t level = known.timeline[i][kWeights];
    const bool is_after = known.start_ns + i * known.sample_ns > device.figures.peak_time_ns;
    if (!is_after || level == 0 || level > all - gone / 10 * 9) continue;
    left.push_back(level);
  }
  if (left.size() < std::max(kLeastSamples, known.timeline.size() / kLeastShare))
    return std::nullopt;
  return upper_median(std::move(left));
}

std::optional<Finding> double_weights(const DeviceAnalysis& device) {
  const DeviceCategories& known = device.categories;
  if (!known.is_known || !known.has_names) return std::nullopt;
  uint64_t again = 0, names = 0;
  uint32_t stack = 0;
  for (const auto& [name, peak] : weights_of(known.at_peak)) {
    if (peak.count < 2 || !peak.is_even) continue;
    ++names;
    again += (peak.count - 1) * peak.bytes_each;
    stack = std::max(stack, peak.newest_stack);
  }
  const uint64_t peak_bytes = device.figures.peak_bytes;
  if (!is_worth(again, peak_bytes)) return std::nullopt;
  const std::optional<uint64_t> left = left_after_peak(device, again);
  if (!left) return std::nullopt;
  return Finding{
      .kind = FindingKind::kDoubleWeightsInPhase,
      .severity = Severity::kWarning,
      .title = "at the peak, " + format_bytes(again) + " of parameters existed a second time: " +
               std::to_string(names) + (names == 1 ? " parameter" : " parameters") +
               " had another block of the same size; later " + format_bytes(*left) +
               " of parameters remain",
      .bytes = again,
      .evidence = {{"second_set_bytes", again},
                   {"left_bytes", *left},
                   {"parameters", names},
                   {"peak_bytes", peak_bytes}},
      .stack = stack,
      .fix = "copy each new weight into the existing one, or drop the old model or move it to the "
             "CPU before the new one is built",
      .device = device.device};
}

}  // namespace

void add_double_weights(Analysis* analysis) {
  for (const DeviceAnalysis& device : analysis->devices)
    if (std::optional<Finding> found = double_weights(device))
      analysis->findings.push_back(*std::move(found));
}

}  // namespace gpumemprof
