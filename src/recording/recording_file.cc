#include "recording/recording_file.h"

#include <string.h>

#include <algorithm>

namespace gpumemprof {

using namespace format;

Result<std::unique_ptr<RecordingFile>> RecordingFile::open(Result<std::unique_ptr<File>> file) {
  if (!file) return std::unexpected(file.error());
  std::unique_ptr<RecordingFile> self(new RecordingFile(std::move(*file)));
  self->look_for_arena();
  return self;
}

/// A copy of the file is none that the arena belongs to: what is newer there would not fit.
void RecordingFile::look_for_arena() {
  std::vector<char> page(kPage);
  format::ArenaHolder holder{};
  FileHeader header{};
  auto got = file_->read_at(0, page.data(), page.size());
  if (!got || *got != page.size()) return;
  memcpy(&header, page.data(), sizeof(header));
  memcpy(&holder, page.data() + kHolderOffset, sizeof(holder));
  if (holder.arena_id == 0) return;
  const FileIdentity self = file_->identity();
  auto arena = Arena::of(holder);
  auto place = arena ? arena->process_at(holder.place) : std::nullopt;
  if (!place || place->is_final || place->recording_id != header.recording_id ||
      place->device != self.device || place->inode != self.inode) {
    return;
  }
  arena_ = std::move(arena), place_ = holder.place;
  look_for_stages();
}

void RecordingFile::look_for_stages() {
  auto process = arena_->process_at(place_);
  if (!process || process->is_final) return arena_.reset();
  pieces_ = arena_->stages_of(*process);
  pieces_.insert(pieces_.begin(), {0, kPage, place_ + kPage});
}

/// Asked after a read: the arena's bytes count only if they did still count then.
bool RecordingFile::is_overlaid() {
  if (arena_ && arena_->is_final(place_)) arena_.reset();
  return arena_ != nullptr;
}

Holding RecordingFile::holding() {
  if (is_overlaid()) return Holding::kSeen;
  format::ArenaHolder holder{};
  auto got = file_->read_at(kHolderOffset, &holder, sizeof(holder));
  if (!got || *got != sizeof(holder) || holder.arena_id == 0) return Holding::kNobody;
  look_for_arena();
  return arena_ ? Holding::kSeen : Holding::kUnseen;
}

Result<uint64_t> RecordingFile::size() {
  auto bytes = file_->size();
  if (!bytes || !arena_) return bytes;
  look_for_stages();
  if (!arena_) return file_->size();
  return std::max(*bytes, pieces_.back().file_offset + pieces_.back().length);
}

Result<size_t> RecordingFile::read_at(uint64_t offset, void* data, size_t size) {
  auto got = file_->read_at(offset, data, size);
  if (!got || !arena_) return got;
  const uint64_t end = offset + size;
  auto* out = static_cast<char*>(data);
  size_t filled = *got;
  bool any = false, is_whole = true;
  auto piece = std::ranges::lower_bound(pieces_, offset, std::less_equal<>{},
                                        [](const auto& p) { return p.file_offset + p.length; });
  for (; piece != pieces_.end() && piece->file_offset < end; ++piece) {
    const uint64_t from = std::max(offset, piece->file_offset);
    const uint64_t to = std::min(end, piece->file_offset + piece->length);
    if (filled < from - offset) memset(out + filled, 0, from - offset - filled);
    is_whole &= arena_->read_at(piece->offset + (from - piece->file_offset), out + (from - offset),
                                to - from);
    filled = std::max<size_t>(filled, to - offset);
    any = true;
  }
  if (!any) return got;
  if (!is_overlaid() || !is_whole) return file_->read_at(offset, data, size);
  return filled;
}

uint64_t RecordingFile::next_data(uint64_t offset, uint64_t file_size) {
  uint64_t next = file_->next_data(offset, file_size);
  if (!arena_) return next;
  for (const ArenaPiece& piece : pieces_) {
    if (offset < piece.file_offset + piece.length)
      return std::min(next, std::max(offset, piece.file_offset));
  }
  return next;
}

Result<uint64_t> RecordingFile::add_at(uint64_t offset, uint64_t amount) {
  return is_overlaid() ? arena_->add_at(place_ + kPage + offset, amount)
                       : file_->add_at(offset, amount);
}

}  // namespace gpumemprof
