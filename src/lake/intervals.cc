// intervals and categories: one row an allocation, and what it was before it became what it is.
#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "analysis/categories/category_sums.h"
#include "lake/run.h"

namespace gpumemprof {
namespace {

/// The words for what a block is, made once for each stack and kind.
class Works {
 public:
  Works(const BlockTable& table, const Tables& tables) : table_(table), tables_(tables) {}
  const HolderWork& of(uint32_t block, uint32_t kind) {
    const uint32_t stack = table_.stack[block];
    const auto [known, is_new] = known_.try_emplace(uint64_t{stack} << 32 | kind);
    if (is_new) {
      CategoryHolder holder = table_.kinds[kind];
      holder.stack = stack;
      known->second = work_of_holder(holder, tables_);
    }
    return known->second;
  }

 private:
  const BlockTable& table_;
  const Tables& tables_;
  absl::flat_hash_map<uint64_t, HolderWork> known_;
};

/// In a column of modules and the one of phases behind it.
void add_work(const HolderWork& work, LakeColumn* to) {
  to[0].add_words(work.module);
  to[1].add_words(work.user_phase.empty() ? work.phase : work.user_phase);
}

class Intervals final : public LakeRows {
 public:
  Intervals(const LakeRun& run, const LakeMemory& memory)
      : memory_(memory),
        table_(*memory.table),
        tables_(run.whole().tables()),
        has_addresses_(run.whole().is_snapshot() ||
                       run.whole().analysis().source.can.addresses),
        works_(table_, tables_),
        ends_(step_ends(run, memory)) {}

  LakeBatch columns() const override {
    return batch_of(
        "interval birth_event death_event birth_time_ns death_time_ns address size_bytes stack "
        "stream thread category:text module:text phase:text step");
  }

  void fill(LakeBatch* batch) override {
    size_t rows = 0;
    for (; next_ < table_.blocks() && rows < kMostRows; ++next_) {
      // A contradictory snapshot names a block twice: the second one never lived.
      if (table_.end[next_] <= table_.start[next_]) continue;
      add(*batch, next_);
      ++rows;
    }
  }

 private:
  void add(LakeBatch& to, uint32_t block) {
    const uint32_t start = table_.start[block], end = table_.end[block];
    const bool has_ended = end != kNone;
    size_t i = 0;
    to[i++].add(int64_t{block});
    to[i++].add(int64_t{start});
    has_ended ? to[i++].add(int64_t{end}) : to[i++].add_unknown();
    to[i++].add_or_unknown(time_of(memory_, start));
    to[i++].add_or_unknown(has_ended ? time_of(memory_, end) : std::nullopt);
    has_addresses_ ? to[i++].add_unsigned(table_.address[block]) : to[i++].add_unknown();
    to[i++].add_unsigned(table_.size_bytes[block]);
    to[i++].add(int64_t{table_.stack[block]});
    table_.stream.empty() ? to[i++].add_unknown()
                          : to[i++].add(table_.streams[table_.stream[block]]);
    const uint32_t thread = table_.thread.empty() ? kNone : table_.thread[block];
    thread < tables_.threads.size() ? to[i++].add(int64_t{tables_.threads[thread].tid})
                                    : to[i++].add_unknown();
    const uint32_t kind = table_.kind_in_end(block);
    table_.is_told ? to[i++].add(std::string_view(category_name(table_.kinds[kind].category)))
                   : to[i++].add_unknown();
    add_work(works_.of(block, kind), &to[i]);
    add_step(&to[i + 2], start);
  }
  /// Known after the first end of a step, as in export's events.
  void add_step(LakeColumn* column, uint32_t start) {
    while (next_end_ < ends_.size() && ends_[next_end_].moment < start)
      step_ = static_cast<int64_t>(ends_[next_end_++].said->value) + 1;
    step_ < 0 ? column->add_unknown() : column->add(step_);
  }

  const LakeMemory& memory_;
  const BlockTable& table_;
  const Tables& tables_;
  const bool has_addresses_;
  Works works_;
  std::vector<StepEnd> ends_;
  size_t next_end_ = 0;
  int64_t step_ = -1;
  uint32_t next_ = 0;
};

/// What a block was from one moment until another, where it later became something else.
class Earlier final : public LakeRows {
 public:
  Earlier(const LakeRun& run, const LakeMemory& memory)
      : table_(*memory.table), works_(table_, run.whole().tables()) {}

  LakeBatch columns() const override {
    return batch_of("interval from_event until_event category:text module:text phase:text");
  }

  void fill(LakeBatch* batch) override {
    LakeBatch& to = *batch;
    size_t rows = 0;
    for (; next_ < table_.earlier_kinds.size() && rows < kMostRows; ++next_) {
      const EarlierKind& was = table_.earlier_kinds[next_];
      const bool is_first = next_ == 0 || table_.earlier_kinds[next_ - 1].block != was.block;
      const uint32_t from = is_first ? table_.start[was.block] : until_;
      until_ = std::max(from, was.until);
      if (until_ <= from) continue;
      to[0].add(int64_t{was.block}), to[1].add(int64_t{from}), to[2].add(int64_t{until_});
      to[3].add(std::string_view(category_name(table_.kinds[was.kind].category)));
      add_work(works_.of(was.block, was.kind), &to[4]);
      ++rows;
    }
  }

 private:
  const BlockTable& table_;
  Works works_;
  size_t next_ = 0;
  uint32_t until_ = 0;
};

}  // namespace

std::unique_ptr<LakeRows> interval_rows(const LakeRun& run, size_t memory) {
  return std::make_unique<Intervals>(run, run.memories()[memory]);
}

std::unique_ptr<LakeRows> category_rows(const LakeRun& run, size_t memory) {
  return std::make_unique<Earlier>(run, run.memories()[memory]);
}

}  // namespace gpumemprof
