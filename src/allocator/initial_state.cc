// The segments before a trace began, and the pieces they were in.
#include "allocator/initial_state.h"

#include <absl/container/btree_map.h>

#include <algorithm>
#include <optional>
#include <tuple>

namespace gpumemprof {
namespace {

using Piece = SimulatedBlock::State;

// Pages that were mapped again below what is mapped at the start belong to the same range.
constexpr uint64_t kSameRangeBytes = 64ull << 30;

/// Addresses and sizes come from files; sums of those that pass do not wrap around.
bool is_sane(uint64_t address, uint64_t size_bytes) {
  return size_bytes > 0 && size_bytes <= kMostBytes && address <= kUnlimited / 2;
}

/// Mapped addresses of expandable segments, by begin.
struct MappedRange {
  uint64_t end = 0;
  uint16_t stream = 0;
  uint16_t pool = 0;
  std::optional<bool> is_large;
  uint32_t stack = 0;
};
using MappedRanges = absl::btree_map<uint64_t, MappedRange>;

void remove_range(MappedRanges* ranges, uint64_t begin, uint64_t end) {
  auto at = ranges->lower_bound(begin);
  if (at != ranges->begin() && std::prev(at)->second.end > begin) --at;
  while (at != ranges->end() && at->first < end) {
    const uint64_t old_begin = at->first;
    const MappedRange old = at->second;
    ranges->erase(at);
    if (old_begin < begin) {
      MappedRange left = old;
      left.end = begin;
      ranges->insert({old_begin, left});
    }
    if (old.end > end) ranges->insert({end, old});
    at = ranges->lower_bound(std::max(begin, std::min(old.end, end)));
  }
}

/// Walks the driver's side of the trace backwards.
class Driver {
 public:
  Driver(const AllocatorTrace& trace, const AllocatorConfig& config)
      : page_bytes_(config.large_segment_bytes) {
    for (const AllocatorSegment& end : trace.segments) {
      if (!is_sane(end.address, end.size_bytes)) continue;
      if (end.is_expandable) {
        known_[{end.pool, end.stream}][end.address] = end.is_large;
        ranges_[end.address] = {.end = end.address + end.size_bytes,
                                .stream = end.stream,
                                .pool = end.pool,
                                .is_large = end.is_large,
                                .stack = end.stack};
      } else {
        segments_[end.address] = {.address = end.address,
                                  .size_bytes = end.size_bytes,
                                  .stack = end.stack,
                                  .stream = end.stream,
                                  .pool = end.pool,
                                  .is_large = end.is_large};
      }
    }
    for (size_t i = trace.events.size(); (i = trace.events.behind_last_other(i)) > 0;) {
      if (trace.events[--i].action >= Action::kSegmentAlloc) step_back(trace.events[i]);
    }
  }

  std::vector<EarlierSegment> segments() {
    std::vector<EarlierSegment> out;
    for (const auto& [address, segment] : segments_) out.push_back({segment, {}});
    add_expandable(&out);
    std::ranges::sort(out, {}, [](const EarlierSegment& s) { return s.segment.address; });
    for (size_t i = 0; i + 1 < out.size(); ++i) end_before(&out[i], out[i + 1].segment.address);
    return out;
  }

 private:
  void step_back(const AllocatorEvent& event) {
    if (!is_sane(event.address, event.size_bytes)) return;
    const uint64_t end = event.address + event.size_bytes;
    switch (event.action) {
      case Action::kSegmentAlloc:
        segments_.erase(event.address);
        break;
      case Action::kSegmentFree:
        // 2 MiB are asked of the driver for small requests alone.
        segments_[event.address] = {.address = event.address,
                                    .size_bytes = event.size_bytes,
                                    .stream = event.stream,
                                    .pool = event.pool,
                                    .is_large = event.size_bytes != kDriverPageBytes};
        break;
      case Action::kSegmentMap:
        maps_[{event.pool, event.stream}].push_back(event);
        remove_range(&ranges_, event.address, end);
        break;
      case Action::kSegmentUnmap:
        remove_range(&ranges_, event.address, end);
        ranges_[event.address] = {
            .end = end, .stream = event.stream, .pool = event.pool, .is_large = {}};
        break;
      default:
        break;
    }
  }

  /// A reserved range whose end nobody knows ends where the next segment begins, at the latest.
  static void end_before(EarlierSegment* range, uint64_t address) {
    if (!range->segment.is_expandable || range->pieces.back().state != Piece::kUnmapped) return;
    SeedBlock& tail = range->pieces.back();
    if (address >= tail.address + tail.size_bytes) return;
    tail.size_bytes = address > tail.address ? address - tail.address : 0;
    range->segment.size_bytes = std::max(address, tail.address) - range->segment.address;
    if (tail.size_bytes == 0) range->pieces.pop_back();
  }

