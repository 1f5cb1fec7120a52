#include "report/json/sections.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/categories/category_sums.h"
#include "analysis/replay/snapshot_device.h"
#include "report/json/parts.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

template <class Bytes>
Json bytes_json(const Bytes& bytes, bool with_zeros) {
  Json out = Json::object();
  for (size_t c = 0; c < kCategories; ++c) {
    if (with_zeros || bytes[c] != 0) out[category_name(static_cast<Category>(c))] = bytes[c];
  }
  return out;
}

Json groups_json(const std::vector<CategoryGroup>& groups, const char* key) {
  Json out = Json::array();
  for (const CategoryGroup& group : groups) {
    out.push_back({{key, text_or_null(group.name)},
                   {"bytes", group.bytes},
                   {"count", group.count},
                   {"categories", bytes_json(group.by_category, false)}});
  }
  return out;
}

/// A column for each category that ever held anything.
Json columns_json(const std::vector<CategoryBytes>& samples) {
  Json out = Json::object();
  for (size_t c = 0; c < kCategories; ++c) {
    const bool is_used = std::any_of(samples.begin(), samples.end(),
                                     [&](const CategoryBytes& sample) { return sample[c] != 0; });
    if (!is_used) continue;
    Json column = Json::array();
    for (const CategoryBytes& sample : samples) column.push_back(sample[c]);
    out[category_name(static_cast<Category>(c))] = std::move(column);
  }
  return out;
}

/// Bytes of unknown type, by reason, largest first.
Json unknown_json(const std::vector<CategoryHolder>& holders) {
  Json out = Json::array();
  for (const UnknownSum& sum : unknown_sums(holders)) {
    out.push_back(
        {{"reason", why_unknown_text(sum.why)}, {"bytes", sum.bytes}, {"count", sum.count}});
  }
  return out;
}

/// Source of the categories: recorded or by rules.
Json evidence_json(const std::vector<CategoryHolder>& holders) {
  uint64_t told = 0, by_rules = 0, none = 0;
  for (const CategoryHolder& holder : holders) {
    const bool is_by_rules = holder.rule != CategoryHolder::kNotByRules;
    (holder.category == Category::kUnknown ? none : is_by_rules ? by_rules : told) += holder.bytes;
  }
  return {{"marks_bytes", told}, {"rules_bytes", by_rules}, {"none_bytes", none}};
}

/// Confidence of the categories found by rules, and the rules.
void add_rules_json(const DeviceCategories& categories, Json* out) {
  const RuleSums sums = rule_sums(categories.at_peak);
  Json confidence = Json::object(), rules = Json::array();
  for (size_t c = kConfidences; c-- > 0;) {
    confidence[confidence_name(static_cast<Confidence>(c))] = sums.by_confidence[c];
  }
  for (const RuleSum& sum : sums.by_rule) {
    if (sum.count == 0) continue;
    const RuleFacts& facts = facts_of(sum.rule);
    rules.push_back({{"rule", facts.name},
                     {"category", category_name(facts.category)},
                     {"confidence", confidence_name(facts.confidence)},
                     {"reason", facts.reason},
                     {"bytes", sum.bytes},
                     {"count", sum.count}});
  }
  (*out)["category_confidence_at_peak"] = std::move(confidence);
  (*out)["category_rules_at_peak"] = std::move(rules);
}

}  // namespace

