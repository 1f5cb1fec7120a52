#include "recording/sealed_file.h"

#include <algorithm>
#include <iterator>

#include "base/varint.h"
#include "recording/sealed_events.h"
#include "recording/sealed_lane.h"
#include "recording/sealed_marks.h"

namespace gpumemprof {
namespace {

using namespace format;

constexpr size_t kMostCheckpointBytes = 1u << 30;

/// Marks that stand in no chunk of events.
class MarksLane final : public Lane {
 public:
  explicit MarksLane(EventBatch block) : block_(std::move(block)) {}
  uint64_t next_time() const override {
    return block_.marks.empty() ? kNoTime : block_.marks.front().time_ns;
  }
  bool load(EventBatch* block) override {
    if (block_.marks.empty()) return false;
    std::swap(*block, block_);
    return true;
  }
  uint64_t bytes_read() const override { return 0; }

 private:
  EventBatch block_;
};

bool has_all_definitions(const ChunkRef& chunk) {
  return chunk.header.type == kSealedDefinitions && (chunk.header.flags & kAllDefinitions) != 0;
}

}  // namespace

bool FileIds::are_the_same() const {
  auto same = [](const auto& ids) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != i) return false;
    }
    return true;
  };
  return same(strings) && same(frames) && same(stacks) && same(threads) && same(devices);
}

Status SealedFile::read_events(const ChunkRef& chunk, EventBatch* batch) {
  SealedLosses losses;
  SealedLane lane(file_, &ids_, &companions_, 0, &losses);
  lane.add(chunk);
  lane.load(batch);
  if (!losses.damage.empty()) return fail_at(chunk.offset, losses.damage[0].reason);
  return {};
}

SealedFile::SealedFile(File* file, Tables* tables, uint32_t process)
    : file_(file), tables_(tables), entries_(tables, process), process_(process) {}

void SealedFile::take(const std::vector<ChunkRef>& all) {
  std::vector<ChunkRef> chunks;
  for (const ChunkRef& chunk : all) {
    const uint16_t type = chunk.header.type;
    if (is_sealed(type) && taken_.try_emplace(chunk.offset).second) chunks.push_back(chunk);
  }
  // Places are claimed before they are filled, so offsets need not follow the order of writing. Of
  // what merged definitions replace any part may be left, so these come first, after names.
  uint64_t merged = 0;
  for (const ChunkRef& one : chunks) {
    if (has_all_definitions(one)) merged = std::max(merged, one.header.sequence);
  }
  std::ranges::stable_sort(chunks, {}, [&](const ChunkRef& one) {
    const bool is_merged = has_all_definitions(one) && one.header.sequence == merged;
    const int turn = one.header.type == kSealedDeviceNames ? 0 : is_merged ? 1 : 2;
    return std::pair(turn, one.header.sequence);
  });
  for (const ChunkRef& chunk : chunks) {
    auto payload = read_chunk(*file_, chunk);
    Status done{};
    if (!payload) {
      done = std::unexpected(payload.error());
    } else {
      done = take_one(chunk, *payload);
    }
    next_sequence_ = std::max(next_sequence_, chunk.header.sequence + 1);
    if (!done) losses_.damage.push_back({chunk.offset, chunk.header.length, done.error().message});
  }
  std::ranges::stable_sort(events_, {}, &ChunkRef::first_ordinal);
  account();
}

Status SealedFile::take_one(const ChunkRef& chunk, std::string_view payload) {
  switch (chunk.header.type) {
    case kSealedDefinitions:
      return parse_definitions(payload, process_, tables_, &ids_);
    case kSealedRequested:
      companions_.requested[chunk.header.first_ordinal] = chunk;
      return {};
    case kSealedSteps:
      companions_.steps[chunk.header.first_ordinal] = chunk;
      return {};
    case kMarks: {
      auto& list = chunk.header.flags & kStandingMarks ? companions_.standing : companions_.marks;
      list[chunk.header.first_ordinal] = chunk;
      return {};
    }
    case kSealedDetails:
      companions_.details[chunk.header.first_ordinal] = chunk;
      return {};
    case kSealedAllocators:
      return parse_allocators(payload, process_, &entries_);
    case kSealedDeviceNames:
      return parse_device_names(payload, &ids_);
    case kSealedEvents: {
      if (chunk.header.count == 0 || chunk.header.count > kMostSealedEvents) {
        return fail(ErrorCode::kBadInput, "an impossible number of events");
      }
      auto head = parse_consumed(payload, &consumed_);
      if (!head) return std::unexpected(head.error());
      events_.push_back(chunk);
      return {};
    }
    case kCheckpoint: {
      auto head = parse_consumed(payload, &consumed_);
      if (!head) return std::unexpected(head.error());
      checkpoints_.push_back(chunk);
      if (!(chunk.header.flags & kEventsBeforeDropped) || chunk.header.first_ordinal < first_event_)
        return {};
      auto body = parse_compressed(payload.substr(*head), kMostCheckpointBytes);
      if (!body) return std::unexpected(body.error());
      auto state = LiveState::parse(*body);
      if (!state) return std::unexpected(state.error());
      state_before_ = std::move(*state);
      first_event_ = chunk.header.first_ordinal;
      return {};
    }
    default: {
      auto footer = parse_footer(payload);
      if (!footer) return std::unexpected(footer.error());
      footer_ = *footer;
      return {};
    }
  }
}

