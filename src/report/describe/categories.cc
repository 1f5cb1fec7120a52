// What the memory was for: by category, module and phase.
#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "analysis/categories/category_sums.h"
#include "base/path_parts.h"
#include "base/size.h"
#include "report/describe/sections.h"
#include "report/words.h"
#include "trace/holder_lines.h"
#include "trace/module_path.h"
#include "trace/own_code.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostRules = 6;

/// "3.2 MiB parameter, 1 MiB gradient"
std::string mix_text(const CategoryGroup& group) {
  std::vector<size_t> order;
  for (size_t c = 0; c < kCategories; ++c) {
    if (group.by_category[c] != 0) order.push_back(c);
  }
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t c) { return group.by_category[c]; });
  std::string text;
  for (size_t c : order) {
    if (!text.empty()) text += ", ";
    text += format_bytes(group.by_category[c]) + ' ' + category_name(static_cast<Category>(c));
  }
  return text;
}

/// "layers.*.mlp.0" of "layers.0.mlp.0" and "layers.1.mlp.0".
std::string common_name(std::string_view a, std::string_view b) {
  std::string out;
  for (size_t i = 0, j = 0; i <= a.size() && j <= b.size();) {
    const size_t end_a = std::min(a.find('.', i), a.size()), end_b = std::min(b.find('.', j), b.size());
    const std::string_view part = a.substr(i, end_a - i);
    const std::string_view other = b.substr(j, end_b - j);
    const std::string common = without_number(part);
    out += i == 0 ? "" : ".";
    out += part == other ? std::string(part) : common == without_number(other) ? common : "*";
    i = end_a + 1, j = end_b + 1;
  }
  return out;
}

using Parts = std::vector<std::string_view>;  // of a name, between its points

/// The names of a family from part `at` on. Numbers before the same rest are together: {"{2,4}.0",
/// "3.{0,1}"}.
std::vector<std::string> patterns(const std::vector<Parts>& names, size_t at) {
  if (at == names[0].size()) return {""};
  const std::string_view part = names[0][at];
  const std::string_view text = part.substr(0, part.rfind('#') + 1);
  if (!is_number(part.substr(text.size()))) {
    std::vector<std::string> out = patterns(names, at + 1);
    for (std::string& rest : out) rest = '.' + std::string(part) + rest;
    return out;
  }
  std::map<uint64_t, std::vector<Parts>> by_number;
  for (const Parts& name : names) {
    uint64_t number = 0;
    std::from_chars(name[at].begin() + text.size(), name[at].end(), number);
    by_number[number].push_back(name);
  }
  std::vector<std::pair<std::vector<std::string>, std::set<uint64_t>>> by_rest;
  for (const auto& [number, of_number] : by_number) {
    const std::vector<std::string> rests = patterns(of_number, at + 1);
    const auto known = std::ranges::find(by_rest, rests, [](const auto& one) { return one.first; });
    if (known == by_rest.end())
      by_rest.push_back({rests, {number}});
    else
      known->second.insert(number);
  }
  std::vector<std::string> out;
  for (const auto& [rests, numbers] : by_rest) {
    const std::string which =
        numbers.size() == 1 ? std::to_string(*numbers.begin()) : in_braces(numbers);
    for (const std::string& rest : rests) out.push_back('.' + std::string(text) + which + rest);
  }
  return out;
}

/// "features.{0,2,4-6}" of the members of a family that are alike, "a.3.{0,1}, a.4.0" where more
/// than one number differs; empty where that would be too long to read.
std::string name_of_some(const std::vector<std::string_view>& names) {
  constexpr size_t kMostPatterns = 4;
  std::vector<Parts> parts;
  for (const std::string_view name : names) {
    Parts& of_name = parts.emplace_back();
    for (size_t from = 0; from <= name.size();) {
      const size_t end = std::min(name.find('.', from), name.size());
      of_name.push_back(name.substr(from, end - from));
      if (of_name.back().ends_with('*')) return {};  // not every name has a number there
      from = end + 1;
    }
  }
  const std::vector<std::string> found = patterns(parts, 0);
  if (found.size() > kMostPatterns) return {};
  std::string out;
  for (const std::string& one : found) out += (out.empty() ? "" : ", ") + one.substr(1);
  return out;
}

