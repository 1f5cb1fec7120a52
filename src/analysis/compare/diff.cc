#include "analysis/compare/diff.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/categories/category_sums.h"
#include "analysis/compare/common_names.h"
#include "analysis/compare/moved_lines.h"
#include "analysis/pass/layer_work.h"
#include "base/path_parts.h"
#include "trace/holder_lines.h"
#include "trace/own_code.h"

namespace gpumemprof {
namespace {

constexpr uint32_t kUnset = Memo::kNotFound;
constexpr uint32_t kNowhere = kUnset - 1;  // a stack that has no common id

/// Frames and stacks of both runs under common ids.
class Aligner {
 public:
  struct Side {
    explicit Side(const DiffSide& of) : tables(of.device == nullptr ? nullptr : of.tables) {
      if (tables == nullptr) return;
      stacks.assign(tables->stacks.stack_count(), kUnset);
      stacks[0] = 0;
      for (Memo& memo : frames) memo.resize(tables->stacks.frame_count());
    }
    const Tables* tables;
    std::vector<uint32_t> stacks;  // by stack id of that side: the common one
    Memo frames[2];                // without lines, and with them
  };

  /// All must outlive it.
  Aligner(Side (&sides)[2], const MovedLines& moved, CommonNames* names)
      : b_(sides[1]), moved_(moved), names_(*names) {}

  uint32_t frame(Side& side, uint32_t node, bool with_lines) {
    const Tables& tables = *side.tables;
    const uint32_t id = tables.stacks.node(node).frame;
    return side.frames[with_lines].of(id, [&] {
      Frame frame = tables.stacks.frame(id);
      frame.file = names_.file(&side == &b_, frame.file);
      const bool has_line = with_lines && frame.line != 0;
      frame.function = has_line ? names_.function_of_line(&side == &b_, frame.function)
                                : names_.function(&side == &b_, frame.function);
      if (!has_line) frame.line = 0;
      if (with_lines && &side != &b_) {
        const auto moved = moved_.lines.find(id);
        if (moved != moved_.lines.end()) frame.line = moved->second;
      }
      return stacks_.intern_frame(frame);
    });
  }

  /// Gives the stack a common id, before known() is first called.
  uint32_t stack(Side& side, uint32_t id) {
    return aligned(side, id, [&](uint32_t parent, uint32_t frame) {
      return stacks_.push(parent, frame);
    });
  }

  /// The common id of the stack if it has one, else kNowhere.
  uint32_t known(Side& side, uint32_t id) {
    return aligned(side, id, [&](uint32_t parent, uint32_t frame) {
      return parent == kNowhere ? kNowhere : stacks_.find(parent, frame).value_or(kNowhere);
    });
  }

 private:
  /// Iterative: a stack may be as deep as its recording allows.
  uint32_t aligned(Side& side, uint32_t id, const auto& child_of) {
    const StackTable& stacks = side.tables->stacks;
    if (id >= side.stacks.size()) return 0;
    path_.clear();
    for (; side.stacks[id] == kUnset; id = stacks.node(id).parent) path_.push_back(id);
    uint32_t aligned = side.stacks[id];
    for (; !path_.empty(); path_.pop_back()) {
      aligned = child_of(aligned, frame(side, path_.back(), true));
      side.stacks[path_.back()] = aligned;
    }
    return aligned;
  }

  const Side& b_;
  const MovedLines& moved_;
  CommonNames& names_;
  StackTable stacks_;
  std::vector<uint32_t> path_;
};

/// Rows by a common id, which are dense. A row belongs to the run that names it first.
class Rows {
 public:
  void add(uint32_t key, bool from_b, uint32_t node, const Holder& holder,
           uint64_t DiffFigures::* bytes, uint64_t DiffFigures::* count) {
    uint32_t& at = row_of(key);
    if (at == kUnset) {
      at = static_cast<uint32_t>(rows_.size());
      rows_.push_back({.from_b = from_b, .node = node});
    }
    DiffRow& row = rows_[at];
    DiffFigures& figures = from_b ? row.b : row.a;
    figures.*bytes += holder.bytes;
    figures.*count += holder.count;
  }

