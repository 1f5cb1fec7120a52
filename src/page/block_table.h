// Every block of one device in columns, and the live bytes after each of its events.
//
// A moment e is the state after the device's first e events: 0 is before the first one. A block is
// live at the moments [start, end). Memory: at most 38 bytes per block and 14 per event, less where
// values are close.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

#include "analysis/categories/category_holder.h"
#include "base/growing_column.h"
#include "page/columns.h"
#include "page/level_forest.h"
#include "page/packed_column.h"

namespace gpumemprof {

/// What happened between two moments.
enum class BlockChange : uint8_t { kOther, kAlloc, kFree, kFreeRequested };

/// A figure that changes now and then: its value at a moment is that of the last change.
struct SparseSeries {
  std::vector<uint32_t> moments;
  std::vector<uint64_t> values;
  void add(uint32_t moment, uint64_t value);
  uint64_t at(uint32_t moment) const;  ///< 0 before the first change
  bool empty() const { return moments.empty(); }
};

/// A request that was refused.
struct RefusedMoment {
  uint32_t moment = 0, stack = 0;
  uint64_t size_bytes = 0;
};
/// A segment that the allocator allocated or released.
struct SegmentChange {
  uint32_t moment = 0, stack = 0;
  Action action = Action::kSegmentAlloc;
  uint64_t address = 0, size_bytes = 0;
  int64_t stream = 0;
  std::pair<int64_t, int64_t> pool{0, 0};
};
/// What a block was until right before a moment.
struct EarlierKind {
  uint32_t block = 0, until = 0, kind = 0;
};

struct BlockTable {
  template <class T>
  using Column = GrowingColumn<T>;
  static constexpr uint32_t kMostBlocks = (1u << 30) - 1;
  static constexpr uint32_t kMostMoments = UINT32_MAX - 1;

  PackedColumn<uint64_t> size_bytes, address;
  PackedColumn<uint32_t> start, stack;
  PackedColumn<uint32_t> thread;  ///< index in Tables::threads; empty where nobody knows
  Column<uint32_t> end;           ///< kNone while it lives
  /// In `kinds`: what it was in the end; kChangesKind: not always. Empty where nothing is told.
  Column<uint32_t> kind;
  static constexpr uint32_t kChangesKind = 1u << 31;
  Column<uint16_t> stream;  ///< in `streams`; empty where nobody knows
  std::vector<int64_t> streams;
  std::vector<CategoryHolder> kinds;       ///< without stacks and sums; [0] is of those not told of
  std::vector<EarlierKind> earlier_kinds;  ///< by block, then until
  bool is_told = false;                    ///< of any block it is known what it is
  uint32_t earlier_blocks = 0;             ///< the first ones: live before the first event

  /// Of the step to a moment: a BlockChange in the two highest bits, then the block. [0] is none.
  Column<uint32_t> changes;
  PackedColumn<uint64_t> times;  ///< of the events: of moment e that of event e - 1
  LevelForest levels;
  SparseSeries reserved, pending;
  /// What the allocator added to the sizes of what is live; empty where it is not known, or sizes
  /// are those that were asked for.
  SparseSeries rounding;
  std::vector<RefusedMoment> refused;
  std::vector<SegmentChange> segments;
  bool has_end_segments = false;
  std::vector<SegmentChange> end_segments;  ///< that a snapshot lists, as if they came then
  /// Frees that were requested and waited, by the moment of the request; end: of the wait.
  struct Wait {
    uint32_t block, from, to;
  };
  std::vector<Wait> waits;
  uint64_t repeated_allocs = 0, unmatched_frees = 0;
  uint64_t left_out_events = 0;  ///< beyond what a table holds

