// What intervals refer to or cannot say: ranks, stacks, samples, steps.
#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>

#include "lake/run.h"
#include "report/describe/facts.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

class Ranks final : public LakeRows {
 public:
  explicit Ranks(const LakeRun& run) : run_(run) {}

  LakeBatch columns() const override {
    return batch_of(
        "memory device:text backend:text layer:text size_basis:text is_main is_exact rank "
        "host:text pid command:text python_version:text events intervals before_bytes peak_bytes "
        "peak_event peak_time_ns peak_reserved_bytes end_bytes start_time_ns end_time_ns "
        "wall_offset_ns");
  }

  void fill(LakeBatch* batch) override {
    for (; next_ < run_.memories().size(); ++next_) add(*batch, next_);
  }

 private:
  void add(LakeBatch& to, size_t index) {
    const LakeMemory& memory = run_.memories()[index];
    const BlockTable& table = *memory.table;
    const WholeRun& whole = run_.whole();
    const Tables& tables = whole.tables();
    const Device& device = tables.devices[memory.device];
    const DeviceAnalysis* known = whole.device(static_cast<uint16_t>(memory.device));
    const bool is_main = whole.is_main(static_cast<uint16_t>(memory.device));
    const bool is_requested = known && has_requested_sizes(*known, tables);
    // A snapshot does not name its process.
    const bool has_process = device.process < tables.processes.size() && !whole.is_snapshot();
    const Process& process = process_at(tables, device.process);
    size_t i = 0;
    to[i++].add(static_cast<int64_t>(index));
    to[i++].add(device_name(device));
    to[i++].add(std::string_view(backend_name(device)));
    to[i++].add(std::string_view(layer_name(device.layer)));
    to[i++].add(std::string_view(is_requested ? "requested" : "allocated"));
    to[i++].add(int64_t{is_main});
    to[i++].add(int64_t{known && is_exact(whole.analysis(), *known) && table.left_out_events == 0});
    to[i++].add_or_unknown(process.rank);
    to[i++].add_words(has_process ? process.host : "");
    has_process ? to[i++].add(int64_t{process.pid}) : to[i++].add_unknown();
    to[i++].add_words(has_process ? process.command : "");
    to[i++].add_words(has_process ? process.python_version : "");
    to[i++].add(int64_t{table.moments()} - 1);
    int64_t lived = 0;
    for (uint32_t b = 0; b < table.blocks(); ++b) lived += table.end[b] > table.start[b];
    to[i++].add(lived);
    to[i++].add_unsigned(table.earlier_bytes);
    // The highest moment may have been among events that were dropped: no other replaces it.
    const uint64_t shown = table.level_at(table.peak);
    const uint64_t peak = known ? known->figures.peak_bytes : shown;
    const bool is_here = peak == shown;
    to[i++].add_unsigned(peak);
    is_here ? to[i++].add(int64_t{table.peak}) : to[i++].add_unknown();
    to[i++].add_or_unknown(is_here ? time_of(memory, table.peak) : std::nullopt);
    to[i++].add_or_unknown(most_reserved(table));
    to[i++].add_unsigned(table.level_at(table.moments() - 1));
    to[i++].add_or_unknown(memory.has_times && !whole.is_snapshot()
                               ? std::optional(whole.analysis().start_time_ns)
                               : std::nullopt);
    to[i++].add_or_unknown(has_process && memory.has_times ? process.end_time_ns : std::nullopt);
    const bool has_wall = has_process && wall_time(process, 0).known;
    has_wall ? to[i].add(process.realtime_offset_ns) : to[i].add_unknown();
  }
  static std::optional<uint64_t> most_reserved(const BlockTable& table) {
    if (table.reserved.empty()) return std::nullopt;
    return *std::ranges::max_element(table.reserved.values);
  }

  const LakeRun& run_;
  size_t next_ = 0;
};

