#include "report/export/flame_paths.h"

#include <algorithm>
#include <map>

#include "analysis/categories/category_sums.h"
#include "analysis/pass/layer_work.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kNoModule = "(outside of any module)";

LiveSet live_set(const std::vector<Holder>& holders, const DeviceCategories& known,
                 const std::vector<CategoryHolder>& categories) {
  uint64_t all = 0, told = 0;
  for (const Holder& holder : holders) all += holder.bytes;
  for (const CategoryHolder& holder : categories) told += holder.bytes;
  if (known.is_known && told == all) return {&holders, &categories, ""};
  return {&holders, nullptr,
          known.is_known ? "the recording does not have it for all live memory" : known.why_not};
}

/// "encoder.layers.0" gives encoder, layers, 0.
void add_parts(std::string_view path, char separator, std::vector<std::string>* out) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(separator, begin), path.size());
    if (end != begin) out->push_back(printable(path.substr(begin, end - begin)));
    begin = end + 1;
  }
}

/// Paths by their texts, added up.
class Gathered {
 public:
  void add(std::vector<std::string> path, uint64_t bytes, uint64_t count) {
    auto& [sum_bytes, sum_count] = sums_[std::move(path)];
    sum_bytes += bytes, sum_count += count;
  }
  FlamePaths paths() const {
    FlamePaths out;
    for (const auto& [path, sum] : sums_) {
      FlamePath& one = out.paths.emplace_back();
      for (const std::string& name : path) one.frames.push_back(out.names.intern(name));
      one.bytes = sum.first, one.count = sum.second;
      out.total_bytes += one.bytes;
    }
    std::ranges::stable_sort(out.paths, std::greater<>(), &FlamePath::bytes);
    return out;
  }

 private:
  std::map<std::vector<std::string>, std::pair<uint64_t, uint64_t>> sums_;
};

std::string line_name(const Tables& tables, uint32_t stack) {
  const uint32_t node = headline_node(tables, stack);
  return node == 0 ? std::string(kNoStack)
                   : viewer_frame(tables, tables.stacks.frame_of(node));
}

FlamePaths by_line(const std::vector<Holder>& holders, const Tables& tables) {
  Gathered gathered;  // with the whole path: two files of one name are two
  for (const Holder& holder : holders)
    gathered.add({headline_text(tables, headline_node(tables, holder.stack), "")}, holder.bytes,
                 holder.count);
  return gathered.paths();
}

FlamePaths by_category_holders(const std::vector<CategoryHolder>& holders, FlameGrouping by,
                               const Tables& tables) {
  Gathered gathered;
  for (const CategoryHolder& holder : holders) {
    const std::string module = work_of_holder(holder, tables).module;
    const std::string category = category_name(holder.category);
    std::vector<std::string> path;
    if (by == FlameGrouping::kCategory) {
      path = {category, module.empty() ? std::string(kNoModule) : printable(module)};
    } else {
      if (module.empty()) {
        path.emplace_back(kNoModule);
      } else {
        add_parts(module, '.', &path);
      }
      path.push_back(category);
    }
    path.push_back(holder.name != 0 ? printable(tables.strings.get(holder.name))
                                    : line_name(tables, holder.stack));
    gathered.add(std::move(path), holder.bytes, holder.count);
  }
  return gathered.paths();
}

/// Empty where no layer is named.
FlamePaths by_layer(const std::vector<Holder>& holders, const Tables& tables) {
  Gathered gathered;
  bool any = false;
  WorkReader reader(tables);
  for (const Holder& holder : holders) {
    const LayerWork work = stack_work_of(tables, holder.stack, &reader).where;
    any |= !work.layer.empty();
    std::vector<std::string> path;
    if (work.layer.empty()) {
      path.emplace_back(kNoModule);
    } else {
      add_parts(work.layer, '/', &path);
    }
    path.emplace_back(work.part);
    path.push_back(line_name(tables, holder.stack));
    gathered.add(std::move(path), holder.bytes, holder.count);
  }
  return any ? gathered.paths() : FlamePaths{};
}

}  // namespace

LiveSet live_at_peak(const DeviceAnalysis& device) {
  return live_set(device.holders_at_peak, device.categories, device.categories.at_peak);
}

LiveSet live_after_last_allocation(const DeviceAnalysis& device) {
  return live_set(device.holders_before_exit, device.categories, device.categories.before_exit);
}

LiveSet live_at_end(const DeviceAnalysis& device) {
  return live_set(device.holders_at_end, device.categories, device.categories.at_end);
}

LiveSet live_at(const LiveMoment& moment) {
  if (!moment.why_no_categories.empty()) {
    return {&moment.holders, nullptr, moment.why_no_categories};
  }
  return {&moment.holders, &moment.categories, ""};
}

FlamePaths stack_paths(const std::vector<Holder>& holders, const Tables& tables) {
  FlamePaths out;
  std::vector<uint32_t> names(tables.stacks.frame_count(), 0);  // by frame id, made when needed
  for (const Holder& holder : holders) {
    FlamePath& one = out.paths.emplace_back(FlamePath{{}, holder.bytes, holder.count});
    for (uint32_t node = holder.stack; node != 0; node = tables.stacks.node(node).parent) {
      const uint32_t frame = tables.stacks.node(node).frame;
      uint32_t& name = names[frame < names.size() ? frame : 0];
      if (name == 0) name = out.names.intern(viewer_frame(tables, tables.stacks.frame(frame)));
      one.frames.push_back(name);
    }
    if (one.frames.empty()) one.frames.push_back(out.names.intern(kNoStack));
    std::ranges::reverse(one.frames);
    out.total_bytes += holder.bytes;
  }
  return out;
}

Result<FlamePaths> flame_paths(const LiveSet& live, FlameGrouping by, const Tables& tables) {
  if (by == FlameGrouping::kStack) return stack_paths(*live.holders, tables);
  if (by == FlameGrouping::kLine) return by_line(*live.holders, tables);
  if (live.categories != nullptr) return by_category_holders(*live.categories, by, tables);
  if (by == FlameGrouping::kModule) {
    FlamePaths layers = by_layer(*live.holders, tables);
    if (!layers.paths.empty()) return layers;
  }
  return fail(ErrorCode::kUsage, "by " + std::string(kGroupingNames[static_cast<size_t>(by)]) +
                                     ": unknown, because " + live.why_no_categories);
}

}  // namespace gpumemprof