  /// What a range without a word on it serves: the nearest one that is known decides, unless its
  /// size is no number of large pages.
  bool is_large(uint64_t begin, const MappedRange& range) const {
    if (range.is_large) return *range.is_large;
    if ((range.end - begin) % page_bytes_ != 0) return false;
    const auto known = known_.find({range.pool, range.stream});
    if (known == known_.end()) return true;
    const auto above = known->second.lower_bound(begin);
    if (above == known->second.begin()) return above->second;
    const auto below = std::prev(above);
    if (above == known->second.end()) return below->second;
    return begin - below->first < above->first - begin ? below->second : above->second;
  }

  /// All mapped ranges of one stream and class lie in one reserved range.
  void add_expandable(std::vector<EarlierSegment>* out) {
    absl::btree_map<std::tuple<uint16_t, uint16_t, bool>, std::vector<uint64_t>> groups;
    for (const auto& [begin, range] : ranges_) {
      groups[{range.pool, range.stream, is_large(begin, range)}].push_back(begin);
    }
    for (const auto& [key, begins] : groups) {
      const auto [pool, stream, large] = key;
      uint64_t base = begins.front();
      const uint64_t page = large ? page_bytes_ : kDriverPageBytes;
      for (const AllocatorEvent& map : maps_[{pool, stream}]) {
        const bool below = map.address < base && base - map.address < kSameRangeBytes &&
                           (base - map.address) % page == 0 &&
                           (map.size_bytes % page_bytes_ == 0) == large;
        if (below) base = map.address;
      }
      const uint64_t end = std::max(ranges_[begins.back()].end, base + kAmpleRangeBytes);
      EarlierSegment made{.segment = {.address = base,
                                      .size_bytes = end - base,
                                      .stack = ranges_[begins.front()].stack,
                                      .stream = stream,
                                      .pool = pool,
                                      .is_large = large,
                                      .is_expandable = true},
                          .pieces = {}};
      uint64_t at = base;
      for (uint64_t begin : begins) {
        const uint64_t range_end = ranges_[begin].end;
        if (range_end <= at) continue;
        begin = std::max(begin, at);
        if (begin > at) made.pieces.push_back({at, begin - at, 0, 0, Piece::kUnmapped});
        if (!made.pieces.empty() && made.pieces.back().state == Piece::kFree && begin == at) {
          made.pieces.back().size_bytes += range_end - begin;
        } else {
          made.pieces.push_back({begin, range_end - begin, 0, 0, Piece::kFree});
        }
        at = range_end;
      }
      if (at < end) made.pieces.push_back({at, end - at, 0, 0, Piece::kUnmapped});
      out->push_back(std::move(made));
    }
  }

  uint64_t page_bytes_;
  absl::flat_hash_map<uint64_t, SimulatedSegment> segments_;
  MappedRanges ranges_;
  using PoolAndStream = std::pair<uint16_t, uint16_t>;
  absl::flat_hash_map<PoolAndStream, std::vector<AllocatorEvent>> maps_;
  absl::flat_hash_map<PoolAndStream, absl::btree_map<uint64_t, bool>> known_;  // large, by address
};

/// A live block of unknown size before a gap: its end may lie up to 1 MiB into the gap.
struct OpenEnd {
  uint64_t begin, limit;  ///< where the gap may begin
  uint64_t until;         ///< event that frees the block
  SeedBlock* block;
  SeedBlock* gap;
};

/// Cuts a free piece (or a whole segment) into the blocks that were live in it and the gaps.
class Carver {
 public:
  Carver(const AllocatorConfig& config, const Release& release)
      : config_(config), release_(release) {}

  void carve(EarlierSegment* segment, std::span<const EarlierBlock> blocks, uint64_t* impossible) {
    if (!segment->segment.is_expandable) {
      segment->pieces = {
          {segment->segment.address, segment->segment.size_bytes, 0, 0, Piece::kFree}};
    }
    std::vector<SeedBlock> carved;
    size_t next = 0;
    for (const SeedBlock& piece : segment->pieces) {
      if (piece.state != Piece::kFree) {
        carved.push_back(piece);
        continue;
      }
      while (next < blocks.size() && blocks[next].address < piece.address) ++*impossible, ++next;
      carve_piece(segment->segment, piece, blocks, &next, &carved, impossible);
    }
    *impossible += blocks.size() - next;
    segment->pieces = std::move(carved);
    for (const auto& [index, until] : open_) {
      SeedBlock& block = segment->pieces[index];
      SeedBlock& gap = segment->pieces[index + 1];
      const uint64_t limit = gap.address + std::min(kSmallBlockBytes, gap.size_bytes - 1);
      ends_.push_back({gap.address, limit, until, &block, &gap});
    }
    open_.clear();
  }

