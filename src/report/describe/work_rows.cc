#include "report/describe/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/pass/layer_work.h"

namespace gpumemprof {
namespace {

std::string where_words(const WorkHolder& group) {
  if (!group.layer.empty()) return group.layer;
  if (group.function.empty()) return {};
  return (group.is_xla ? "XLA cluster " : "call of ") + group.function;
}

}  // namespace

std::string WorkRow::text() const {
  return fmt::format("{} {}", part, where.empty() ? kNotInALayer : where);
}

std::vector<WorkRow> work_rows(const std::vector<Holder>& holders, const Tables& tables,
                               WorkRows by) {
  std::map<std::tuple<std::string, std::string, std::string, bool>, WorkRow> rows;
  for (const WorkHolder& group : group_by_work(holders, tables)) {
    const char* mode = by == WorkRows::kByPart ? "" : mode_name(group.mode);
    const bool has_layer = !group.layer.empty();
    WorkRow& row = rows[{group.part, mode, where_words(group), has_layer}];
    row.part = group.part, row.mode = mode, row.where = where_words(group);
    row.has_layer = has_layer;
    row.bytes += group.bytes, row.count += group.count;
    if (group.mode == ExecutionMode::kGraph) row.graph_bytes += group.bytes;
  }
  std::vector<WorkRow> out;
  for (auto& [key, row] : rows) out.push_back(std::move(row));
  std::ranges::stable_sort(out, std::ranges::greater(), &WorkRow::bytes);
  return out;
}

}  // namespace gpumemprof
