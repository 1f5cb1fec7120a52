#include "analysis/diff.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <map>

#include "analysis/category_sums.h"
#include "analysis/layer_work.h"

namespace gpumemprof {
namespace {

constexpr uint32_t kUnset = UINT32_MAX;

/// Frames and stacks of both runs under common ids.
class Aligner {
 public:
  struct Side {
    const Tables* tables = nullptr;
    std::vector<uint32_t> stacks;  // by stack id of that side: the common one
  };

  explicit Aligner(bool with_lines = true) : with_lines_(with_lines) {}

  uint32_t frame(const Tables& tables, uint32_t node) {
    Frame frame = tables.stacks.frame(tables.stacks.node(node).frame);
    frame.file = common_.strings.intern(aligned_file(tables.strings.get(frame.file)));
    frame.function = common_.strings.intern(tables.strings.get(frame.function));
    if (!with_lines_) frame.line = 0;
    return common_.stacks.intern_frame(frame);
  }

  /// Iterative: a stack may be as deep as its recording allows.
  uint32_t stack(Side& side, uint32_t id) {
    const StackTable& stacks = side.tables->stacks;
    if (side.stacks.empty()) {
      side.stacks.assign(stacks.stack_count(), kUnset);
      side.stacks[0] = 0;
    }
    if (id >= side.stacks.size()) return 0;
    path_.clear();
    for (; side.stacks[id] == kUnset; id = stacks.node(id).parent) path_.push_back(id);
    uint32_t aligned = side.stacks[id];
    for (; !path_.empty(); path_.pop_back()) {
      aligned = common_.stacks.push(aligned, frame(*side.tables, path_.back()));
      side.stacks[path_.back()] = aligned;
    }
    return aligned;
  }

 private:
  bool with_lines_;
  Tables common_;
  std::vector<uint32_t> path_;
};

/// Rows by a common id. A row belongs to the run that names it first.
class Rows {
 public:
  void add(uint32_t key, bool from_b, uint32_t node, const Holder& holder,
           uint64_t DiffFigures::* bytes, uint64_t DiffFigures::* count) {
    auto [at, added] = index_.try_emplace(key, rows_.size());
    if (added) rows_.push_back({.from_b = from_b, .node = node});
    DiffRow& row = rows_[at->second];
    DiffFigures& figures = from_b ? row.b : row.a;
    figures.*bytes += holder.bytes;
    figures.*count += holder.count;
  }

  std::vector<DiffRow> sorted() && {
    std::stable_sort(rows_.begin(), rows_.end(), [](const DiffRow& x, const DiffRow& y) {
      const uint64_t px = magnitude(x.peak_delta()), py = magnitude(y.peak_delta());
      if (px != py) return px > py;
      const uint64_t ex = magnitude(x.end_delta()), ey = magnitude(y.end_delta());
      if (ex != ey) return ex > ey;
      return std::max(x.a.peak_bytes, x.b.peak_bytes) > std::max(y.a.peak_bytes, y.b.peak_bytes);
    });
    return std::move(rows_);
  }

