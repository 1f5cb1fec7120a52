#include "report/category_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/category_sums.h"
#include "base/size.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

/// "3.2 MiB parameter, 1 MiB gradient"
std::string mix_text(const CategoryGroup& group) {
  std::vector<size_t> order;
  for (size_t c = 0; c < kCategories; ++c) {
    if (group.by_category[c] != 0) order.push_back(c);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return group.by_category[a] > group.by_category[b]; });
  std::string text;
  for (size_t c : order) {
    if (!text.empty()) text += ", ";
    text += format_bytes(group.by_category[c]) + ' ' + category_name(static_cast<Category>(c));
  }
  return text;
}

std::string row(const CategoryGroup& group, uint64_t total, std::string_view name,
                std::string_view rest) {
  std::string text = fmt::format("{:>9}  {:>6}  {}", format_bytes(group.bytes),
                                 format_percent(group.bytes, total), printable(name));
  return rest.empty() ? text : text + fmt::format("  ({})", rest);
}

void add_groups(const std::vector<CategoryGroup>& groups, const char* title, const char* nameless,
                uint64_t total, size_t most, std::vector<std::string>* lines) {
  if (groups.size() == 1 && groups[0].name.empty()) return;
  lines->push_back(title);
  for (size_t i = 0; i < std::min(most, groups.size()); ++i) {
    const std::string& name = groups[i].name;
    lines->push_back(row(groups[i], total, name.empty() ? nameless : name, mix_text(groups[i])));
  }
  if (groups.size() > most) {
    lines->push_back(fmt::format("and {} more", format_count(groups.size() - most)));
  }
}

constexpr size_t kMostRules = 6;

/// What the categories of a snapshot are worth.
void add_confidence(const DeviceCategories& categories, uint64_t total,
                    std::vector<std::string>* lines) {
  const RuleSums sums = rule_sums(categories.at_peak);
  uint64_t by_rules = 0;
  for (const uint64_t bytes : sums.by_confidence) by_rules += bytes;
  if (by_rules == 0) return;
  std::string text =
      categories.is_by_rules
          ? std::string("By rules, from stacks and lifetimes; confidence: ")
          : fmt::format("{} of it by rules, from stacks and lifetimes, the rest by what the "
                        "program told; confidence: ",
                        format_bytes(by_rules));
  for (size_t c = kConfidences; c-- > 0;) {
    const auto confidence = static_cast<Confidence>(c);
    text += fmt::format("{} {}{}", c == 0 ? "unknown" : confidence_name(confidence),
                        format_percent(sums.by_confidence[c], by_rules), c == 0 ? "" : ", ");
  }
  lines->push_back(text);
  for (size_t i = 0; i < std::min(kMostRules, sums.by_rule.size()); ++i) {
    const RuleSum& sum = sums.by_rule[i];
    if (sum.count == 0) break;
    const RuleFacts& facts = facts_of(sum.rule);
    lines->push_back(fmt::format("{:>9}  {:>6}  {}: {}", format_bytes(sum.bytes),
                                 format_percent(sum.bytes, total), category_name(facts.category),
                                 facts.reason));
  }
}

}  // namespace

std::vector<std::string> category_lines(const DeviceAnalysis& device, const Tables& tables,
                                        size_t most_modules) {
  std::vector<std::string> lines;
  if (!device.categories.is_known || device.categories.at_peak.empty()) return lines;
  const CategorySums sums = category_sums(device.categories.at_peak, tables);
  for (const CategoryGroup& group : sums.categories) {
    lines.push_back(row(group, sums.total_bytes, group.name, format_plural(group.count, "block")));
    if (group.name != category_name(Category::kUnknown)) continue;
    for (const UnknownSum& sum : unknown_sums(device.categories.at_peak)) {
      lines.push_back(fmt::format("{:>17}  {}: {}", "", format_bytes(sum.bytes),
                                  why_unknown_text(sum.why)));
    }
  }
  add_confidence(device.categories, sums.total_bytes, &lines);
  add_groups(sums.modules, "By module:", "(outside of any module)", sums.total_bytes, most_modules,
             &lines);
  const char* outside = device.categories.is_by_rules ? "(outside, or before the trace began)"
                                                      : "(outside: setting up, making data)";
  add_groups(sums.phases, "By phase in which it was allocated:", outside, sums.total_bytes,
             most_modules, &lines);
  add_groups(sums.user_phases, "By phase of the program's own:", "(none was open)",
             sums.total_bytes, most_modules, &lines);
  return lines;
}

}  // namespace gpumemprof
