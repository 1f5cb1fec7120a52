#include "recording/chunk_writer.h"

#include <stddef.h>

#include "format/checksum.h"

namespace gpumemprof {

using namespace format;

namespace {

constexpr uint64_t kNextOffset = kStateOffset + offsetof(FileState, next_offset);
// Places that a live probe has claimed and not written lie between the end of the file and the next
// place.
constexpr uint64_t kMostInFlight = uint64_t{4} << 30;

}  // namespace

ChunkWriter::ChunkWriter(File* file, uint64_t recording_id, bool live)
    : file_(file), recording_id_(recording_id), live_(live) {}

Result<uint64_t> ChunkWriter::claim(uint64_t bytes) {
  auto size = file_->size();
  if (!size) return std::unexpected(size.error());
  const uint64_t end = round_to_page(*size);
  if (live_) {
    auto place = file_->add_at(kNextOffset, bytes);
    if (!place) return place;
    if (*place < kPage || *place % kPage != 0 || *place > end + kMostInFlight) {
      return fail_at(kNextOffset, file_->path() + ": the next free place is impossible");
    }
    return place;
  }
  uint64_t place = std::max(end, end_);
  end_ = place + bytes;
  return place;
}

Result<ChunkRef> ChunkWriter::write(ChunkHeader header, std::string_view payload) {
  if (payload.size() > kMaxChunkBytes) {
    return fail(ErrorCode::kSystem,
                file_->path() + ": a chunk would be larger than the format allows");
  }
  header.magic = kChunkMagic;
  header.length = static_cast<uint32_t>(payload.size());
  header.recording_id = recording_id_;
  header.crc32c = 0;
  ChunkHeader reserved{};
  reserved.magic = kChunkMagic;
  reserved.type = kZero;
  reserved.length = header.length;
  reserved.recording_id = recording_id_;
  reserved.crc32c = chunk_crc(reserved, nullptr);
  header.crc32c = chunk_crc(header, payload.data());

  auto place = claim(round_to_page(sizeof(header) + payload.size()));
  if (!place) return std::unexpected(place.error());
  Status done = file_->write_at(*place, &reserved, sizeof(reserved));
  if (done) done = file_->write_at(*place + sizeof(header), payload.data(), payload.size());
  if (done) done = file_->write_at(*place, &header, sizeof(header));
  if (!done) {
    (void)file_->punch(*place, round_to_page(sizeof(header) + payload.size()));
    return std::unexpected(done.error());
  }
  return ChunkRef{*place, header};
}

}  // namespace gpumemprof