void add_categories_json(const DeviceAnalysis& device, const Tables& tables, Json* out,
                         Json* unknown) {
  const DeviceCategories& categories = device.categories;
  if (!categories.is_known) {
    (*out)["categories_at_peak"] = nullptr;
    (*unknown)["categories_at_peak"] = (*unknown)["category"] = categories.why_not;
  } else {
    const CategorySums sums = category_sums(categories.at_peak, tables);
    (*out)["categories_at_peak"] = bytes_json(categories.bytes_at_peak(), true);
    (*out)["by_module_at_peak"] = groups_json(sums.modules, "module");
    (*out)["by_phase_at_peak"] = groups_json(sums.phases, "phase");
    (*out)["by_user_phase_at_peak"] = groups_json(sums.user_phases, "phase");
    (*out)["attributed_at_peak_bytes"] = sums.attributed_bytes;
    if (const std::string why = why_without_names(categories); !why.empty()) {
      (*unknown)["parameter_names"] = why;
    }
    (*out)["category_evidence_at_peak"] = evidence_json(categories.at_peak);
    const auto is_by_rule = [](const CategoryHolder& holder) {
      return holder.rule != CategoryHolder::kNotByRules;
    };
    if (categories.is_by_rules || std::ranges::any_of(categories.at_peak, is_by_rule))
      add_rules_json(categories, out);
    if (categories.is_by_rules) {
      const bool is_recorded = device.snapshot && device.snapshot->is_recorded;
      (*out)["by_module_at_peak"] = (*out)["by_user_phase_at_peak"] = nullptr;
      (*unknown)["by_module_at_peak"] = why_no_modules(device);
      (*unknown)["by_user_phase_at_peak"] =
          is_recorded ? "the recording has no phases"
                      : "a snapshot does not say in which phase a block was allocated";
    } else {
      (*out)["unknown_at_peak"] = unknown_json(categories.at_peak);
    }
  }
  if (categories.timeline.empty()) return;
  (*out)["category_timeline"] = {{"start_ns", categories.start_ns},
                                 {"sample_ns", categories.sample_ns},
                                 {"samples", categories.timeline.size()},
                                 {"bytes", columns_json(categories.timeline)}};
  if (categories.is_by_rules) return;
  (*out)["categories_at_moments"] = columns_json(categories.at_moments);
}

HolderCategories::HolderCategories(const std::vector<CategoryHolder>& holders) {
  for (const CategoryHolder& holder : holders) by_stack_[holder.stack].push_back(holder);
}

void HolderCategories::add_json(uint32_t stack, const Tables& tables, Json* item) const {
  const auto known = by_stack_.find(stack);
  if (known == by_stack_.end()) return;
  std::array<uint64_t, kCategories> bytes{};
  for (const CategoryHolder& holder : known->second) {
    bytes[static_cast<size_t>(holder.category)] += holder.bytes;
  }
  const auto most = std::max_element(bytes.begin(), bytes.end());
  const auto main = static_cast<Category>(most - bytes.begin());
  (*item)["category"] = category_name(main);
  // The holders are sorted: the first of them has most.
  const auto first = std::ranges::find(known->second, main, &CategoryHolder::category);
  const bool is_by_rules = first->rule != CategoryHolder::kNotByRules;
  if (main != Category::kUnknown) {
    (*item)["category_evidence"] = is_by_rules ? "rules" : "marks";
  }
  if (is_by_rules) {
    const RuleFacts& facts = facts_of(static_cast<SnapshotRule>(first->rule));
    (*item)["category_confidence"] = confidence_name(facts.confidence);
    (*item)["category_rule"] = facts.name;
  }
  if (std::count(bytes.begin(), bytes.end(), uint64_t{0}) + 1 < std::ptrdiff_t{kCategories}) {
    (*item)["categories"] = bytes_json(bytes, false);
  }
  const HolderWork work = work_of_holder(known->second.front(), tables);
  if (!work.module.empty()) (*item)["module"] = work.module;
  if (!work.phase.empty()) (*item)["phase"] = work.phase;
}

Json moments_json(const Analysis& analysis, const Tables& tables) {
  static constexpr const char* kKinds[] = {"step_end", "phase_begin", "phase_end"};
  Json out = Json::array();
  for (const CategoryMoment& moment : analysis.moments) {
    const bool is_step = moment.kind == CategoryMoment::kStepEnd;
    const bool has_process = moment.process < tables.processes.size();
    out.push_back(
        {{"kind", kKinds[moment.kind]},
         {"step", is_step ? Json(moment.value) : Json(nullptr)},
         {"phase", is_step ? Json(nullptr) : Json(tables.strings.get(moment.text))},
         {"time_ns", moment.time_ns},
         {"event_index", moment.event},
         {"process", has_process ? Json(tables.processes[moment.process].pid) : Json(nullptr)}});
  }
  return out;
}

}  // namespace gpumemprof