  DiffRows sorted() && {
    struct Rank {
      uint64_t peak, end, most;
      uint32_t row;
    };
    std::vector<Rank, LargePages<Rank>> ranks;
    ranks.reserve(rows_.size());
    for (const DiffRow& row : rows_) {
      ranks.push_back({magnitude(row.peak_delta()), magnitude(row.end_delta()),
                       std::max(row.a.peak_bytes, row.b.peak_bytes),
                       static_cast<uint32_t>(ranks.size())});
    }
    std::ranges::sort(ranks, [](const Rank& x, const Rank& y) {
      return std::tie(y.peak, y.end, y.most, x.row) < std::tie(x.peak, x.end, x.most, y.row);
    });
    // In place, one cycle after the other: with very many stacks the rows are most of the memory.
    for (size_t i = 0; i < ranks.size(); ++i) {
      const DiffRow moved = rows_[i];
      size_t at = i;
      for (size_t from; (from = std::exchange(ranks[at].row, static_cast<uint32_t>(at))) != i;
           at = from) {
        rows_[at] = rows_[from];
      }
      rows_[at] = moved;
    }
    return std::move(rows_);
  }

 private:
  uint32_t& row_of(uint32_t key) {
    if (key == kUnset) return no_frame_;
    if (key >= index_.size()) index_.resize(std::max<size_t>(key + 1, 2 * index_.size()), kUnset);
    return index_[key];
  }

  DiffRows rows_;
  std::vector<uint32_t> index_;
  uint32_t no_frame_ = kUnset;
};

/// Calls each(side, is B, holder, bytes, count) for every figure of both runs, B's first, so that
/// ties stay in the order of the run that is used.
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
    all(side.device->holders_before_exit, &DiffFigures::end_bytes, &DiffFigures::end_count);
    all(side.device->totals, &DiffFigures::total_bytes, &DiffFigures::total_count);
  }
}

/// Gives the stacks of a run that are live at its peak or its end a common id.
void align_live(const DiffSide& side, Aligner::Side* ids, Aligner* aligner) {
  if (side.device == nullptr) return;
  for (const auto* holders : {&side.device->holders_at_peak, &side.device->holders_before_exit})
    for (const Holder& holder : *holders) aligner->stack(*ids, holder.stack);
}

/// Fills by_stack, by_line and by_function.
void group_by_frames(DiffStacks which, Diff* diff) {
  Aligner::Side sides[2] = {Aligner::Side(diff->a), Aligner::Side(diff->b)};
  CommonNames names(diff->a, diff->b);
  const MovedLines moved = moved_lines(diff->a, diff->b, &names);
  diff->moved_lines = moved.moved;
  Aligner aligner(sides, moved, &names);
  std::optional<HeadlineNodes> headlines[2];
  Memo headline_of[2];
  for (const bool is_b : {true, false}) {
    if (sides[is_b].tables == nullptr) continue;
    headlines[is_b].emplace(*sides[is_b].tables);
    headline_of[is_b].resize(sides[is_b].tables->stacks.stack_count());
    align_live(is_b ? diff->b : diff->a, &sides[is_b], &aligner);
  }
  Rows stacks, lines, functions;
  for_each_figure(*diff, [&](const DiffSide&, bool is_b, const Holder& holder,
                             uint64_t DiffFigures::* bytes, uint64_t DiffFigures::* count) {
    Aligner::Side& side = sides[is_b];
    const uint32_t stack = which == DiffStacks::kEvery ? aligner.stack(side, holder.stack)
                                                       : aligner.known(side, holder.stack);
    const uint32_t node =
        headline_of[is_b].of(holder.stack, [&] { return headlines[is_b]->of(holder.stack); });
    const uint32_t line = node == 0 ? kUnset : aligner.frame(side, node, true);
    const uint32_t function = node == 0 ? kUnset : aligner.frame(side, node, false);
    if (stack != kNowhere) stacks.add(stack, is_b, holder.stack, holder, bytes, count);
    lines.add(line, is_b, node, holder, bytes, count);
    functions.add(function, is_b, node, holder, bytes, count);
  });
  diff->by_stack = std::move(stacks).sorted();
  diff->by_line = std::move(lines).sorted();
  diff->by_function = std::move(functions).sorted();
}