/// Those that some block has, outermost frame first.
class Stacks final : public LakeRows {
 public:
  explicit Stacks(const LakeRun& run) : tables_(run.whole().tables()) {
    std::vector<bool> is_used(tables_.stacks.stack_count());
    for (const LakeMemory& memory : run.memories()) {
      memory.table->stack.each([&](uint32_t stack) {
        if (stack < is_used.size()) is_used[stack] = true;
      });
    }
    for (uint32_t stack = 0; stack < is_used.size(); ++stack)
      if (is_used[stack]) stacks_.push_back(stack);
    frames_.resize(tables_.stacks.frame_count());
    shown_.resize(tables_.stacks.frame_count());
  }

  LakeBatch columns() const override {
    return batch_of("stack depth line:text frames:text folded:text");
  }

  void fill(LakeBatch* batch) override {
    LakeBatch& to = *batch;
    size_t rows = 0;
    for (; next_ < stacks_.size() && rows < kMostRows; ++next_, ++rows) {
      if (to[3].texts.size() + to[4].texts.size() > kMostTextBytes) return;
      const uint32_t stack = stacks_[next_];
      to[0].add(int64_t{stack});
      to[1].add(int64_t{tables_.stacks.node(stack).depth});
      const uint32_t line = headline_node(tables_, stack);
      line == 0 ? to[2].add_unknown() : to[2].add(frame_text(tables_, line));
      add_frames(&to[3], &to[4], stack);
    }
  }

 private:
  void add_frames(LakeColumn* frames, LakeColumn* folded, uint32_t stack) {
    path_.clear();
    for (uint32_t node = stack; node != 0; node = tables_.stacks.node(node).parent)
      path_.push_back(node);
    std::string lines, shown;
    for (size_t i = path_.size(); i-- > 0;) {
      const uint32_t frame = tables_.stacks.node(path_[i]).frame;
      const size_t known = frame < frames_.size() ? frame : 0;
      if (frames_[known].empty()) {
        frames_[known] = frame_text(tables_, path_[i]);
        shown_[known] = viewer_frame(tables_, tables_.stacks.frame(frame));
        std::ranges::replace(shown_[known], ';', ':');
      }
      lines += frames_[known], shown += shown_[known];
      if (i != 0) lines += kBetweenFrames, shown += ';';
    }
    path_.empty() ? frames->add_unknown() : frames->add(lines);
    folded->add(path_.empty() ? kNoStack : std::string_view(shown));
  }
  /// printable() leaves no such character in a frame.
  static constexpr char kBetweenFrames = '\x1f';

  const Tables& tables_;
  std::vector<uint32_t> stacks_, path_;
  std::vector<std::string> frames_, shown_;  // by frame, made when needed
  size_t next_ = 0;
};

/// Figures beside the blocks: each holds until its next row.
class Samples final : public LakeRows {
 public:
  explicit Samples(const LakeMemory& memory) : memory_(memory) {}

  LakeBatch columns() const override {
    return batch_of("event time_ns name:text value_bytes");
  }

  void fill(LakeBatch* batch) override {
    const BlockTable& table = *memory_.table;
    const std::array<std::pair<const char*, const SparseSeries*>, 3> all = {
        {{"reserved", &table.reserved},
         {"waiting_for_stream", &table.pending},
         {"rounding", &table.rounding}}};
    LakeBatch& to = *batch;
    for (size_t rows = 0; series_ < all.size(); ++series_, next_ = 0) {
      const auto& [name, series] = all[series_];
      for (; next_ < series->moments.size(); ++next_, ++rows) {
        if (rows == kMostRows) return;
        const uint32_t moment = series->moments[next_];
        to[0].add(int64_t{moment});
        to[1].add_or_unknown(time_of(memory_, moment));
        to[2].add(std::string_view(name));
        to[3].add_unsigned(series->values[next_]);
      }
    }
  }

 private:
  const LakeMemory& memory_;
  size_t series_ = 0, next_ = 0;
};

