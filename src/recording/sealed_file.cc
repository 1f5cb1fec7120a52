#include "recording/sealed_file.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/varint.h"
#include "recording/sealed_events.h"
#include "recording/sealed_marks.h"
#include "recording/sealed_payload.h"

namespace gpumemprof {
namespace {

using namespace format;

constexpr size_t kMostCheckpointBytes = 1u << 30;

/// Marks in the file's numbers, in those of Tables. False where a thread is not defined.
bool translate_marks(const FileIds& ids, uint64_t shift_ns, std::vector<Mark>* marks) {
  bool all = true;
  for (Mark& mark : *marks) {
    mark.text = mark.text < ids.strings.size() ? ids.strings[mark.text] : 0;
    mark.thread = mark.thread < ids.threads.size() ? ids.threads[mark.thread] : UINT32_MAX;
    mark.time_ns += shift_ns;
    all &= mark.thread != UINT32_MAX;
  }
  return all;
}

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

/// Sealed chunks whose times do not overlap, one after another.
class SealedLane final : public Lane {
 public:
  SealedLane(File* file, const FileIds* ids, const Companions* companions, uint64_t shift_ns,
             SealedLosses* losses)
      : file_(file), ids_(ids), companions_(companions), shift_(shift_ns), losses_(losses) {}

  void add(const ChunkRef& chunk) { chunks_.push_back(chunk); }

  uint64_t next_time() const override {
    if (at_ >= chunks_.size()) return kNoTime;
    return std::min(chunks_[at_].header.time_first_ns, (uint64_t{1} << 56) - 1) + shift_;
  }

  uint64_t bytes_read() const override { return bytes_read_; }

  bool load(EventBatch* block) override {
    if (at_ >= chunks_.size()) return false;
    const ChunkRef& chunk = chunks_[at_++];
    auto done = decode(chunk, block);
    if (!done) {
      ++losses_->unreadable_chunks;
      losses_->missing_events += chunk.header.count;
      losses_->damage.push_back({chunk.offset, chunk.header.length, done.error().message});
      block->clear();
    }
    return true;
  }

 private:
  /// One for all lanes: its tables take longer to make than a rank's few events to read, and there
  /// are thousands of ranks.
  static EventDecoder& decoder() {
    thread_local EventDecoder one;
    return one;
  }

  Status decode(const ChunkRef& chunk, EventBatch* block) {
    if (auto done = read_chunk_into(*file_, chunk, &payload_); !done) return done;
    bytes_read_ += payload_.size();
    ConsumedTable ignored;
    auto head = parse_consumed(payload_, &ignored);
    if (!head) return std::unexpected(head.error());
    std::string_view columns = std::string_view(payload_).substr(*head);
    if (auto done = decoder().decode(columns, chunk.header.count, block); !done) return done;
    const uint64_t first = chunk.header.first_ordinal;
    if (auto done = add(companions_->requested, first, parse_requested, block); !done) return done;
    if (auto done = add(companions_->details, first, parse_details, block); !done) return done;
    if (auto done = add(companions_->steps, first, parse_steps, block); !done) return done;
    // Events without what was said of them are still events.
    if (auto done = add_marks(first, block); !done) {
      losses_->damage.push_back({chunk.offset, 0, done.error().message});
      block->marks.clear();
    }
    return translate(block);
  }

  Status add_marks(uint64_t first, EventBatch* block) {
    if (auto done = add(companions_->marks, first, parse_marks, block); !done) return done;
    if (translate_marks(*ids_, shift_, &block->marks)) return {};
    return fail(ErrorCode::kBadInput, "marks of undefined threads");
  }

  /// Adds the columns that a separate chunk has for the events from number `first` on, if any.
  Status add(const std::map<uint64_t, ChunkRef>& chunks, uint64_t first,
             Status (*parse)(std::string_view, EventBatch*), EventBatch* block) {
    const auto known = chunks.find(first);
    if (known == chunks.end()) return {};
    if (auto done = read_chunk_into(*file_, known->second, &payload_); !done) return done;
    bytes_read_ += payload_.size();
    return parse(payload_, block);
  }

  Status translate(EventBatch* block) {
    const auto& stacks = ids_->stacks;
    const auto& threads = ids_->threads;
    const auto& devices = ids_->devices;
    uint32_t bad = 0;
    for (uint32_t& stack : block->stack) stack = stack < stacks.size() ? stacks[stack] : 0;
    for (uint32_t& thread : block->thread) {
      thread = thread < threads.size() ? threads[thread] : UINT32_MAX;
      bad |= thread == UINT32_MAX;
    }
    for (uint16_t& device : block->device) {
      device = device < devices.size() ? devices[device] : UINT16_MAX;
      bad |= device == UINT16_MAX;
    }
    if (bad) return fail(ErrorCode::kBadInput, "its threads or devices are undefined");
    if (shift_ != 0) {
      for (uint64_t& time : block->time_ns) time += shift_;
    }
    return {};
  }

  File* file_;
  const FileIds* ids_;
  const Companions* companions_;
  uint64_t shift_;
  SealedLosses* losses_;
  std::string payload_;
  std::vector<ChunkRef> chunks_;
  size_t at_ = 0;
  uint64_t bytes_read_ = 0;
};

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
  // Places are claimed before they are filled, so offsets need not follow the order of writing.
  std::stable_sort(chunks.begin(), chunks.end(), [](const ChunkRef& a, const ChunkRef& b) {
    return a.header.sequence < b.header.sequence;
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
  std::stable_sort(events_.begin(), events_.end(), [](const ChunkRef& a, const ChunkRef& b) {
    return a.header.first_ordinal < b.header.first_ordinal;
  });
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
      footer_chunk_ = chunk, footer_ = *footer;
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

void SealedFile::add_lanes(Merger* merger, uint64_t shift_ns, SealedLosses* losses) {
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
  for (auto& lane : lanes) merger->add(std::move(lane));
  for (auto read : {&SealedFile::read_marks_before, &SealedFile::read_marks_after}) {
    EventBatch block;
    if (auto done = (this->*read)(&block); !done || block.marks.empty()) continue;
    for (Mark& mark : block.marks) mark.time_ns += shift_ns;
    merger->add(std::make_unique<MarksLane>(std::move(block)));
  }
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