/// Groups that are alike but for a number in their names are one: "blocks.*.attn", with how many
/// there are; "blocks.{0,1}.attn" where other blocks have another size. In the order of their bytes.
struct FoldedGroup {
  CategoryGroup sum;
  uint64_t members = 0;
};
constexpr size_t kMostKinds = 64;  // of one family: a list of more has no pattern worth the time
std::vector<FoldedGroup> folded(const std::vector<CategoryGroup>& groups) {
  std::vector<FoldedGroup> out;
  std::vector<std::vector<std::string_view>> names;  // of the members of each
  std::map<std::pair<std::string, decltype(CategoryGroup::by_category)>, size_t> known;
  std::map<std::string, std::vector<size_t>> families;
  for (const CategoryGroup& group : groups) {
    const std::string family = without_numbers(group.name);
    const auto [at, added] = known.try_emplace({family, group.by_category}, out.size());
    if (added) families[family].push_back(out.size()), out.push_back({group}), names.emplace_back();
    FoldedGroup& one = out[at->second];
    names[at->second].push_back(group.name);
    if (++one.members == 1) continue;
    one.sum.name = common_name(one.sum.name, group.name);
    one.sum.bytes += group.bytes;
    one.sum.count += group.count;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const std::vector<size_t>& alike = families[without_numbers(names[i][0])];
    if (out[i].members == 1 || alike.size() > kMostKinds) continue;
    const auto is_meant_too = [&](std::string_view name) {
      return common_name(out[i].sum.name, name) == out[i].sum.name;
    };
    const bool means_others = std::ranges::any_of(alike, [&](size_t other) {
      return other != i && std::ranges::any_of(names[other], is_meant_too);
    });
    if (!means_others) continue;
    if (std::string some = name_of_some(names[i]); !some.empty()) out[i].sum.name = std::move(some);
  }
  std::ranges::stable_sort(out, std::ranges::greater(),
                           [](const FoldedGroup& one) { return one.sum.bytes; });
  return out;
}

/// The group's name, with what it is made of.
TableCell cell_of(const FoldedGroup& one, const char* nameless, bool is_module) {
  const CategoryGroup& group = one.sum;  // its categories are those of one member
  std::string mix = mix_text(group);
  if (one.members > 1) {
    const bool is_one_type = std::ranges::count(group.by_category, 0) + 1 == kCategories;
    const std::string each = format_bytes(group.bytes / one.members);
    mix = is_one_type ? fmt::format("{} × {}", one.members, mix)
                      : fmt::format("{} × {}: {}", one.members, each, mix);
  }
  return {.text = group.name.empty() ? nameless : is_module ? module_words(group.name) : group.name,
          .note = std::move(mix)};
}

void add_groups(const std::vector<CategoryGroup>& groups, const char* title, const char* noun,
                const char* nameless, uint64_t total, size_t most, Section* out) {
  if (groups.size() == 1 && groups[0].name.empty()) return;
  out->add(Sentence{title});
  Table table = share_table(noun);
  add_rows(folded(groups), most, &table, [&](const FoldedGroup& one) {
    return share_row(one.sum.bytes, total, cell_of(one, nameless, noun == std::string_view("module")));
  });
  out->add(std::move(table));
}

/// Confidence of the categories that were found by rules.
void add_confidence(const DeviceCategories& categories, uint64_t total, Section* out) {
  const RuleSums sums = rule_sums(categories.at_peak);
  uint64_t by_rules = 0;
  for (const uint64_t bytes : sums.by_confidence) by_rules += bytes;
  if (by_rules == 0) return;
  std::string text =
      categories.is_by_rules
          ? std::string("Inferred from stacks and lifetimes; confidence: ")
          : fmt::format("{} inferred from stacks and lifetimes, the rest recorded; confidence: ",
                        format_bytes(by_rules));
  for (size_t c = kConfidences; c-- > 0;) {
    const auto confidence = static_cast<Confidence>(c);
    text += fmt::format("{} {}{}", c == 0 ? "unknown" : confidence_name(confidence),
                        format_percent(sums.by_confidence[c], by_rules), c == 0 ? "" : ", ");
  }
  out->add(Sentence{text});
  Table table = share_table("rule");
  for (size_t i = 0; i < std::min(kMostRules, sums.by_rule.size()); ++i) {
    const RuleSum& sum = sums.by_rule[i];
    if (sum.count == 0) break;
    const RuleFacts& facts = facts_of(sum.rule);
    table.rows.push_back(share_row(
        sum.bytes, total, {fmt::format("{}: {}", category_name(facts.category), facts.reason)}));
  }
  out->add(std::move(table));
}