/// The program's steps and phases, and the annotations of a snapshot.
class Steps final : public LakeRows {
 public:
  Steps(const LakeRun& run, const LakeMemory& memory) : memory_(memory) {
    const Tables& tables = run.whole().tables();
    std::optional<Place> before;
    for (const StepEnd& end : step_ends(run, memory)) {
      const Place place = at(end.said->time_ns);
      told_.push_back({.kind = "step",
                       .name = {},
                       .number = end.said->value,
                       .begin = before,
                       .end = place});
      before = place;
    }
    add_phases(run, tables.devices[memory.device].process, tables);
    if (run.whole().is_snapshot()) add_annotations(run, tables);
  }

  LakeBatch columns() const override {
    return batch_of(
        "kind:text name:text step begin_event end_event begin_time_ns end_time_ns");
  }

  void fill(LakeBatch* batch) override {
    LakeBatch& to = *batch;
    for (size_t rows = 0; next_ < told_.size() && rows < kMostRows; ++next_, ++rows) {
      const Told& told = told_[next_];
      to[0].add(std::string_view(told.kind));
      to[1].add_words(told.name);
      to[2].add_or_unknown(told.number);
      for (size_t side = 0; side < 2; ++side) {
        const std::optional<Place>& place = side == 0 ? told.begin : told.end;
        place ? to[3 + side].add(int64_t{place->moment}) : to[3 + side].add_unknown();
        place ? to[5 + side].add_unsigned(place->time_ns) : to[5 + side].add_unknown();
      }
    }
  }

 private:
  struct Place {
    uint32_t moment;
    uint64_t time_ns;
  };
  struct Told {
    const char* kind;
    std::string name;
    std::optional<uint64_t> number;
    std::optional<Place> begin, end;
  };
  Place at(uint64_t time_ns) const { return {memory_.table->moment_at(time_ns), time_ns}; }

  void open(const char* kind, std::string_view name, uint64_t time_ns) {
    open_[name].push_back(told_.size());
    told_.push_back({.kind = kind,
                     .name = std::string(name),
                     .number = {},
                     .begin = at(time_ns),
                     .end = {}});
  }
  void close(std::string_view name, uint64_t time_ns) {
    const auto begun = open_.find(name);
    if (begun == open_.end() || begun->second.empty()) return;
    told_[begun->second.back()].end = at(time_ns);
    begun->second.pop_back();
  }
  void add_phases(const LakeRun& run, uint32_t process, const Tables& tables) {
    for (const CategoryMoment& said : run.whole().analysis().moments) {
      if (said.process != process || said.kind == CategoryMoment::kStepEnd) continue;
      const std::string_view name = tables.strings.get(said.text);
      said.kind == CategoryMoment::kPhaseBegin ? open("phase", name, said.time_ns)
                                               : close(name, said.time_ns);
    }
  }
  void add_annotations(const LakeRun& run, const Tables& tables) {
    const AllocatorSnapshot& snapshot = *run.whole().input().snapshot();
    if (!memory_.has_times || memory_.device >= snapshot.traces.size()) return;
    for (const Annotation& said : snapshot.annotations) {
      if (said.device != snapshot.traces[memory_.device].device) continue;
      const auto time_ns =
          static_cast<uint64_t>(std::clamp<int64_t>(said.time_us, 0, INT64_MAX / 1000)) * 1000;
      const std::string_view name = tables.strings.get(said.name);
      said.is_begin ? open("annotation", name, time_ns) : close(name, time_ns);
    }
  }

  const LakeMemory& memory_;
  std::vector<Told> told_;
  absl::flat_hash_map<std::string_view, std::vector<size_t>> open_;  // by name: what has no end yet
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<LakeRows> rank_rows(const LakeRun& run) { return std::make_unique<Ranks>(run); }

std::unique_ptr<LakeRows> stack_rows(const LakeRun& run) { return std::make_unique<Stacks>(run); }

std::unique_ptr<LakeRows> sample_rows(const LakeRun& run, size_t memory) {
  return std::make_unique<Samples>(run.memories()[memory]);
}

std::unique_ptr<LakeRows> step_rows(const LakeRun& run, size_t memory) {
  return std::make_unique<Steps>(run, run.memories()[memory]);
}

}  // namespace gpumemprof
