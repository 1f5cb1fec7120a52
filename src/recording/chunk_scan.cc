#include "recording/chunk_scan.h"

#include <string.h>

#include <algorithm>

#include "format/checksum.h"

namespace gpumemprof {
namespace {

using namespace format;

constexpr size_t kWindow = 256 * 1024;

bool all_zero(const uint8_t* p, size_t n) {
  return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/// Control page, at least one page of events, definitions.
bool has_stage_size(const ChunkRef& chunk) {
  const uint64_t bytes = chunk.end() - chunk.offset;
  return bytes >= kStageEventsOffset + kPage + kStageDefinitionBytes && bytes <= kMaxStageBytes;
}

/// Reads a file through one buffer; chunks are long, so a window is read once for many small looks.
class Window {
 public:
  explicit Window(File& file) : file_(file), buffer_(kWindow) {}
  /// `size` (at most a page) bytes at `offset`, less at the end of the file; null where reading
  /// fails.
  const uint8_t* at(uint64_t offset, size_t size, size_t* got) {
    if (offset < begin_ || offset + size > begin_ + filled_) {
      auto n = file_.read_at(offset, buffer_.data(), buffer_.size());
      if (!n) return error_ = n.error(), nullptr;
      begin_ = offset, filled_ = *n;
    }
    *got = std::min<size_t>(size, filled_ - std::min<size_t>(filled_, offset - begin_));
    return buffer_.data() + (offset - begin_);
  }
  const Error& error() const { return error_; }
  void forget() { filled_ = 0; }

 private:
  File& file_;
  std::vector<uint8_t> buffer_;
  uint64_t begin_ = 0;
  size_t filled_ = 0;
  Error error_;
};

/// One pass over [at, end). Pages are the unit of recovery: after damage the next page is tried.
///
/// A writer may be at work. It writes a chunk's pages in order and the header last, and each page
/// is read at some time between: zeros of the first pages may come before the payload of the last
/// ones, and a chunk may end beyond the size that the file had. So nothing is damage before a
/// second look.
class Scanner {
 public:
  Scanner(File& file, uint64_t recording_id, uint64_t file_size, FileIndex* index)
      : file_(file), window_(file), id_(recording_id), file_size_(file_size), index_(index) {}

  /// The end of the last chunk in the file, which may be beyond the `end` of its scan.
  uint64_t reached() const { return reached_; }

  Status scan(uint64_t at, uint64_t end) {
    in_damage_ = in_unfinished_ = false;
    while (at < end) {
      uint64_t data = file_.next_data(at, file_size_) & ~uint64_t{kPage - 1};
      if (data > at) {
        leave_unwritten(at, std::min(data, end));
        at = data;
        continue;
      }
      size_t got = 0;
      const uint8_t* page = window_.at(at, kPage, &got);
      if (!page) return std::unexpected(window_.error());
      if (got == 0) break;
      at = look(at, page, got);
    }
    return {};
  }

 private:
  /// Judges one page, answers where to look next.
  uint64_t look(uint64_t at, const uint8_t* page, size_t got) {
    if (all_zero(page, std::min<size_t>(got, sizeof(ChunkHeader)))) {
      bool empty = all_zero(page, got);
      // A writer puts the payload first and the header last: without a header nothing was written.
      in_unfinished_ = !empty;
      in_damage_ = false;
      leave_unwritten(at, at + got);
      return at + kPage;
    }
    ChunkHeader header{};
    memcpy(&header, page, std::min(got, sizeof(header)));
    if (got < sizeof(header) || header.magic != kChunkMagic) {
      if (in_unfinished_) return leave_unwritten(at, at + got), at + kPage;
      return damaged(at, got, "not a chunk");
    }
    in_unfinished_ = false;
    if (header.recording_id != id_) return damaged(at, got, "a chunk of another recording");
    if (header.length > kMaxChunkBytes)
      return damaged(at, got, "a chunk with an impossible length");
    ChunkRef chunk{at, header};
    if (header.type == kZero ||
        header.type == kStage) {  // reserved by the sealer, or a thread's buffer
      if (chunk_crc(header, nullptr) != header.crc32c)
        return damaged(at, got, "a damaged chunk header");
      if (header.type == kZero) leave_unwritten(at, std::min(chunk.end(), file_size_));
      if (header.type == kStage && !has_stage_size(chunk)) {
        return damaged(at, got, "a buffer of the wrong length");
      }
      if (header.type == kStage) index_->chunks.push_back(chunk);
      return go_on_after(chunk);
    }
    if (ends_within(chunk)) return damaged(at, got, "the file ends within a chunk");
    if (!crc_is_right(chunk)) {
      // Every page may claim to be a long chunk; when that has made us read the file a few times
      // over, its lengths are believed, so that the time stays linear.
      wasted_bytes_ += header.length;
      if (wasted_bytes_ <= 4 * file_size_) return damaged(at, got, "a chunk with a wrong CRC");
      add_damage(at, got, "a chunk with a wrong CRC");
      return chunk.end();
    }
    index_->chunks.push_back(chunk);
    return go_on_after(chunk);
  }

  uint64_t go_on_after(const ChunkRef& chunk) {
    in_damage_ = false;
    reached_ = std::max(reached_, chunk.end());
    return chunk.end();
  }

  bool ends_within(const ChunkRef& chunk) {
    const uint64_t end = chunk.payload_offset() + chunk.header.length;
    if (end <= file_size_) return false;
    if (auto now = file_.size(); now && *now > file_size_) file_size_ = *now;
    return end > file_size_;
  }

  bool crc_is_right(const ChunkRef& chunk) {
    ChunkHeader header = chunk.header;
    header.crc32c = 0;
    uint32_t crc = crc32c(0, &header, sizeof(header));
    uint64_t at = chunk.payload_offset(), end = at + header.length;
    payload_.resize(std::min<uint64_t>(header.length, kWindow));
    while (at < end) {
      auto n = file_.read_at(at, payload_.data(), std::min<uint64_t>(payload_.size(), end - at));
      if (!n || *n == 0) return false;
      crc = crc32c(crc, payload_.data(), *n);
      at += *n;
    }
    return crc == chunk.header.crc32c;
  }

  /// Where to go on. The first time that is where to look again: what had not been written before
  /// `at` may have been meanwhile.
  uint64_t damaged(uint64_t at, uint64_t bytes, const char* reason) {
    if (!in_damage_ && at > looked_again_) {
      looked_again_ = at;
      window_.forget();
      auto& ranges = index_->unwritten;
      if (ranges.empty() || ranges.back().second != at) return at;
      const uint64_t from = ranges.back().first;
      ranges.pop_back();
      return from;
    }
    add_damage(at, bytes, reason);
    return at + kPage;
  }

  /// One range, and one reason, for as long as nothing readable comes between.
  void add_damage(uint64_t at, uint64_t bytes, const char* reason) {
    if (in_damage_) {
      index_->damage.back().bytes = at + bytes - index_->damage.back().offset;
    } else {
      index_->damage.push_back({at, bytes, reason});
    }
    in_damage_ = true;
  }

  void leave_unwritten(uint64_t from, uint64_t to) {
    auto& ranges = index_->unwritten;
    if (!ranges.empty() && ranges.back().second == from) {
      ranges.back().second = to;
    } else if (from < to) {
      ranges.emplace_back(from, to);
    }
  }

  File& file_;
  uint64_t wasted_bytes_ = 0;
  Window window_;
  uint64_t id_;
  uint64_t file_size_;
  FileIndex* index_;
  std::vector<uint8_t> payload_;
  uint64_t reached_ = 0;
  uint64_t looked_again_ = 0;
  bool in_damage_ = false;
  bool in_unfinished_ = false;
};

}  // namespace

Result<FileHeader> read_file_header(File& file) {
  const std::string& path = file.path();
  FileHeader header{};
  auto got = file.read_at(0, &header, sizeof(header));
  if (!got) return std::unexpected(got.error());
  if (*got == 0) return fail_at(0, path + ": empty file, not a recording");
  size_t compared = std::min(*got, sizeof(kFileMagic));
  if (memcmp(header.magic, kFileMagic, compared) != 0)
    return fail_at(0, path + ": not a gpumemprof recording");
  if (*got < sizeof(header)) return fail_at(*got, path + ": the file ends within its header");
  if (header.major > kMajor) {
    return std::unexpected(Error{ErrorCode::kUnsupported,
                                 path + ": written in format " + std::to_string(header.major) +
                                     '.' + std::to_string(header.minor) +
                                     "; this version reads up to " + std::to_string(kMajor) + ".x",
                                 8});
  }
  if (header_crc(header) != header.crc32c) {
    return fail_at(offsetof(FileHeader, crc32c), path + ": the file header is damaged (wrong CRC)");
  }
  if (header.header_bytes != kPage) return fail_at(12, path + ": impossible header length");
  return header;
}

FileState read_file_state(File& file) {
  FileState state{};
  auto got = file.read_at(kStateOffset, &state, sizeof(state));
  if (!got || *got != sizeof(state)) return FileState{};
  return state;
}

FileCounts read_file_counts(File& file) {
  FileCounts counts{};
  auto got = file.read_at(kCountsOffset, &counts, sizeof(counts));
  if (!got || *got != sizeof(counts)) return FileCounts{};
  return counts;
}

std::optional<FinishedFile> read_finished(File& file, uint64_t recording_id) {
  FinishedFile finished{};
  auto got = file.read_at(kFinishedOffset, &finished, sizeof(finished));
  if (!got || *got != sizeof(finished) || finished.bytes == 0) return std::nullopt;
  if (finished_crc(recording_id, finished) != finished.crc32c) return std::nullopt;
  return finished;
}

std::optional<JobPlace> read_job_place(File& file, uint64_t recording_id) {
  JobPlace place{};
  auto got = file.read_at(kJobOffset, &place, sizeof(place));
  if (!got || *got != sizeof(place) || job_crc(recording_id, place) != place.crc32c)
    return std::nullopt;
  place.job[sizeof(place.job) - 1] = 0;
  return place;
}

Status write_finished(File& file, uint64_t recording_id, uint64_t bytes, uint64_t events) {
  FinishedFile finished{bytes, events, 0, 0};
  finished.crc32c = finished_crc(recording_id, finished);
  return file.write_at(kFinishedOffset, &finished, sizeof(finished));
}

Status scan_chunks(File& file, uint64_t recording_id, FileIndex* index) {
  auto size = file.size();
  if (!size) return std::unexpected(size.error());
  // A torn page at the end is looked at in every scan, as it may have grown: it counts once.
  std::erase_if(index->damage,
                [&](const Damage& one) { return one.offset >= index->scanned_end; });
  for (Damage& one : index->damage)
    one.bytes = std::min(one.bytes, index->scanned_end - one.offset);
  if (*size < kPage && index->damage.empty()) {
    index->damage.push_back({*size, 0, "the file ends within its first page"});
  }
  auto again = std::move(index->unwritten);
  index->unwritten.clear();
  const size_t known = index->chunks.size();
  Scanner scanner(file, recording_id, *size, index);
  std::sort(again.begin(), again.end());
  // What was being written at the end of the file goes on there: one range.
  uint64_t from = index->scanned_end;
  if (!again.empty() && again.back().second >= from) {
    from = again.back().first;
    again.pop_back();
  }
  for (auto [first, end] : again) {
    if (auto done = scanner.scan(first, std::min(end, *size)); !done) return done;
  }
  from = std::max(from, scanner.reached());
  if (auto done = scanner.scan(from, *size); !done) return done;
  index->scanned_end = std::max({from, *size & ~uint64_t{kPage - 1}, scanner.reached()});
  auto by_offset = [](const ChunkRef& a, const ChunkRef& b) { return a.offset < b.offset; };
  std::sort(index->chunks.begin() + static_cast<ptrdiff_t>(known), index->chunks.end(), by_offset);
  std::inplace_merge(index->chunks.begin(), index->chunks.begin() + static_cast<ptrdiff_t>(known),
                     index->chunks.end(), by_offset);
  return {};
}

Status read_chunk_into(File& file, const ChunkRef& chunk, std::string* payload) {
  payload->resize(chunk.header.length);
  auto got = file.read_at(chunk.payload_offset(), payload->data(), payload->size());
  if (!got) return std::unexpected(got.error());
  if (*got != payload->size() || chunk_crc(chunk.header, payload->data()) != chunk.header.crc32c) {
    return fail_at(chunk.offset, file.path() + ": a chunk changed while it was read");
  }
  return {};
}

Result<std::string> read_chunk(File& file, const ChunkRef& chunk) {
  std::string payload;
  if (auto done = read_chunk_into(file, chunk, &payload); !done)
    return std::unexpected(done.error());
  return payload;
}

}  // namespace gpumemprof
