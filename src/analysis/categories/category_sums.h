// What was live at the peak, by category, by module and by phase.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/categories/category_holder.h"
#include "analysis/categories/snapshot_rules.h"

namespace gpumemprof {

struct CategoryGroup {
  std::string name;  ///< empty: of none that is known
  uint64_t bytes = 0, count = 0;
  std::array<uint64_t, kCategories> by_category{};  ///< bytes
};

/// All lists hold all bytes, the largest group first.
struct CategorySums {
  std::vector<CategoryGroup> categories;   ///< those with any; named as category_name()
  std::vector<CategoryGroup> modules;      ///< by path; kRootModule for what the model itself holds
  std::vector<CategoryGroup> phases;       ///< by work_phase_name()
  std::vector<CategoryGroup> user_phases;  ///< by what was open when it was allocated
  uint64_t total_bytes = 0;
  uint64_t attributed_bytes = 0;  ///< with a module, or a phase of either kind
};
inline constexpr const char* kRootModule = "(model)";

CategorySums category_sums(const std::vector<CategoryHolder>& holders, const Tables& tables);

struct UnknownSum {
  WhyUnknown why = WhyUnknown::kNone;
  uint64_t bytes = 0, count = 0;
};
/// What is without a known category and has a reason, by it; the largest first.
std::vector<UnknownSum> unknown_sums(const std::vector<CategoryHolder>& holders);
/// Where part of the peak is unknown for want of the names of parameters: why there are none, as a
/// sentence without a full stop; else "".
const char* why_without_names(const DeviceCategories& categories);

struct RuleSum {
  SnapshotRule rule = SnapshotRule::kNoRule;
  uint64_t bytes = 0, count = 0;
};
/// How sure the categories are that rules told.
struct RuleSums {
  std::array<uint64_t, kConfidences> by_confidence{};  ///< bytes, indexed by Confidence
  std::array<RuleSum, kSnapshotRules> by_rule{};       ///< largest first, then those with nothing
};
/// Of those holders that have a rule.
RuleSums rule_sums(const std::vector<CategoryHolder>& holders);

/// Which module a block is of: that of its name, else the one that was called; and its phase. What
/// autograd saved outside of any module is of forward, and input is of data loading, by whatever
/// code it was made.
struct HolderWork {
  std::string module, phase, user_phase;
};
HolderWork work_of_holder(const CategoryHolder& holder, const Tables& tables);

/// Whether the size of a batch decides it: activations, inputs and temporaries of the passes and of
/// loading data. What an optimizer's step makes, or an average of weights, has a size of its own, and
/// so have the buffers in which torch.distributed gathers weights and scatters gradients.
bool is_of_batch(const CategoryHolder& holder, const Tables& tables);

/// Of DistributedDataParallel's buckets, in which ranks exchange gradients: those that no gradient is
/// a view of.
uint64_t bucket_bytes(const std::vector<CategoryHolder>& holders, const Tables& tables);

/// Backward passes made most activations, for others through them (create_graph=True).
/// Checkpointing does not lower these: what computes them saves them again.
bool are_activations_of_backward(const std::vector<CategoryHolder>& holders, const Tables& tables);

}  // namespace gpumemprof