Row category_row(const CategoryGroup& group, const CategorySums& sums,
                 const DeviceCategories& known, const Tables& tables) {
  Row row = share_row(group.bytes, sums.total_bytes,
                      {.text = group.name, .note = format_plural(group.count, "block")});
  if (group.name == category_name(Category::kFrameworkOther)) {
    if (const uint64_t bytes = bucket_bytes(known.at_peak, tables); bytes != 0)
      row.details.emplace_back(Sentence{fmt::format("{}: {}", format_bytes(bytes), kBuckets)});
  }
  if (group.name != category_name(Category::kUnknown)) return row;
  for (const UnknownSum& sum : unknown_sums(known.at_peak)) {
    row.details.emplace_back(
        Sentence{fmt::format("{}: {}", format_bytes(sum.bytes), why_unknown_text(sum.why))});
  }
  if (const std::string why = why_without_names(known); !why.empty()) {
    row.details.emplace_back(Sentence{capitalized(why)});
  }
  return row;
}

/// Where much of a line's memory comes from one line of a library, as of a line that trains a whole
/// model: PyTorch's own are what any program calls.
void add_library(const Subject& subject, const HolderLine& line, Table* table) {
  const std::vector<HolderLine> inner = group_by_innermost(line.stacks, subject.tables);
  if (inner.size() < 2 || inner[0].node == 0 || 3 * inner[0].bytes < line.bytes) return;
  const Frame& frame = subject.tables.stacks.frame_of(inner[0].node);
  const std::string_view file = subject.tables.strings.get(frame.file);
  if (is_user_file(file) || is_native_source(file) || path_has(file, "/torch/")) return;
  table->rows.push_back(
      {{{format_bytes(inner[0].bytes)}, {"in " + subject.line_text(inner[0].node)}}});
}

}  // namespace

Table modules_table(const Subject& subject, const DeviceAnalysis& device, const HolderLine& line,
                    size_t most) {
  Table table{.columns = {{.is_number = true, .width = 9}, {}}, .noun = "module"};
  absl::flat_hash_set<uint32_t> stacks;
  for (const Holder& holder : line.stacks) stacks.insert(holder.stack);
  std::vector<CategoryHolder> holders;
  for (const CategoryHolder& holder : device.categories.at_peak) {
    if (stacks.contains(holder.stack)) holders.push_back(holder);
  }
  std::vector<FoldedGroup> groups = folded(category_sums(holders, subject.tables).modules);
  constexpr uint64_t kLeastShare = 20;  // one in so many bytes of the line: less explains nothing
  std::erase_if(groups, [&](const FoldedGroup& one) {
    return one.sum.bytes * kLeastShare < line.bytes;
  });
  const bool has_module = std::ranges::any_of(
      groups, [](const FoldedGroup& one) { return !one.sum.name.empty(); });
  const bool is_of_one = groups.size() < 2;
  const bool is_all_of_it =
      is_of_one && has_module &&
      (line.bytes - groups[0].sum.bytes) * kLeastShare < line.bytes;  // which its code says
  if (is_of_one || !has_module) add_library(subject, line, &table);
  if (!has_module || is_all_of_it) return table;
  add_rows(groups, most, &table, [&](const FoldedGroup& one) {
    return Row{{{format_bytes(one.sum.bytes)}, cell_of(one, "(outside of any module)", true)}};
  });
  return table;
}

Section categories_section(const Subject& subject, const DeviceAnalysis& device) {
  Section out{"Memory at the peak, by type"};
  const DeviceCategories& known = device.categories;
  if (!known.is_known || known.at_peak.empty()) return out;
  const CategorySums sums = category_sums(known.at_peak, subject.tables);
  const uint64_t total = sums.total_bytes;
  const size_t most = subject.options.rows;
  Table table = share_table("type");
  for (const CategoryGroup& group : sums.categories) {
    Row row = category_row(group, sums, known, subject.tables);
    row.evidence = evidence_at_peak(device);
    if (row.evidence) row.evidence->category = group.name;
    table.rows.push_back(std::move(row));
  }
  out.add(std::move(table));
  add_confidence(known, total, &out);
  add_groups(sums.modules, "By module:", "module", "(outside of any module)", total, most, &out);
  const char* outside =
      known.is_by_rules ? "(outside, or before the recording began)" : "(outside: setup, data)";
  add_groups(sums.phases, "By phase of allocation:", "phase", outside, total, most, &out);
  add_groups(sums.user_phases, "By phase set by the program:", "phase", "(outside of any phase)",
             total, most, &out);
  return out;
}

}  // namespace gpumemprof
