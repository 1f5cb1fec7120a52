#include "recording/sealed_lane.h"

#include <algorithm>
#include <system_error>

#include "base/working_thread.h"
#include "recording/sealed_marks.h"
#include "recording/sealed_payload.h"

namespace gpumemprof {
namespace {

/// One for all lanes of a thread: its tables take longer to make than a rank's few events to read,
/// and there are thousands of ranks.
EventDecoder& decoder_of_thread() {
  thread_local EventDecoder one;
  return one;
}

}  // namespace

/// Several chunks, so that the threads that decode and analyse seldom wait for each other.
struct SealedLane::Ahead {
  static constexpr size_t kChunks = 3;  // 2.3 MB each
  struct Chunk {
    Payloads payloads;
    Decoded decoded;
    const ChunkRef* of = nullptr;
  };
  explicit Ahead(const SealedLane& lane)
      : thread([this, &lane](Chunk& chunk) {
          lane.decode(*chunk.of, chunk.payloads, &decoder, &chunk.decoded);
        }) {}

  EventDecoder decoder;
  WorkingThread<Chunk, kChunks> thread;
};

SealedLane::SealedLane(File* file, const FileIds* ids, const Companions* companions,
                       uint64_t shift_ns, SealedLosses* losses)
    : file_(file), ids_(ids), companions_(companions), shift_(shift_ns), losses_(losses) {}

SealedLane::~SealedLane() = default;

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

uint64_t SealedLane::next_time() const {
  if (at_ >= chunks_.size()) return kNoTime;
  return std::min(chunks_[at_].header.time_first_ns, (uint64_t{1} << 56) - 1) + shift_;
}

bool SealedLane::load(EventBatch* block) {
  if (at_ >= chunks_.size()) return false;
  const ChunkRef& chunk = chunks_[at_++];
  if (ahead_ && ahead_->thread.size() != 0) {
    hand_out(chunk, &ahead_->thread.take().decoded, block);
  } else {
    if (decoded_.done = read(chunk, &payloads_); decoded_.done)
      decode(chunk, payloads_, &decoder_of_thread(), &decoded_);
    hand_out(chunk, &decoded_, block);
  }
  if (decodes_ahead_) read_ahead();
  return true;
}

/// Where the file cannot be read or no thread be started, load() does it itself, and tells.
void SealedLane::read_ahead() {
  if (!ahead_) {
    try {
      ahead_ = std::make_unique<Ahead>(*this);
    } catch (const std::system_error&) {  // the system has no thread left
      decodes_ahead_ = false;
      return;
    }
  }
  auto& thread = ahead_->thread;
  while (thread.has_room() && at_ + thread.size() < chunks_.size()) {
    Ahead::Chunk& next = thread.next();
    next.of = &chunks_[at_ + thread.size()];
    const uint64_t before = bytes_read_;
    if (!read(*next.of, &next.payloads)) {
      bytes_read_ = before;
      return;
    }
    thread.give();
  }
}

void SealedLane::hand_out(const ChunkRef& chunk, Decoded* decoded, EventBatch* block) {
  if (!decoded->done) {
    ++losses_->unreadable_chunks;
    losses_->missing_events += chunk.header.count;
    losses_->damage.push_back({chunk.offset, chunk.header.length, decoded->done.error().message});
    block->clear();
    return;
  }
  if (!decoded->marks_done)
    losses_->damage.push_back({chunk.offset, 0, decoded->marks_done.error().message});
  std::swap(*block, decoded->batch);
}

Status SealedLane::read(const ChunkRef& chunk, Payloads* payloads) {
  if (auto done = read_chunk_into(*file_, chunk, &payloads->events); !done) return done;
  bytes_read_ += payloads->events.size();
  const auto beside = [&](const std::map<uint64_t, ChunkRef>& chunks, std::string* payload) {
    payload->clear();
    const auto known = chunks.find(chunk.header.first_ordinal);
    if (known == chunks.end()) return Status{};
    auto done = read_chunk_into(*file_, known->second, payload);
    bytes_read_ += payload->size();
    return done;
  };
  for (auto done : {beside(companions_->requested, &payloads->requested),
                    beside(companions_->details, &payloads->details),
                    beside(companions_->steps, &payloads->steps)}) {
    if (!done) return done;
  }
  payloads->marks_read = beside(companions_->marks, &payloads->marks);
  return {};
}

void SealedLane::decode(const ChunkRef& chunk, const Payloads& payloads, EventDecoder* decoder,
                        Decoded* out) const {
  out->marks_done = {};
  out->done = decode_events(chunk, payloads, decoder, out);
}

Status SealedLane::decode_events(const ChunkRef& chunk, const Payloads& payloads,
                                 EventDecoder* decoder, Decoded* out) const {
  EventBatch* block = &out->batch;
  ConsumedTable ignored;
  const auto head = parse_consumed(payloads.events, &ignored);
  if (!head) return std::unexpected(head.error());
  const std::string_view columns = std::string_view(payloads.events).substr(*head);
  if (auto done = decoder->decode(columns, chunk.header.count, block); !done) return done;
  const auto add = [&](const std::string& payload, Status (*parse)(std::string_view, EventBatch*)) {
    return payload.empty() ? Status{} : parse(payload, block);
  };
  if (auto done = add(payloads.requested, parse_requested); !done) return done;
  if (auto done = add(payloads.details, parse_details); !done) return done;
  if (auto done = add(payloads.steps, parse_steps); !done) return done;
  out->marks_done = payloads.marks_read;
  if (out->marks_done) out->marks_done = add(payloads.marks, parse_marks);
  if (out->marks_done && !translate_marks(*ids_, shift_, &block->marks))
    out->marks_done = fail(ErrorCode::kBadInput, "marks of undefined threads");
  // Events without what was said of them are still events.
  if (!out->marks_done) block->marks.clear();
  return translate(block);
}

Status SealedLane::translate(EventBatch* block) const {
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

}  // namespace gpumemprof