  /// The first block that is put into a gap lies at its beginning, and so tells where the block
  /// before it ended. Only while that one lives: later the gap begins with it.
  void settle(const AllocatorTrace& trace) {
    std::ranges::sort(ends_, {}, &OpenEnd::begin);
    uint64_t last_until = 0;
    for (const OpenEnd& end : ends_) last_until = std::max(last_until, end.until);
    size_t unsettled = ends_.size();
    const uint64_t events = std::min<uint64_t>(last_until, trace.events.size());
    for (uint64_t i = 0; i < events && unsettled > 0; ++i) {
      const AllocatorEvent event = trace.events[i];
      if (event.action != Action::kAlloc) continue;
      auto above = std::ranges::upper_bound(ends_, event.address, {}, &OpenEnd::begin);
      if (above == ends_.begin()) continue;
      OpenEnd& end = *std::prev(above);
      if (end.block == nullptr || event.address > end.limit || i >= end.until) continue;
      const uint64_t slack = event.address - end.begin;
      end.block->size_bytes += slack;
      end.gap->address += slack;
      end.gap->size_bytes -= slack;
      end.block = nullptr;
      --unsettled;
    }
  }

 private:
  void carve_piece(const SimulatedSegment& segment, const SeedBlock& piece,
                   std::span<const EarlierBlock> blocks, size_t* next,
                   std::vector<SeedBlock>* carved, uint64_t* impossible) {
    const uint64_t end = piece.address + piece.size_bytes;
    uint64_t at = piece.address;
    bool size_is_open = false;  // of the piece put last, a live block
    uint64_t until = 0;
    const auto fill_gap = [&](uint64_t gap_end) {
      const uint64_t gap = gap_end - at;
      if (gap == 0) return;
      // A remainder of 1 MiB or less is not split off in the large pool.
      const bool unsplit = carved->empty() || !size_is_open
                               ? false
                               : gap <= kSmallBlockBytes ||
                                     carved->back().size_bytes >= config_.max_split_size_bytes;
      if (unsplit) {
        carved->back().size_bytes += gap;
      } else {
        if (size_is_open) open_.push_back({carved->size() - 1, until});
        carved->push_back({at, gap, 0, 0, Piece::kFree});
      }
    };
    for (; *next < blocks.size() && blocks[*next].address < end; ++*next) {
      const EarlierBlock& block = blocks[*next];
      const uint64_t size =
          block.size_bytes != 0
              ? block.size_bytes
              : round_size(std::min(block.requested_bytes, kMostBytes), config_, release_);
      if (block.address < at || size > end - block.address) {
        ++*impossible;
        continue;
      }
      fill_gap(block.address);
      carved->push_back({block.address, size, block.requested_bytes, block.stack,
                         block.is_pending ? Piece::kPendingFree : Piece::kAllocated});
      at = block.address + size;
      size_is_open = block.size_bytes == 0 && segment.is_large && !segment.is_expandable;
      until = block.free_event;
    }
    fill_gap(end);
  }

  const AllocatorConfig& config_;
  const Release& release_;
  std::vector<std::pair<size_t, uint64_t>> open_;  // piece before a gap, and until when it lives
  std::vector<OpenEnd> ends_;
};

}  // namespace

InitialState initial_state(const AllocatorTrace& trace, const TraceStart& start,
                           const AllocatorConfig& config, const Release& release) {
  InitialState out;
  out.segments = Driver(trace, config).segments();
  Carver carver(config, release);
  std::span<const EarlierBlock> rest = start.blocks;
  for (EarlierSegment& segment : out.segments) {
    const uint64_t begin = segment.segment.address;
    const uint64_t end = begin + segment.segment.size_bytes;
    const auto first = std::ranges::lower_bound(rest, begin, {}, &EarlierBlock::address);
    const auto last = std::ranges::lower_bound(first, rest.end(), end, {}, &EarlierBlock::address);
    out.impossible_blocks += static_cast<uint64_t>(first - rest.begin());
    carver.carve(&segment, std::span(first, last), &out.impossible_blocks);
    rest = std::span(last, rest.end());
  }
  out.impossible_blocks += rest.size();
  carver.settle(trace);
  return out;
}

}  // namespace gpumemprof
