#include "recording/samples_writer.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "format/checksum.h"

namespace gpumemprof {

using namespace format;

namespace {

constexpr size_t kLeastPlaces = 3;  // a whole chunk, and the two of the growing one
static_assert(kMostSampleChunkBytes + sizeof(ChunkHeader) <= kSamplesPlaceBytes);

FileHeader header_of(const SamplesOrigin& origin) {
  FileHeader header{};
  memcpy(header.magic, kFileMagic, sizeof header.magic);
  header.major = kMajor, header.minor = kMinor;
  header.header_bytes = kPage;
  header.pid = origin.pid, header.parent_pid = origin.parent_pid;
  header.start_ticks = origin.start_ticks;
  header.monotonic_ns = origin.monotonic_ns, header.realtime_ns = origin.realtime_ns;
  origin.host.copy(header.host, sizeof header.host - 1);
  origin.boot_id.copy(header.boot_id, sizeof header.boot_id - 1);
  if (getrandom(&header.recording_id, sizeof header.recording_id, GRND_NONBLOCK) < 0)
    header.recording_id = header.realtime_ns ^ uint64_t { header.pid } << 32;
  header.crc32c = header_crc(header);
  return header;
}

}  // namespace

Result<SamplesWriter> SamplesWriter::create(const std::string& folder, const SamplesOrigin& origin,
                                            uint64_t most_bytes) {
  const FileHeader header = header_of(origin);
  const std::string path = folder + '/' + header.host + '.' + std::to_string(header.pid) + '.' +
                           std::to_string(header.start_ticks) + kSamplesSuffix;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return fail(ErrorCode::kSystem, path + ": " + strerror(errno));
  close(fd);
  auto file = open_file(path, FileMode::kReadWrite);
  if (!file) return std::unexpected(file.error());
  std::string page(kPage, '\0');
  memcpy(page.data(), &header, sizeof header);
  if (auto done = (*file)->write_at(0, page.data(), page.size()); !done)
    return std::unexpected(done.error());
  return SamplesWriter(std::move(*file), header.recording_id, most_bytes);
}

/// A place that holds nothing that counts: the growing chunk's other one, a new one, or where there
/// is no room left on the disk the oldest chunk's.
size_t SamplesWriter::place_for_next() {
  uint64_t pages = 1;
  size_t oldest = SIZE_MAX;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].is_free) return i;
    pages += places_[i].pages;
    if (i != current_ && (oldest == SIZE_MAX || places_[i].sequence < places_[oldest].sequence))
      oldest = i;
  }
  const bool is_full = most_bytes_ != 0 && (pages + 1) * kPage > most_bytes_;
  if (is_full && places_.size() >= kLeastPlaces && oldest != SIZE_MAX) return oldest;
  places_.push_back({kPage + places_.size() * kSamplesPlaceBytes, 0, 0, true});
  return places_.size() - 1;
}

Status SamplesWriter::write_chunk(size_t place) {
  const std::string payload = chunk_.payload();
  if (payload.size() > kMostSampleChunkBytes)
    return fail(ErrorCode::kSystem, file_->path() + ": a sample is too large");
  ChunkHeader header{};
  header.magic = kChunkMagic;
  header.type = kDeviceSamples;
  header.length = static_cast<uint32_t>(payload.size());
  header.recording_id = recording_id_;
  header.sequence = sequence_;
  header.time_first_ns = chunk_.first_time_ns(), header.time_last_ns = chunk_.last_time_ns();
  header.count = static_cast<uint32_t>(chunk_.samples());
  header.first_ordinal = first_ordinal_;
  header.crc32c = chunk_crc(header, payload.data());

  Place& at = places_[place];
  const uint64_t pages = round_to_page(sizeof header + payload.size()) / kPage;
  // "Never written" first and the header last, as everywhere; nothing of an older chunk stays
  // behind this one.
  std::string zeros(std::max<uint64_t>(1, at.pages > pages ? at.pages : 1) * kPage, '\0');
  at.is_free = true;
  Status done = file_->write_at(at.offset, zeros.data(), zeros.size());
  if (done) done = file_->write_at(at.offset + sizeof header, payload.data(), payload.size());
  if (done) done = file_->write_at(at.offset, &header, sizeof header);
  if (!done) return done;
  at.sequence = sequence_, at.pages = std::max(pages, at.pages), at.is_free = false;
  return {};
}

Status SamplesWriter::add(const TakenSample& sample) {
  if (!chunk_.add(sample)) {
    // What has gathered is whole where it stands.
    first_ordinal_ += chunk_.samples();
    ++sequence_;
    chunk_.clear();
    current_ = SIZE_MAX;
    if (!chunk_.add(sample)) {
      ++first_ordinal_;  // counted: a reader sees the gap
      return fail(ErrorCode::kSystem, file_->path() + ": a sample has too many values");
    }
  }
  const size_t place = place_for_next();
  if (auto done = write_chunk(place); !done) return done;
  if (current_ != SIZE_MAX) places_[current_].is_free = true;  // the shorter copy
  current_ = place;
  return {};
}

}  // namespace gpumemprof