/// Fills by_layer and layers.
void group_by_layer(Diff* diff) {
  const auto may_have = [](const DiffSide& side) {
    return side.device != nullptr && may_have_layers(*side.tables);
  };
  if (!may_have(diff->a) && !may_have(diff->b)) return;
  Rows rows;
  std::map<std::pair<std::string_view, std::string_view>, uint32_t> known;
  bool any_layer = false;
  Memo layers[2];
  std::optional<WorkReader> readers[2];
  bool are_tensorflow = true;
  for (const bool is_b : {true, false}) {
    const DiffSide& side = is_b ? diff->b : diff->a;
    if (side.device == nullptr) continue;
    are_tensorflow &= is_tensorflow(side.tables->devices[side.device->device]);
    layers[is_b].resize(side.tables->stacks.stack_count());
    readers[is_b].emplace(*side.tables);
  }
  const auto layer_of = [&](bool is_b, uint32_t stack) {
    return layers[is_b].of(stack, [&] {
      const Tables& tables = *(is_b ? diff->b : diff->a).tables;
      // Other frameworks do not tell whose an optimizer's state is.
      const LayerWork work = are_tensorflow ? stack_work_of(tables, stack, &*readers[is_b]).where
                                            : layer_work_of(tables, stack, &*readers[is_b]);
      any_layer |= !work.layer.empty();
      const auto [at, added] =
          known.try_emplace({work.layer, work.part}, static_cast<uint32_t>(diff->layers.size()));
      if (added) diff->layers.push_back({std::string(work.layer), std::string(work.part)});
      return at->second;
    });
  };
  for_each_figure(*diff, [&](const DiffSide&, bool is_b, const Holder& holder,
                             uint64_t DiffFigures::* bytes, uint64_t DiffFigures::* count) {
    const uint32_t layer = layer_of(is_b, holder.stack);
    rows.add(layer, is_b, layer, holder, bytes, count);
  });
  if (any_layer) {
    diff->by_layer = std::move(rows).sorted();
  } else {
    diff->layers.clear();
  }
}

/// Of both runs, or of the one that lacks them.
std::string why_no_modules_of(const Diff& diff) {
  const auto why = [](const DiffSide& side) {
    return side.device == nullptr ? std::string() : why_no_modules(*side.device);
  };
  const std::string of_a = why(diff.a), of_b = why(diff.b);
  if (of_a == of_b) return of_a;
  return of_a.empty() ? "of B, " + of_b : "of A, " + of_a;
}

/// Fills by_category, by_module and groups.
void group_by_category(Diff* diff) {
  for (const DiffSide* side : {&diff->a, &diff->b}) {
    if (side->device == nullptr || side->device->categories.is_known) continue;
    diff->why_no_categories =
        (side == &diff->a ? "of A, " : "of B, ") + side->device->categories.why_not;
    diff->why_no_modules = diff->why_no_categories;
    return;
  }
  diff->why_no_modules = why_no_modules_of(*diff);
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
    add_all(side, is_b, of.before_exit, &DiffFigures::end_bytes, &DiffFigures::end_count);
  }
  diff->by_category = std::move(categories).sorted();
  if (diff->why_no_modules.empty()) diff->by_module = std::move(modules).sorted();
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
    const size_t at = rfind_in_path(path, packages);
    if (at != std::string_view::npos) return path.substr(at + packages.size());
  }
  for (std::string_view library : {"/lib/python3", "/lib64/python3"}) {
    const size_t at = rfind_in_path(path, library);
    if (at == std::string_view::npos) continue;
    const size_t slash = path.find('/', at + library.size());  // behind the version
    if (slash != std::string_view::npos) return path.substr(slash + 1);
  }
  if (const std::string_view module = module_of_layer(path); !module.empty()) return module;
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
  now.holders_at_peak = now.holders_at_end = now.holders_before_exit = moment.holders;
  now.totals = moment.totals;
  now.categories.at_peak = now.categories.at_end = now.categories.before_exit = moment.categories;
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

Diff diff_runs(const DiffSide& a, const DiffSide& b, DiffStacks stacks) {
  Diff diff{.a = a, .b = b};
  group_by_frames(stacks, &diff);
  group_by_layer(&diff);
  group_by_category(&diff);
  return diff;
}

}  // namespace gpumemprof
