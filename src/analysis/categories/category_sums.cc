#include "analysis/categories/category_sums.h"

#include <algorithm>
#include <map>

#include "trace/module_path.h"

namespace gpumemprof {
namespace {

using Groups = std::map<std::string, CategoryGroup, ByNumbers>;

void add(Groups* groups, const std::string& name, const CategoryHolder& holder) {
  CategoryGroup& group = (*groups)[name];
  group.name = name;
  group.bytes += holder.bytes, group.count += holder.count;
  group.by_category[static_cast<size_t>(holder.category)] += holder.bytes;
}

std::vector<CategoryGroup> largest_first(Groups groups) {
  std::vector<CategoryGroup> list;
  for (auto& [name, group] : groups) list.push_back(std::move(group));
  std::ranges::stable_sort(list, std::ranges::greater(), &CategoryGroup::bytes);
  return list;
}

}  // namespace

std::vector<UnknownSum> unknown_sums(const std::vector<CategoryHolder>& holders) {
  std::vector<UnknownSum> sums;
  for (size_t why = 1; why < kWhyUnknown; ++why) {
    UnknownSum sum{static_cast<WhyUnknown>(why)};
    for (const CategoryHolder& holder : holders) {
      if (holder.why != sum.why) continue;
      sum.bytes += holder.bytes, sum.count += holder.count;
    }
    if (sum.count != 0) sums.push_back(sum);
  }
  std::ranges::stable_sort(sums, std::greater<>(), &UnknownSum::bytes);
  return sums;
}

const char* why_without_names(const DeviceCategories& categories) {
  if (categories.has_names || categories.is_by_rules) return "";
  const bool may_be_parameters =
      std::ranges::any_of(categories.at_peak, [](const CategoryHolder& holder) {
        return holder.why == WhyUnknown::kSetUp || holder.why == WhyUnknown::kSavedAgain ||
               holder.why == WhyUnknown::kSaved;
      });
  return may_be_parameters
             ? "parameters have no names: gpumemprof's package was not loaded into the program's "
               "Python (pip install gpumemprof there, if it is a CPython with a GIL), or the main "
               "thread ran no Python while other threads called the model"
             : "";
}

RuleSums rule_sums(const std::vector<CategoryHolder>& holders) {
  RuleSums sums;
  for (const CategoryHolder& holder : holders) {
    if (holder.rule == CategoryHolder::kNotByRules) continue;
    RuleSum& sum = sums.by_rule[holder.rule % kSnapshotRules];
    sum.rule = static_cast<SnapshotRule>(holder.rule);
    sum.bytes += holder.bytes, sum.count += holder.count;
    sums.by_confidence[static_cast<size_t>(facts_of(sum.rule).confidence)] += holder.bytes;
  }
  std::ranges::stable_sort(sums.by_rule, std::greater<>(), &RuleSum::bytes);
  return sums;
}

HolderWork work_of_holder(const CategoryHolder& holder, const Tables& tables) {
  const Attribution made_in = attribution_of(tables, holder.stack);
  HolderWork work{std::string(made_in.module), work_phase_name(made_in.phase),
                  std::string(made_in.user_phase)};
  if (holder.name != 0) {
    const std::string_view module = module_of_storage(tables.strings.get(holder.name));
    work.module = module.empty() ? kRootModule : std::string(module);
  }
  if (holder.rule != CategoryHolder::kNotByRules) {
    // A snapshot's stacks have no such frames.
    const bool is_told = !work.module.empty() || !work.user_phase.empty();
    if (!is_told || holder.phase != WorkPhase::kNone) work.phase = work_phase_name(holder.phase);
  }
  if (!work.phase.empty()) return work;
  if (holder.category == Category::kActivation) work.phase = work_phase_name(WorkPhase::kForward);
  if (holder.category == Category::kInput) work.phase = work_phase_name(WorkPhase::kDataLoading);
  return work;
}

bool is_of_batch(const CategoryHolder& holder, const Tables& tables) {
  if (holder.category != Category::kActivation && holder.category != Category::kInput &&
      holder.category != Category::kTemporary)
    return false;
  if (attribution_of(tables, holder.stack).is_collective) return false;
  const std::string phase = work_of_holder(holder, tables).phase;
  return phase == work_phase_name(WorkPhase::kForward) ||
         phase == work_phase_name(WorkPhase::kBackward) ||
         phase == work_phase_name(WorkPhase::kDataLoading);
}

uint64_t bucket_bytes(const std::vector<CategoryHolder>& holders, const Tables& tables) {
  uint64_t bytes = 0;
  for (const CategoryHolder& holder : holders) {
    if (holder.category == Category::kFrameworkOther &&
        attribution_of(tables, holder.stack).is_reducer)
      bytes += holder.bytes;
  }
  return bytes;
}

bool are_activations_of_backward(const std::vector<CategoryHolder>& holders, const Tables& tables) {
  uint64_t all = 0, of_backward = 0;
  for (const CategoryHolder& holder : holders) {
    if (holder.category != Category::kActivation) continue;
    const Attribution work = attribution_of(tables, holder.stack);
    all += holder.bytes;
    if (work.phase == WorkPhase::kBackward && !work.is_recomputed) of_backward += holder.bytes;
  }
  return 2 * of_backward > all;
}

CategorySums category_sums(const std::vector<CategoryHolder>& holders, const Tables& tables) {
  CategorySums sums;
  Groups categories, modules, phases, user_phases;
  for (const CategoryHolder& holder : holders) {
    const HolderWork work = work_of_holder(holder, tables);
    add(&categories, category_name(holder.category), holder);
    add(&modules, work.module, holder);
    add(&phases, work.phase, holder);
    add(&user_phases, work.user_phase, holder);
    sums.total_bytes += holder.bytes;
    const bool is_attributed =
        !work.module.empty() || !work.phase.empty() || !work.user_phase.empty();
    if (is_attributed) sums.attributed_bytes += holder.bytes;
  }
  sums.categories = largest_first(std::move(categories));
  sums.modules = largest_first(std::move(modules));
  sums.phases = largest_first(std::move(phases));
  sums.user_phases = largest_first(std::move(user_phases));
  return sums;
}

}  // namespace gpumemprof