/// Numbers of events that stand in no chunk. A later copy of the same numbers is left out.
void SealedFile::account() {
  std::erase_if(events_,
                [&](const ChunkRef& chunk) { return chunk.header.first_ordinal < first_event_; });
  next_event_ = first_event_;
  losses_.missing_events = 0;
  losses_.dropped_events = first_event_;
  std::erase_if(events_, [&](const ChunkRef& chunk) {
    uint64_t first = chunk.header.first_ordinal;
    if (first < next_event_ || first > UINT64_MAX / 2) return true;
    losses_.missing_events += first - next_event_;
    next_event_ = first + chunk.header.count;
    return false;
  });
  const uint64_t all = footer_ ? footer_->events : expected_events_;
  if (all > next_event_ && all < UINT64_MAX / 2) {
    losses_.missing_events += all - next_event_;
    next_event_ = all;
  }
}

std::optional<uint64_t> SealedFile::add_lanes(Merger* merger, uint64_t shift_ns,
                                              bool decodes_ahead, SealedLosses* losses) {
  std::vector<std::unique_ptr<SealedLane>> lanes;
  std::multimap<uint64_t, SealedLane*> by_end;  // the last time of each lane
  for (const ChunkRef& chunk : events_) {
    // A lane goes on with a chunk that begins after it; the one that ended last, of several.
    SealedLane* fits = nullptr;
    const auto later = by_end.upper_bound(chunk.header.time_first_ns);
    if (later == by_end.begin()) {
      lanes.push_back(std::make_unique<SealedLane>(file_, &ids_, &companions_, shift_ns, losses));
      fits = lanes.back().get();
    } else {
      fits = std::prev(later)->second;
      by_end.erase(std::prev(later));
    }
    fits->add(chunk);
    by_end.emplace(chunk.header.time_last_ns, fits);
  }
  uint64_t last_ns = by_end.empty() ? 0 : by_end.rbegin()->first + shift_ns;
  constexpr size_t kFewLanes = 4;  // that may have threads: the file decides how many there are
  for (auto& lane : lanes) {
    if (decodes_ahead && lanes.size() <= kFewLanes) lane->decode_ahead();
    merger->add(std::move(lane));
  }
  for (auto read : {&SealedFile::read_marks_before, &SealedFile::read_marks_after}) {
    EventBatch block;
    if (auto done = (this->*read)(&block); !done || block.marks.empty()) continue;
    for (Mark& mark : block.marks) mark.time_ns += shift_ns;
    last_ns = std::max(last_ns, block.marks.back().time_ns);
    merger->add(std::make_unique<MarksLane>(std::move(block)));
  }
  return footer_ && last_ns != 0 ? std::optional(last_ns) : std::nullopt;
}

Status SealedFile::read_marks_alone(const std::map<uint64_t, ChunkRef>& chunks, uint64_t event,
                                    EventBatch* batch) {
  batch->clear();
  const auto known = chunks.find(event);
  if (known == chunks.end()) return {};
  auto payload = read_chunk(*file_, known->second);
  Status done = payload ? parse_marks(*payload, batch) : std::unexpected(payload.error());
  if (done && !translate_marks(ids_, 0, &batch->marks)) {
    done = fail(ErrorCode::kBadInput, "marks of undefined threads");
  }
  if (!done) {
    const ChunkRef& chunk = known->second;
    losses_.damage.push_back({chunk.offset, chunk.header.length, done.error().message});
    batch->clear();
  }
  // Where no event tells the time of a mark, the chunk does.
  for (Mark& mark : batch->marks) {
    const uint64_t time = std::min(known->second.header.time_first_ns, (uint64_t{1} << 56) - 1);
    if (mark.kind == MarkKind::kSaved) mark.time_ns = time;
  }
  return done;
}

Status SealedFile::read_marks_before(EventBatch* batch) {
  batch->clear();
  return first_event_ == 0 ? Status{} : read_marks_alone(companions_.standing, first_event_, batch);
}

/// While the file is not finished the raw part has them too.
Status SealedFile::read_marks_after(EventBatch* batch) {
  batch->clear();
  if (!footer_) return {};
  return read_marks_alone(companions_.marks, next_event_, batch);
}

void SealedFile::each_mark(MarkKind kind, const std::function<void(const Mark&)>& take) {
  for (const auto* chunks : {&companions_.standing, &companions_.marks}) {
    for (const auto& [first, chunk] : *chunks) {
      auto payload = read_chunk(*file_, chunk);
      auto marks = payload ? parse_marks_alone(*payload, kind)
                           : Result<std::vector<Mark>>(std::unexpected(payload.error()));
      if (!marks || !translate_marks(ids_, 0, &*marks)) continue;
      for (const Mark& mark : *marks) take(mark);
    }
  }
}

}  // namespace gpumemprof