  uint32_t moments() const { return static_cast<uint32_t>(changes.size()); }
  uint32_t blocks() const { return static_cast<uint32_t>(size_bytes.size()); }
  /// Its moment; 0 where no event allocated.
  uint32_t last_allocation() const { return start.empty() ? 0 : start[start.size() - 1]; }
  BlockChange change(uint32_t moment) const {
    return static_cast<BlockChange>(changes[moment] >> 30);
  }
  uint32_t changed(uint32_t moment) const { return changes[moment] & kMostBlocks; }
  /// The block that the allocation at `moment` ended because its free was missed; almost always
  /// kNone.
  uint32_t replaced_at(uint32_t moment) const;
  /// The change of live bytes at the step to `moment`, modulo 2^64.
  uint64_t added_bytes(uint32_t moment) const;
  uint64_t level_at(uint32_t moment) const;
  /// The first moment with this level; moments() where there is none.
  uint32_t first_with(uint64_t level) const;
  /// The moment right before the first event at or after a time.
  uint32_t moment_at(uint64_t time_ns) const;
  bool is_live(uint32_t block, uint32_t moment) const {
    return start[block] <= moment && moment < end[block];
  }
  /// Whether its free was requested while a stream still used it.
  bool is_pending(uint32_t block, uint32_t moment) const;
  uint32_t kind_at(uint32_t block, uint32_t moment) const;
  uint32_t kind_in_end(uint32_t block) const {
    return kind.empty() ? 0 : kind[block] & ~kChangesKind;
  }
  bool changes_kind(uint32_t block) const {
    return !kind.empty() && (kind[block] & kChangesKind) != 0;
  }
  /// The number of blocks whose start is at most `moment`; blocks are numbered by start.
  uint32_t started_by(uint32_t moment) const;
  /// Calls see(block) for what is live at a moment, by number. Chunks without live blocks are
  /// skipped.
  template <class See>
  void each_live(uint32_t moment, const See& see) const;
  /// The same of what is live at some moment of [from, to).
  template <class See>
  void each_live(uint32_t from, uint32_t to, const See& see) const {
    each_live(from, see);
    const uint32_t last = started_by(to - 1);
    for (uint32_t block = started_by(from); block < last; ++block) see(block);
  }

  /// The first moment at which the most was live.
  uint32_t peak = 0;

  static constexpr uint32_t kChunk = 1024;
  std::vector<uint32_t> latest_end;  ///< of each chunk of blocks
  /// A block whose free was missed ends where another is allocated at its address.
  struct Replaced {
    uint32_t moment, block;
  };
  std::vector<Replaced> replaced;
  uint64_t earlier_bytes = 0;
  /// After the last event.
  void finish();
  void find_latest_ends();

  /// Writes it, or reads it, except for what read() rebuilds (index_archive.h).
  template <class Archive>
  void archive(Archive& archive);
  /// After archive() has read it, for tables with this many stacks: false if it names something
  /// that does not exist.
  bool read(uint32_t stacks);
};

template <class See>
void BlockTable::each_live(uint32_t moment, const See& see) const {
  const uint32_t most = started_by(moment);
  for (uint32_t chunk = 0; chunk * kChunk < most; ++chunk) {
    if (latest_end[chunk] <= moment) continue;
    const uint32_t last = std::min(most, (chunk + 1) * kChunk);
    for (uint32_t block = chunk * kChunk; block < last; ++block) {
      if (moment < end[block]) see(block);
    }
  }
}

template <class Archive>
void BlockTable::archive(Archive& archive) {
  size_bytes.archive(archive), address.archive(archive), start.archive(archive);
  stack.archive(archive), thread.archive(archive);
  archive.array(end), archive.array(kind), archive.array(stream);
  archive.array(streams);
  archive.each(kinds, [&](CategoryHolder& of) {
    archive.code(of.category, kCategories), archive.code(of.why, kWhyUnknown);
    archive.number(of.name), archive.number(of.rule);
    archive.code(of.phase, static_cast<size_t>(WorkPhase::kEvaluation) + 1);
  });
  archive.array(earlier_kinds), archive.flag(is_told), archive.number(earlier_blocks);
  archive.array(changes), times.archive(archive), levels.archive(archive);
  for (SparseSeries* series : {&reserved, &pending, &rounding})
    archive.array(series->moments), archive.array(series->values);
  archive.array(refused);
  for (std::vector<SegmentChange>* list : {&segments, &end_segments}) {
    archive.each(*list, [&](SegmentChange& change) {
      archive.number(change.moment), archive.number(change.stack);
      archive.code(change.action, kActionCount), archive.number(change.address);
      archive.number(change.size_bytes), archive.number(change.stream);
      archive.number(change.pool.first), archive.number(change.pool.second);
    });
  }
  archive.flag(has_end_segments), archive.array(waits), archive.array(replaced);
  archive.number(repeated_allocs), archive.number(unmatched_frees);
  archive.number(left_out_events), archive.number(earlier_bytes), archive.number(peak);
}

}  // namespace gpumemprof
