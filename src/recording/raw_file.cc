#include "recording/raw_file.h"

#include <string.h>

#include <algorithm>

namespace gpumemprof {

using namespace format;

RawFile::RawFile(File* file, const FileHeader& header, Tables* tables, uint32_t process,
                 StreamThreads* threads)
    : file_(file),
      recording_id_(header.recording_id),
      tables_(tables),
      process_(process),
      entries_(tables, process),
      threads_(threads),
      modules_(std::string(header.host, strnlen(header.host, sizeof(header.host))),
               header.realtime_ns) {}

RawStream& RawFile::stream(uint32_t id) {
  RawStream& stream = streams_[id];
  if (!stream.definitions) {
    stream.id = id;
    stream.definitions =
        std::make_unique<StreamDefinitions>(tables_, &entries_, &modules_, process_);
    stream.thread = UINT32_MAX;
  }
  return stream;
}

/// One entry for a stream; its tid and name are filled in when they are known.
void RawFile::name_thread(RawStream* stream, uint32_t tid) {
  if (stream->thread == UINT32_MAX) {
    auto [known, added] =
        threads_->try_emplace(stream->id, static_cast<uint32_t>(tables_->threads.size()));
    stream->thread = known->second;
    if (added) tables_->threads.push_back({process_, 0, {}});
  }
  Thread& thread = tables_->threads[stream->thread];
  const StreamDefinitions& known = *stream->definitions;
  if (known.has_thread()) {
    thread.tid = known.tid(), thread.name = known.thread_name();
  } else if (thread.tid == 0) {
    thread.tid = tid;
  }
}

Status RawFile::refresh() {
  if (auto done = scan_chunks(*file_, recording_id_, &index_); !done) return done;
  std::vector<StageCopy> copies;
  in_buffers_.clear();
  for (const ChunkRef& chunk : index_.chunks) {
    StageCopy copy{chunk.offset};
    if (chunk.header.type != kStage || !copy_stage(chunk, &copy)) continue;
    in_buffers_.insert(copy.stream);
    copies.push_back(std::move(copy));
  }
  if (auto done = scan_chunks(*file_, recording_id_, &index_); !done) return done;

  for (auto& [id, stream] : streams_) stream.half.reset();
  for (const ChunkRef& chunk : index_.chunks) {
    const uint16_t type = chunk.header.type;
    if (type > kFooter && !(type & kIgnorable) && taken_.try_emplace(chunk.offset).second)
      ++unknown_chunks_;
    if ((type != kRawDefinitions && type != kRawEvents) || !taken_.try_emplace(chunk.offset).second)
      continue;
    RawStream& stream = this->stream(chunk.header.stream);
    if (type == kRawEvents) {
      if (chunk.header.length != uint64_t{chunk.header.count} * sizeof(RawEvent)) {
        index_.damage.push_back(
            {chunk.offset, chunk.header.length, "a chunk whose count is wrong"});
        continue;
      }
      stream.chunks.push_back(chunk);
    } else if (auto payload = read_chunk(*file_, chunk)) {
      stream.definitions->take(*payload,
                               salt(stream.id, static_cast<uint32_t>(chunk.header.sequence)));
    } else {
      ++losses_.changed_chunks;
    }
  }
  for (const StageCopy& copy : copies) take_definitions(copy);
  if (!copies.empty()) take_halves(std::move(copies));
  for (auto& [id, stream] : streams_) {
    name_thread(&stream, 0);
    std::ranges::stable_sort(stream.chunks, {}, &ChunkRef::first_ordinal);
  }
  return {};
}

void RawFile::forget(const std::vector<ChunkRef>& chunks) {
  absl::flat_hash_set<uint64_t> offsets;
  for (const ChunkRef& chunk : chunks) {
    offsets.insert(chunk.offset);
    taken_.erase(chunk.offset);
    index_.unwritten.emplace_back(chunk.offset, chunk.end());
  }
  std::erase_if(index_.chunks,
                [&](const ChunkRef& known) { return offsets.contains(known.offset); });
}

bool RawFile::copy_stage(const ChunkRef& chunk, StageCopy* copy) {
  // A live writer may empty a half while we copy it: then what we have is older than the words say.
  for (int attempt = 0; attempt < 16; ++attempt) {
    if (copy_stage_once(chunk, copy)) return true;
  }
  ++odd_stages_;
  return false;
}

bool RawFile::copy_stage_once(const ChunkRef& chunk, StageCopy* copy) {
  StageControl before{}, after{};
  const uint64_t control = chunk.payload_offset();
  auto got = file_->read_at(control, &before, sizeof(before));
  if (!got || *got != sizeof(before)) return false;
  const uint64_t definitions = chunk.end() - kStageDefinitionBytes;
  const uint64_t room = (definitions - chunk.offset - kStageEventsOffset) / sizeof(RawEvent);
  const uint32_t count = static_cast<uint32_t>(
      std::min<uint64_t>(static_cast<uint32_t>(before.events_published), room));
  const uint32_t bytes =
      std::min(static_cast<uint32_t>(before.definitions_published), kStageDefinitionBytes);
  StageHalf& half = copy->half;
  half.records.resize(count);
  got = file_->read_at(chunk.offset + kStageEventsOffset, half.records.data(),
                       count * sizeof(RawEvent));
  if (!got) return false;
  half.records.resize(*got / sizeof(RawEvent));
  half.missing = static_cast<uint32_t>(count - half.records.size());
  copy->definitions.resize(bytes);
  got = file_->read_at(definitions, copy->definitions.data(), bytes);
  if (!got) return false;
  copy->definitions.resize(*got);
  got = file_->read_at(control, &after, sizeof(after));
  if (!got || after.events_published >> 32 != before.events_published >> 32 ||
      after.definitions_published >> 32 != before.definitions_published >> 32 ||
      after.stream != before.stream) {
    return false;
  }
  half.sequence = static_cast<uint32_t>(before.events_published >> 32);
  half.first_ordinal = before.first_ordinal[half.sequence & 1];
  copy->definitions_sequence = static_cast<uint32_t>(before.definitions_published >> 32);
  copy->stream = before.stream, copy->tid = before.tid;
  return true;
}

void RawFile::take_definitions(const StageCopy& copy) {
  if (copy.definitions.empty()) return;
  stream(copy.stream)
      .definitions->take(copy.definitions, salt(copy.stream, copy.definitions_sequence));
}

void RawFile::take_halves(std::vector<StageCopy> copies) {
  ChunksBySequence written;
  for (const auto& [id, stream] : streams_) {
    for (const ChunkRef& chunk : stream.chunks) written[{id, chunk.header.sequence}] = &chunk;
  }
  for (StageCopy& copy : copies) take_half(std::move(copy), written);
}

void RawFile::take_half(StageCopy copy, const ChunksBySequence& written) {
  StageHalf& half = copy.half;
  if (half.records.empty() && half.missing == 0) return;
  RawStream& stream = this->stream(copy.stream);
  name_thread(&stream, copy.tid);
  const StreamDefinitions& known = *stream.definitions;
  if (known.has_thread() && known.tid() != copy.tid) {  // the buffer's own words are damaged
    losses_.damaged_records += half.records.size();
    return;
  }
  if (written.contains({copy.stream, half.sequence})) return;  // the word was not bumped yet
  const auto before = written.find({copy.stream, uint64_t{half.sequence} - 1});
  if (before != written.end()) {
    half.first_ordinal = before->second->header.first_ordinal + before->second->header.count;
  }
  if (stream.half && stream.half->records.size() >= half.records.size()) return;
  stream.half = std::make_unique<StageHalf>(std::move(half));
}

uint64_t RawFile::damaged_definitions() const {
  uint64_t sum = 0;
  for (const auto& [id, stream] : streams_) sum += stream.definitions->damaged_records();
  return sum;
}

uint64_t RawFile::unknown_stacks() const {
  uint64_t sum = 0;
  for (const auto& [id, stream] : streams_) sum += stream.definitions->unknown_stacks();
  return sum;
}

}  // namespace gpumemprof