 private:
  std::vector<DiffRow> rows_;
  absl::flat_hash_map<uint32_t, size_t> index_;
};

/// Calls each(side, is B, holder, bytes, count) for every figure of both runs, B's first, so that
/// ties stay in the order of the run that is looked at.
template <class Each>
void for_each_figure(const Diff& diff, Each each) {
  for (const bool is_b : {true, false}) {
    const DiffSide& side = is_b ? diff.b : diff.a;
    if (side.device == nullptr) continue;
    const auto all = [&](const std::vector<Holder>& holders, uint64_t DiffFigures::* bytes,
                         uint64_t DiffFigures::* count) {
      for (const Holder& holder : holders) each(side, is_b, holder, bytes, count);
    };
    all(side.device->holders_at_peak, &DiffFigures::peak_bytes, &DiffFigures::peak_count);
    all(side.device->holders_at_end, &DiffFigures::end_bytes, &DiffFigures::end_count);
    all(side.device->totals, &DiffFigures::total_bytes, &DiffFigures::total_count);
  }
}

std::vector<DiffRow> rows_by_stack(const Diff& diff) {
  Aligner aligner;
  Aligner::Side sides[2] = {{diff.a.tables, {}}, {diff.b.tables, {}}};
  Rows rows;
  for_each_figure(diff, [&](const DiffSide&, bool is_b, const Holder& holder,
                            uint64_t DiffFigures::* bytes, uint64_t DiffFigures::* count) {
    rows.add(aligner.stack(sides[is_b], holder.stack), is_b, holder.stack, holder, bytes, count);
  });
  return std::move(rows).sorted();
}

/// Fills by_layer and layers.
void group_by_layer(Diff* diff) {
  Rows rows;
  std::map<std::pair<std::string_view, std::string_view>, uint32_t> known;
  bool any_layer = false;
  for_each_figure(*diff, [&](const DiffSide& side, bool is_b, const Holder& holder,
                             uint64_t DiffFigures::* bytes, uint64_t DiffFigures::* count) {
    const LayerWork work = layer_work_of(*side.tables, holder.stack);
    any_layer |= !work.layer.empty();
    const auto [at, added] =
        known.try_emplace({work.layer, work.part}, static_cast<uint32_t>(diff->layers.size()));
    if (added) diff->layers.push_back({std::string(work.layer), std::string(work.part)});
    rows.add(at->second, is_b, at->second, holder, bytes, count);
  });
  if (any_layer) {
    diff->by_layer = std::move(rows).sorted();
  } else {
    diff->layers.clear();
  }
}

/// Fills by_category, by_module and groups.
void group_by_category(Diff* diff) {
  for (const DiffSide* side : {&diff->a, &diff->b}) {
    if (side->device == nullptr || side->device->categories.is_known) continue;
    diff->why_no_categories =
        (side == &diff->a ? "of A, " : "of B, ") + side->device->categories.why_not;
    return;
  }
  Rows categories, modules;
  std::map<std::string, uint32_t> known;
  const auto group = [&](const std::string& name) {
    const auto [at, added] = known.try_emplace(name, static_cast<uint32_t>(diff->groups.size()));
    if (added) diff->groups.push_back(name);
    return at->second;
  };
  const auto add_all = [&](const DiffSide& side, bool is_b,
                           const std::vector<CategoryHolder>& holders,
                           uint64_t DiffFigures::* bytes, uint64_t DiffFigures::* count) {
    const CategorySums sums = category_sums(holders, *side.tables);
    for (const auto& [list, rows] :
         {std::pair(&sums.categories, &categories), std::pair(&sums.modules, &modules)}) {
      for (const CategoryGroup& one : *list) {
        const uint32_t key = group(one.name);
        rows->add(key, is_b, key, {0, one.bytes, one.count}, bytes, count);
      }
    }
  };
  for (const bool is_b : {true, false}) {
    const DiffSide& side = is_b ? diff->b : diff->a;
    if (side.device == nullptr) continue;
    const DeviceCategories& of = side.device->categories;
    add_all(side, is_b, of.at_peak, &DiffFigures::peak_bytes, &DiffFigures::peak_count);
    add_all(side, is_b, of.at_end, &DiffFigures::end_bytes, &DiffFigures::end_count);
  }
  diff->by_category = std::move(categories).sorted();
  diff->by_module = std::move(modules).sorted();
}

/// Rows by one frame of each stack. A new way to group by a frame is one more of these.
std::vector<DiffRow> rows_by_frame(const Diff& diff, LineOf node_of, bool with_lines) {
  Aligner aligner(with_lines);
  Rows rows;
  for_each_figure(diff, [&](const DiffSide& side, bool is_b, const Holder& holder,
                            uint64_t DiffFigures::* bytes, uint64_t DiffFigures::* count) {
    const uint32_t node = node_of(*side.tables, holder.stack);
    const uint32_t key = node == 0 ? kUnset : aligner.frame(*side.tables, node);
    rows.add(key, is_b, node, holder, bytes, count);
  });
  return std::move(rows).sorted();
}

}  // namespace

const char* change_name(Change change) {
  switch (change) {
    case Change::kSame:
      return "same";
    case Change::kGrew:
      return "grew";
    case Change::kShrank:
      return "shrank";
    case Change::kAppeared:
      return "appeared";
    case Change::kVanished:
      return "vanished";
  }
  return "unknown";
}

Change DiffRow::change() const {
  const auto is_empty = [](const DiffFigures& f) {
    return f.total_count == 0 && f.peak_count == 0 && f.end_count == 0;
  };
  if (is_empty(a) && !is_empty(b)) return Change::kAppeared;
  if (is_empty(b) && !is_empty(a)) return Change::kVanished;
  if (a.peak_bytes == b.peak_bytes) return Change::kSame;
  return b.peak_bytes > a.peak_bytes ? Change::kGrew : Change::kShrank;
}

std::string_view aligned_file(std::string_view path) {
  for (std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = path.rfind(packages);
    if (at != std::string_view::npos) return path.substr(at + packages.size());
  }
  for (std::string_view library : {"/lib/python3", "/lib64/python3"}) {
    const size_t at = path.rfind(library);
    if (at == std::string_view::npos) continue;
    const size_t slash = path.find('/', at + library.size());  // behind the version
    if (slash != std::string_view::npos) return path.substr(slash + 1);
  }
  const size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

DeviceAnalysis at_moment(const DeviceAnalysis& device, const LiveMoment& moment) {
  DeviceAnalysis now = device;
  DeviceFigures& figures = now.figures;
  figures.peak_bytes = figures.live_bytes = moment.live_bytes;
  figures.peak_count = figures.live_count = moment.live_count;
  figures.peak_event = moment.event, figures.peak_time_ns = moment.time_ns;
  figures.total_bytes = 0;
  for (const Holder& holder : moment.totals) figures.total_bytes += holder.bytes;
  now.holders_at_peak = now.holders_at_end = moment.holders;
  now.totals = moment.totals;
  now.categories.at_peak = now.categories.at_end = moment.categories;
  now.categories.is_known = moment.why_no_categories.empty();
  now.categories.why_not = moment.why_no_categories;
  now.categories.peak = {};
  return now;
}

DiffMoment diff_moment(const DeviceAnalysis& device, const LiveMoment& moment, uint64_t step) {
  DiffMoment out{.step = step, .time_ns = moment.time_ns, .event = moment.event};
  if (device.step_levels.steps_a_level() != 1) return out;
  for (const StepLevel& level : device.step_levels.levels()) {
    if (level.step != step) continue;
    out.step_peak_bytes = level.most_bytes;
    break;
  }
  return out;
}

Diff diff_runs(const DiffSide& a, const DiffSide& b, LineOf line_of) {
  Diff diff{.a = a, .b = b};
  diff.by_stack = rows_by_stack(diff);
  diff.by_line = rows_by_frame(diff, line_of, true);
  diff.by_function = rows_by_frame(diff, line_of, false);
  group_by_layer(&diff);
  group_by_category(&diff);
  return diff;
}

}  // namespace gpumemprof
