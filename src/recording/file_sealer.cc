#include "recording/file_sealer.h"

#include <stddef.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "base/varint.h"
#include "format/checksum.h"
#include "recording/missing_events.h"
#include "recording/sealed_marks.h"

namespace gpumemprof {

using namespace format;

namespace {

constexpr size_t kMostDefinitionChunks = 64, kMostDefinitionChunksAtEnd = 8;

uint64_t place_bytes(const std::vector<ChunkRef>& chunks) {
  uint64_t bytes = 0;
  for (const ChunkRef& chunk : chunks) bytes += chunk.end() - chunk.offset;
  return bytes;
}

bool is_definitions(const ChunkRef& chunk) {
  return chunk.header.type == kSealedDefinitions || chunk.header.type == kSealedDeviceNames;
}

}  // namespace

Result<std::unique_ptr<FileSealer>> FileSealer::open(File* file, FileSealOptions options) {
  std::unique_ptr<FileSealer> self(new FileSealer(file, options));
  if (auto done = self->load(); !done) return std::unexpected(done.error());
  return self;
}

/// Everything is read from the file, so a sealer that begins again after its own death goes on
/// exactly where the last whole chunk ended.
Status FileSealer::load() {
  auto header = read_file_header(*file_);
  if (!header) return std::unexpected(header.error());
  header_ = *header;
  tables_ = std::make_unique<Tables>();
  tables_->processes.emplace_back();
  sealed_ = std::make_unique<SealedFile>(file_, tables_.get(), 0);
  raw_ =
      std::make_unique<RawFile>(file_, header_, tables_.get(), 0, &sealed_->ids().thread_of_stream);
  if (auto done = scan_chunks(*file_, header_.recording_id, &raw_->index()); !done) return done;
  sealed_->take(raw_->index().chunks);
  // Damage may have been a sealed chunk: going on would give its ids to other things.
  const bool may_lack_sealed = !sealed_->events().empty() && !raw_->index().damage.empty();
  // A new footer would say that what is left is all.
  if (!sealed_->footer() && read_finished(*file_, header_.recording_id)) {
    return fail(ErrorCode::kBadInput, file_->path() + ": its end is missing; left as it is");
  }
  if (!sealed_->ids().are_the_same() || !sealed_->losses().damage.empty() || may_lack_sealed) {
    return fail(ErrorCode::kBadInput,
                file_->path() + ": its sealed part is damaged; left as it is");
  }
  for (const ChunkRef& chunk : raw_->index().chunks) own_[chunk.offset] = true;
  const FileIds& ids = sealed_->ids();
  defined_ = {static_cast<uint32_t>(ids.strings.size()), static_cast<uint32_t>(ids.frames.size()),
              static_cast<uint32_t>(ids.stacks.size()), static_cast<uint32_t>(ids.threads.size()),
              static_cast<uint32_t>(ids.devices.size())};
  consumed_ = sealed_->consumed();
  events_ = sealed_->events(), checkpoints_ = sealed_->checkpoints();
  const Companions& companions = sealed_->companions();
  requested_.clear(), details_.clear(), steps_.clear(), marks_.clear(), standing_.clear();
  for (const auto& [first, chunk] : companions.requested) requested_.push_back(chunk);
  for (const auto& [first, chunk] : companions.details) details_.push_back(chunk);
  for (const auto& [first, chunk] : companions.steps) steps_.push_back(chunk);
  for (const auto& [first, chunk] : companions.marks) marks_.push_back(chunk);
  for (const auto& [first, chunk] : companions.standing) standing_.push_back(chunk);
  definitions_.clear();
  for (const ChunkRef& chunk : raw_->index().chunks) {
    if (is_definitions(chunk)) definitions_.push_back(chunk);
  }
  allocators_ = encode_allocators(*tables_);
  next_sequence_ = sealed_->next_sequence();
  next_event_ = sealed_->event_count();
  state_ =
      std::make_unique<LiveState>(sealed_->state_before() ? *sealed_->state_before() : LiveState{});
  said_ = {};
  EventBatch batch;
  if (auto done = sealed_->read_marks_before(&batch); !done) return done;
  said_.apply(batch);
  for (const ChunkRef& chunk : events_) {
    if (auto done = sealed_->read_events(chunk, &batch); !done) return done;
    batch.first_event = chunk.header.first_ordinal;
    state_->apply(batch);
    said_.apply(batch);
    last_time_ns_ = chunk.header.time_last_ns;
  }
  return {};
}

Result<ChunkRef> FileSealer::write(ChunkHeader header, const std::string& payload) {
  header.sequence = next_sequence_;
  auto chunk = writer_->write(header, payload);
  if (!chunk) return chunk;
  ++next_sequence_;
  own_[chunk->offset] = true;
  return chunk;
}

Status FileSealer::write_definitions(DefinedSoFar from) {
  DefinedSoFar upto = from;
  std::string payload = encode_definitions(*tables_, sealed_->ids().thread_of_stream, &upto);
  if (payload.empty()) return {};
  ChunkHeader header{};
  if (std::string names = encode_device_names(*tables_, from.devices); !names.empty()) {
    header.type = kSealedDeviceNames;
    auto chunk = write(header, names);
    if (!chunk) return std::unexpected(chunk.error());
    definitions_.push_back(*chunk);
  }
  header.type = kSealedDefinitions;
  header.flags = from == DefinedSoFar{} ? kAllDefinitions : 0;
  auto chunk = write(header, payload);
  if (!chunk) return std::unexpected(chunk.error());
  definitions_.push_back(*chunk);
  defined_ = upto;
  return file_->sync();  // power may be lost: no events without their names
}

/// A chunk takes a page at least, and a program that starts threads defines some at each step.
Status FileSealer::merge_definitions(size_t most_chunks) {
  uint64_t bytes = 0, largest = 0;
  for (const ChunkRef& chunk : definitions_) {
    bytes += chunk.header.length, largest = std::max(largest, chunk.end() - chunk.offset);
  }
  // Twice the largest, so that what was merged is not written again for a little more.
  if (definitions_.size() <= most_chunks || place_bytes(definitions_) < 2 * largest ||
      bytes > kMaxChunkBytes / 2) {
    return {};
  }
  const std::vector<ChunkRef> before = std::exchange(definitions_, {});
  if (auto done = write_definitions({}); !done) return definitions_ = before, done;
  for (const ChunkRef& chunk : before) {
    if (auto given = punch(chunk.offset, chunk.end()); !given) return given;
  }
  return {};
}

/// What was learnt of the allocators since the last time.
Status FileSealer::write_allocators() {
  std::string payload = encode_allocators(*tables_);
  if (payload == allocators_) return {};
  ChunkHeader header{};
  header.type = kSealedAllocators;
  if (auto chunk = write(header, payload); !chunk) return std::unexpected(chunk.error());
  allocators_ = std::move(payload);
  return {};
}

/// Before its events, so that these are never there without it. A sealer that died between the two
/// left one without events: then the batch that takes its number has one too, an empty one even, as
/// the last one counts.
Status FileSealer::write_companion(ChunkType type, size_t count, const EventBatch& batch,
                                   std::string (*encode)(const EventBatch&),
                                   std::vector<ChunkRef>* written) {
  const bool is_taken = !written->empty() && written->back().header.first_ordinal >= next_event_;
  if (count == 0 && !is_taken) return {};
  ChunkHeader header{};
  header.type = type;
  header.count = static_cast<uint32_t>(count);
  header.first_ordinal = next_event_;
  auto chunk = write(header, encode(batch));
  if (!chunk) return std::unexpected(chunk.error());
  written->push_back(*chunk);
  return file_->sync();  // as with definitions
}

/// As write_companion; also of a batch without events, which ends the file.
Status FileSealer::write_marks(const EventBatch& batch, uint64_t time_ns) {
  const bool is_taken = !marks_.empty() && marks_.back().header.first_ordinal >= next_event_;
  if (batch.marks.empty() && !is_taken) return {};
  ChunkHeader header{};
  header.type = kMarks;
  header.count = static_cast<uint32_t>(batch.marks.size());
  header.first_ordinal = next_event_;
  header.time_first_ns = header.time_last_ns = time_ns;
  const std::string payload = encode_marks(batch);
  if (batch.marks.size() > kMostMarks || payload.size() > kMaxChunkBytes) {
    return fail(ErrorCode::kUnsupported,
                file_->path() + ": more marks between two events than can be sealed");
  }
  auto chunk = write(header, payload);
  if (!chunk) return std::unexpected(chunk.error());
  marks_.push_back(*chunk);
  return file_->sync();
}

/// What a reader needs of the marks before, where it has only those from a checkpoint on.
Status FileSealer::write_standing_marks() {
  EventBatch standing;
  standing.marks = said_.now();
  if (standing.marks.empty() || standing.marks.size() > kMostMarks) return {};
  const std::string payload = encode_marks(standing);
  if (payload.size() > kMaxChunkBytes) return {};
  ChunkHeader header{};
  header.type = kMarks;
  header.flags = kStandingMarks;
  header.count = static_cast<uint32_t>(standing.marks.size());
  header.first_ordinal = next_event_;
  header.time_first_ns = header.time_last_ns = last_time_ns_;
  auto chunk = write(header, payload);
  if (!chunk) return std::unexpected(chunk.error());
  standing_.push_back(*chunk);
  return {};
}

Status FileSealer::write_events(EventBatch* batch, const ConsumedTable& consumed) {
  if (auto done = write_definitions(defined_); !done) return done;
  if (auto done = write_allocators(); !done) return done;
  auto done = write_companion(kSealedRequested, batch->requested.size(), *batch, encode_requested,
                              &requested_);
  if (done) {
    done =
        write_companion(kSealedDetails, batch->details.size(), *batch, encode_details, &details_);
  }
  if (done) done = write_companion(kSealedSteps, batch->step.size(), *batch, encode_steps, &steps_);
  if (done) done = write_marks(*batch, batch->time_ns.front());
  if (!done) return done;
  std::string payload;
  put_consumed(&payload, consumed);
  encoder_.encode(*batch, &payload);
  ChunkHeader header{};
  header.type = kSealedEvents;
  header.count = static_cast<uint32_t>(batch->size());
  header.first_ordinal = next_event_;
  header.time_first_ns = batch->time_ns.front(), header.time_last_ns = batch->time_ns.back();
  auto chunk = write(header, payload);
  if (!chunk) return std::unexpected(chunk.error());
  events_.push_back(*chunk);
  for (const auto& [stream, list] : consumed) consumed_[stream].add(list);
  batch->first_event = next_event_;
  next_event_ += batch->size(), events_sealed_ += batch->size();
  state_->apply(*batch);
  said_.apply(*batch);
  last_time_ns_ = batch->time_ns.back();
  since_checkpoint_ += batch->size() * sizeof(RawEvent);
  if (options_.checkpoint_bytes != 0 && since_checkpoint_ >= options_.checkpoint_bytes)
    return write_checkpoint();
  return {};
}

Status FileSealer::write_checkpoint() {
  if (auto done = write_standing_marks(); !done) return done;
  // It says that all before it is sealed, so that must be on the disk first.
  if (auto done = file_->sync(); !done) return done;
  std::string payload, body;
  put_consumed(&payload, consumed_);
  state_->serialise(&body);
  put_compressed(&payload, body);
  // With many millions of live blocks it does not fit; then this one is left out. Only --max-disk
  // needs it, to drop what lies before.
  since_checkpoint_ = 0;
  if (payload.size() > kMaxChunkBytes) return {};
  ChunkHeader header{};
  header.type = kCheckpoint;
  header.first_ordinal = next_event_;
  auto chunk = write(header, payload);
  if (!chunk) return std::unexpected(chunk.error());
  checkpoints_.push_back(*chunk);
  return {};
}

/// What the last batch took from each lane. Gaps between chunks are not taken: they stay missing.
ConsumedTable FileSealer::newly_consumed(Merger* merger) {
  ConsumedTable table;
  for (size_t i = 0; i < merger->lane_count(); ++i) {
    const auto& lane = static_cast<const RawLane&>(merger->lane(i));
    const uint64_t from = lane_position_[i],
                   to = lane.ordinal_after(merger->taken(i), merger->marks_taken(i));
    if (to <= from) continue;
    lane_position_[i] = to;
    const Intervals taken = lane_sources_[i].within(from, to);
    if (taken.size() != 0) table[lane.stream().id].add(taken);
  }
  return table;
}

Status FileSealer::seal_until(uint64_t end_time_ns,
                              const std::function<void(double)>& on_progress) {
  if (auto done = raw_->refresh(); !done) return done;
  for (const ChunkRef& chunk : raw_->index().chunks) {
    const uint16_t type = chunk.header.type;
    if (!is_sealed(type) || own_.contains(chunk.offset)) continue;
    if (auto done = load(); !done)
      return done;  // another sealer was here: begin again from the file
    if (auto done = raw_->refresh(); !done) return done;
    break;
  }
  writer_->begin_at(round_to_page(raw_->index().scanned_end));
  Merger merger;
  lane_position_.clear(), lane_sources_.clear();
  for (auto& [id, stream] : raw_->streams()) {
    stream.consumed = consumed_[id];
    std::erase_if(stream.chunks, [&](const ChunkRef& chunk) { return is_consumed(chunk); });
    if (stream.chunks.empty() && !stream.half) continue;
    lane_sources_.push_back(sources_of(stream));
    merger.add(std::make_unique<RawLane>(file_, &stream, 0, &raw_->losses()));
    lane_position_.push_back(0);
  }
  const uint64_t written = std::max<uint64_t>(read_file_counts(*file_).written_events, 1);
  EventBatch batch;
  while (merger.next(&batch, end_time_ns)) {
    if (on_progress) on_progress(std::min(1.0, static_cast<double>(next_event_) / written));
    if (batch.size() == 0) {  // after the last event; they go with the next one, where one comes
      if (end_time_ns != kNoTime) break;
      if (auto done = write_definitions(defined_); !done) return done;  // their texts
      return write_marks(batch, last_time_ns_);
    }
    if (auto done = write_events(&batch, newly_consumed(&merger)); !done) return done;
  }
  return {};
}

Status FileSealer::advance(uint64_t end_time_ns, bool all, bool is_short) {
  if (finished()) return {};
  auto size = file_->size();
  if (!size) return std::unexpected(size.error());
  const uint64_t written = raw_bytes_written();
  const uint64_t growth = std::max(*size - std::min(*size, sealed_end_),
                                   written - std::min(written, sealed_raw_));
  const bool has_stopped = growth != 0 && growth == std::exchange(growth_, growth);
  const uint64_t enough = is_short ? options_.gather_bytes / 4 : options_.gather_bytes;
  if (!all && growth < enough && !(is_short && has_stopped)) return {};
  writer_ = std::make_unique<ChunkWriter>(file_, header_.recording_id, true);
  if (auto done = seal_until(end_time_ns); !done) return done;
  if (auto done = merge_definitions(kMostDefinitionChunks); !done) return done;
  if (auto done = give_back(false); !done) return done;
  size = file_->size();
  if (size) sealed_end_ = *size;
  sealed_raw_ = written, growth_ = 0;
  return {};
}

Status FileSealer::finish(const std::function<void(double)>& on_progress) {
  if (finished()) return {};
  writer_ = std::make_unique<ChunkWriter>(file_, header_.recording_id, false);
  if (auto done = seal_until(kNoTime, on_progress); !done) return done;
  if (auto done = write_allocators(); !done) return done;  // also where no event came after
  if (auto done = merge_definitions(kMostDefinitionChunksAtEnd); !done) return done;
  if (auto done = file_->sync(); !done) return done;       // as before a checkpoint
  auto page = read_first_page(*file_);
  if (!page) return std::unexpected(page.error());
  Footer footer{header_, page->state, next_event_, {}};
  footer.lost.damaged_records = raw_->losses().damaged_records;
  for (const Damage& damage : raw_->index().damage) footer.lost.damaged_bytes += damage.bytes;
  // All that was there is sealed by now.
  const uint64_t sealed_since = next_event_ - sealed_->event_count();
  const MissingEvents missing = missing_events(*file_, *page, *sealed_, *raw_, sealed_since);
  const uint64_t told_by_numbers = sealed_->losses().missing_events;
  footer.lost.missing_events = missing.events - std::min(missing.events, told_by_numbers);
  footer.lost.is_open_ended = !missing.uncounted.empty();
  ChunkHeader header{};
  header.type = kFooter;
  if (auto chunk = write(header, encode_footer(footer)); !chunk)
    return std::unexpected(chunk.error());
  finished_ = true;
  if (auto done = give_back(true); !done) return done;
  if (auto done = empty_pool(); !done) return done;
  auto size = file_->size();
  if (!size) return std::unexpected(size.error());
  return write_finished(*file_, header_.recording_id, *size, next_event_);
}

Status FileSealer::punch(uint64_t offset, uint64_t end) {
  auto given = file_->punch(offset, end - offset);
  if (!given) return std::unexpected(given.error());
  auto added = file_->add_at(kStateOffset + offsetof(FileState, reclaimed_bytes), *given);
  if (!added) return std::unexpected(added.error());
  return {};
}

bool FileSealer::is_consumed(const ChunkRef& chunk) const {
  const uint64_t first = chunk.header.first_ordinal, count = chunk.header.count;
  auto known = consumed_.find(chunk.header.stream);
  return known != consumed_.end() && known->second.covered(first, first + count) == count;
}

/// Those that nobody could write to at this step and the one before, as one that is beginning seems
/// to be; all of their events are sealed, and no other stream needs their definitions.
absl::flat_hash_set<uint32_t> FileSealer::streams_that_ended() {
  absl::flat_hash_set<uint32_t> quiet, needed, ended;
  if (read_file_state(*file_).unshared) return ended;
  for (const ChunkRef& chunk : raw_->index().chunks) {
    const uint32_t stream = chunk.header.stream;
    if (chunk.header.type == kRawEvents && !is_consumed(chunk)) needed.insert(stream);
    if (chunk.header.type == kRawDefinitions && !given_back_.contains(chunk.offset) &&
        !raw_->is_in_buffer(stream) && !raw_->stream(stream).definitions->has_shared()) {
      quiet.insert(stream);
    }
  }
  for (const uint32_t stream : quiet) {
    if (quiet_.contains(stream) && !needed.contains(stream)) ended.insert(stream);
  }
  quiet_ = std::move(quiet);
  return ended;
}

/// Raw events that are wholly in sealed chunks, and definitions that only they needed. Other
/// definitions and buffers only when nobody writes any more.
Status FileSealer::give_back(bool everything_raw) {
  absl::flat_hash_set<uint32_t> ended;
  if (!everything_raw) ended = streams_that_ended();
  if (!ended.empty()) {
    if (auto done = write_definitions(defined_); !done) return done;
  }
  if (auto done = file_->sync(); !done) return done;  // the sealed copy first
  const bool reuse = options_.reuse_places && !everything_raw && !read_file_state(*file_).unshared;
  std::vector<ChunkRef> again;
  for (const ChunkRef& chunk : raw_->index().chunks) {
    const uint16_t type = chunk.header.type;
    bool gone = everything_raw && (type == kRawDefinitions || type == kStage);
    if (type == kRawEvents) gone = is_consumed(chunk);
    if (type == kRawDefinitions && ended.contains(chunk.header.stream)) gone = true;
    if (!gone || !given_back_.try_emplace(chunk.offset).second) continue;
    const bool fits = type == kRawEvents && chunk.end() - chunk.offset == kEventsPlaceBytes;
    if (reuse && fits && again.size() < std::size(PlacePool{}.offsets)) {
      again.push_back(chunk);
    } else if (auto done = punch(chunk.offset, chunk.end()); !done) {
      return done;
    }
  }
  return again.empty() ? Status{} : offer_again(std::move(again));
}

/// First "never written", on the disk too, so that no old header comes back over new events; then
/// the writer may have it.
Status FileSealer::offer_again(std::vector<ChunkRef> places) {
  const ChunkHeader none{};
  raw_->forget(places);
  for (const ChunkRef& chunk : places) {
    own_.erase(chunk.offset), given_back_.erase(chunk.offset);
    if (auto done = file_->write_at(chunk.offset, &none, sizeof(none)); !done) return done;
  }
  if (auto done = file_->sync(); !done) return done;
  PlacePool pool{};
  auto got = file_->read_at(kPoolOffset, &pool, sizeof(pool));
  if (!got || *got != sizeof(pool)) pool = {};
  size_t slot = 0;
  for (const ChunkRef& chunk : places) {
    while (slot < std::size(pool.offsets) && pool.offsets[slot] != 0) ++slot;
    if (slot == std::size(pool.offsets)) {
      if (auto done = punch(chunk.offset, chunk.end()); !done) return done;
      continue;
    }
    const uint64_t at = kPoolOffset + offsetof(PlacePool, offsets) + 8 * slot++;
    if (auto added = file_->add_at(at, chunk.offset); !added) return std::unexpected(added.error());
  }
  return {};
}

/// Of a writer that is gone. An offset that lies in a chunk is not believed.
Status FileSealer::empty_pool() {
  PlacePool pool{};
  auto got = file_->read_at(kPoolOffset, &pool, sizeof(pool));
  if (!got || *got != sizeof(pool)) return {};
  // Nothing is offered in most files, and the scan reads all of it.
  if (std::ranges::all_of(pool.offsets, [](uint64_t offset) { return offset == 0; })) return {};
  FileIndex index;
  if (auto done = scan_chunks(*file_, header_.recording_id, &index); !done) return done;
  for (uint64_t offset : pool.offsets) {
    const uint64_t end = offset + kEventsPlaceBytes;
    auto overlaps = [&](const ChunkRef& chunk) {
      return chunk.offset < end && offset < chunk.end();
    };
    if (offset < kPage || offset % kPage != 0 || end < offset) continue;
    if (std::any_of(index.chunks.begin(), index.chunks.end(), overlaps)) continue;
    if (auto done = punch(offset, end); !done) return done;
  }
  return {};
}

uint64_t FileSealer::raw_bytes_written() {
  uint64_t bytes = 0;
  auto got = file_->read_at(kPoolOffset + offsetof(PlacePool, raw_bytes), &bytes, sizeof(bytes));
  return got && *got == sizeof(bytes) ? bytes : 0;
}

uint64_t FileSealer::lasting_bytes() {
  uint64_t bytes = 2 * kPage + place_bytes(definitions_);  // the first page and the footer
  for (const auto* list : of_events()) bytes += place_bytes(*list);
  const uint64_t written = finished() ? 0 : raw_bytes_written();
  return bytes + (written - std::min(written, sealed_raw_)) / kLeastGain;
}

Result<uint64_t> FileSealer::drop_oldest(uint64_t bytes) {
  uint64_t freed = 0;
  const ChunkRef* keep = nullptr;
  const auto lists = of_events();
  std::vector<size_t> next(lists.size());
  for (const ChunkRef& checkpoint : checkpoints_) {
    if (checkpoint.header.first_ordinal == 0) continue;
    if (freed >= bytes) break;
    for (size_t i = 0; i < lists.size(); ++i) {
      for (; next[i] < lists[i]->size(); ++next[i]) {
        const ChunkRef& chunk = (*lists[i])[next[i]];
        if (chunk.first_ordinal() >= checkpoint.first_ordinal()) break;
        freed += chunk.end() - chunk.offset;
      }
    }
    keep = &checkpoint;
  }
  if (!keep || freed == 0) return uint64_t{0};
  // First the checkpoint says that what is before it was dropped, then it is.
  ChunkRef flagged = *keep;
  auto payload = read_chunk(*file_, flagged);
  if (!payload) return std::unexpected(payload.error());
  flagged.header.flags |= kEventsBeforeDropped;
  flagged.header.crc32c = chunk_crc(flagged.header, payload->data());
  if (auto done = file_->write_at(flagged.offset, &flagged.header, sizeof(ChunkHeader)); !done) {
    return std::unexpected(done.error());
  }
  if (auto done = file_->sync(); !done) return std::unexpected(done.error());
  const uint64_t first = flagged.header.first_ordinal;
  auto is_before = [&](const ChunkRef& chunk) { return chunk.header.first_ordinal < first; };
  for (auto* list : lists) {
    for (const ChunkRef& chunk : *list) {
      if (!is_before(chunk)) continue;
      if (auto done = punch(chunk.offset, chunk.end()); !done) return std::unexpected(done.error());
    }
    std::erase_if(*list, is_before);
  }
  return freed;
}

}  // namespace gpumemprof
