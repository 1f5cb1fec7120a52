#include "recording/seal.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <map>

#include "base/file_pool.h"
#include "base/folder.h"
#include "recording/chunk_scan.h"
#include "recording/compact.h"
#include "recording/file_sealer.h"
#include "recording/recording_file.h"
#include "recording/writer_state.h"

namespace gpumemprof {
namespace {

// A thread stores an event a little after it read the clock. What is younger than this may have an
// older one before it that is not stored yet.
constexpr uint64_t kSettleNs = 50'000'000;
// Each sealed chunk takes a page at least, so little is not worth one.
constexpr uint64_t kLeastGather = 1u << 20;
// Of the 256 MiB that a process may write beyond --max-disk, what may wait for enough to gather.
constexpr uint64_t kMostWaiting = 64u << 20;

uint64_t monotonic_ns() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return static_cast<uint64_t>(ts.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(ts.tv_nsec);
}

uint64_t disk_bytes(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 ? static_cast<uint64_t>(st.st_blocks) * 512 : 0;
}

struct OneFile {
  std::string path;
  std::unique_ptr<RecordingFile> file;
  std::unique_ptr<FileSealer> sealer;
  bool done = false;  // finished, or nothing that we can seal
  uint64_t counted_events = 0;
};

/// A file with its footer and no raw chunk. Decided by chunk headers: a sealer would read every event
/// for the state of memory, which doubles the time of an `analyze`.
bool is_complete(File& file) {
  auto header = read_file_header(file);
  FileIndex index;
  if (!header || !scan_chunks(file, header->recording_id, &index) || !index.damage.empty())
    return false;
  bool has_footer = false;
  for (const ChunkRef& chunk : index.chunks) {
    const uint16_t type = chunk.header.type;
    has_footer |= type == format::kFooter;
    if (type == format::kRawEvents || type == format::kRawDefinitions || type == format::kStage)
      return false;
  }
  return has_footer;
}

}  // namespace

struct FolderSealer::Impl {
  Impl(std::string folder, SealOptions options) : folder(std::move(folder)), options(options) {}
  std::string folder;
  SealOptions options;
  SealTotals totals;
  FilePool pool;                         // before the files, which are its own
  std::map<std::string, OneFile> files;  // by name
  std::function<void(double)> on_progress;
  size_t files_looked_at = 0;  // of the step
  uint64_t beside_bytes = 0;   // of what is no recording

  Status list();
  void show(double share_of_file) const;
  Status step_one(OneFile* one, bool all);
  Status work(OneFile* one, bool all);
  Status finish_one(OneFile* one);
  bool may_finish(const OneFile& one, bool by_hand) const;
  uint64_t lasting_bytes(const OneFile& one) const;
  uint64_t lasting_bytes() const;
  uint64_t low_water() const;
  bool is_short(const OneFile& one) const;
  Status keep_below_limit();
  Status drop_at_end(OneFile* one);
  Status step(bool all);
};

/// What it takes at its end: what its program's buffers and raw events take goes, so nothing is
/// dropped for them.
uint64_t FolderSealer::Impl::lasting_bytes(const OneFile& one) const {
  if (one.done) return disk_bytes(one.path);
  return one.sealer ? one.sealer->lasting_bytes() : disk_bytes(one.path) / kLeastGain;
}

/// With what lies beside the recordings: names of holders grow with them.
uint64_t FolderSealer::Impl::lasting_bytes() const {
  uint64_t bytes = beside_bytes;
  for (const auto& [name, one] : files) bytes += lasting_bytes(one);
  return bytes;
}

/// What sealing tries to stay below: the rest is room for what the program writes until the next
/// step.
uint64_t FolderSealer::Impl::low_water() const {
  return options.max_disk_bytes - std::min<uint64_t>(options.max_disk_bytes / 2, 512u << 20);
}

bool FolderSealer::Impl::is_short(const OneFile& one) const {
  return options.max_disk_bytes != 0 && disk_bytes(one.path) > lasting_bytes(one) + kMostWaiting;
}

Status FolderSealer::Impl::list() {
  uint64_t beside = 0;
  const bool is_read = each_name(folder, [&](std::string_view entry) {
    const std::string name(entry);
    if (name.ends_with(".gmp")) {
      files.try_emplace(name, OneFile{folder + '/' + name});
    } else if (options.max_disk_bytes != 0 && name.ends_with(".json")) {
      beside += disk_bytes(folder + '/' + name);
    }
  });
  beside_bytes = beside;
  if (is_read) return {};
  return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kSystem,
              folder + ": " + strerror(errno));
}

void FolderSealer::Impl::show(double share_of_file) const {
  if (!on_progress) return;
  on_progress((static_cast<double>(files_looked_at) + share_of_file) /
              static_cast<double>(files.size()));
}

bool FolderSealer::Impl::may_finish(const OneFile& one, bool by_hand) const {
  switch (writer_state(one.sealer->header(), read_file_state(*one.file))) {
    case WriterState::kAlive:
      return false;
    case WriterState::kGone:
      return true;
    case WriterState::kElsewhere:  // that nobody writes to it for a while says nothing: it may be idle
      break;
  }
  return by_hand && read_file_state(*one.file).clean_exit == 1;
}

Status FolderSealer::Impl::step_one(OneFile* one, bool all) {
  if (one->done) return {};
  if (!one->file) {
    auto file = RecordingFile::open(pool.open(one->path, FileMode::kReadWrite));
    if (!file) return one->done = true, std::unexpected(file.error());
    one->file = std::move(*file);
  }
  const bool is_locked = one->file->lock(true);
  if (!same_file(one->path, one->file->identity())) {
    one->sealer.reset(), one->file.reset();  // replaced by another sealer's compaction
    return {};
  }
  if (!is_locked) return {};  // another sealer or a reader: the next step may find it free
  Status done = work(one, all);
  if (one->file) one->file->unlock();
  if (one->done) one->sealer.reset(), one->file.reset();
  return done;
}

Status FolderSealer::Impl::work(OneFile* one, bool all) {
  if (!one->sealer && all && is_complete(*one->file)) return one->done = true, Status{};
  if (!one->sealer) {
    FileSealOptions options{};
    if (this->options.max_disk_bytes != 0) {
      // Several checkpoints must fit below the limit, so that dropping up to one leaves most of it.
      uint64_t raw = low_water() / 4;  // sealed it takes a quarter to an eighth of that
      options.checkpoint_bytes = std::clamp<uint64_t>(raw, 1u << 18, 64u << 20);
      options.reuse_places = false;  // every place counts against the limit until it is given back
      options.gather_bytes =
          std::clamp<uint64_t>(this->options.max_disk_bytes / 16, kLeastGather, 16u << 20);
    }
    auto sealer = FileSealer::open(one->file.get(), options);
    if (!sealer) {
      // The probe writes its header in one piece; a file without it will not get one.
      one->done = true;
      if (sealer.error().code == ErrorCode::kSystem) return std::unexpected(sealer.error());
      totals.left.push_back(sealer.error().message);
      return {};
    }
    one->sealer = std::move(*sealer);
  }
  const Holding holding = one->file->holding();
  // While somebody keeps the newest of it, the file lacks that; it is finished when that is done.
  const bool is_kept = holding == Holding::kSeen;
  if (one->sealer->finished() || (!is_kept && may_finish(*one, all))) return finish_one(one);
  if (holding == Holding::kUnseen) return {};  // the program's own page is what says what is free
  Status done = one->sealer->advance(monotonic_ns() - kSettleNs, all, is_short(*one));
  totals.events += one->sealer->events_sealed() - one->counted_events;
  one->counted_events = one->sealer->events_sealed();
  return done;
}

Status FolderSealer::Impl::finish_one(OneFile* one) {
  const bool was_finished = one->sealer->finished();
  const uint64_t before = disk_bytes(one->path);
  if (auto done = one->sealer->finish([this](double share) { show(share); }); !done) return done;
  if (auto done = drop_at_end(one); !done) return done;
  totals.events += one->sealer->events_sealed() - one->counted_events;
  one->counted_events = one->sealer->events_sealed();
  auto compacted = compact_file(*one->file);
  one->done = true;
  if (!was_finished) {
    ++totals.files;
    totals.bytes_before += before;
    totals.bytes_after += disk_bytes(one->path);
  }
  return compacted ? Status{} : std::unexpected(compacted.error());
}

/// Of a file that was finished faster than it was dropped from.
Status FolderSealer::Impl::drop_at_end(OneFile* one) {
  if (options.max_disk_bytes == 0) return {};
  const uint64_t lasting = lasting_bytes();
  if (lasting <= low_water()) return {};
  auto freed = one->sealer->drop_oldest(lasting - low_water());
  return freed ? Status{} : std::unexpected(freed.error());
}

Status FolderSealer::Impl::keep_below_limit() {
  if (options.max_disk_bytes == 0) return {};
  uint64_t lasting = lasting_bytes();
  for (auto& [name, one] : files) {
    if (lasting <= low_water()) break;
    if (!one.sealer || one.done || !one.file->lock(true)) continue;
    auto freed = one.sealer->drop_oldest(lasting - low_water());
    one.file->unlock();
    if (!freed) return std::unexpected(freed.error());
    lasting -= std::min(lasting, *freed);
  }
  return {};
}

Status FolderSealer::Impl::step(bool all) {
  if (auto done = list(); !done) return done;
  Status first{};
  files_looked_at = 0;
  for (auto& [name, one] : files) {
    auto done = step_one(&one, all);
    ++files_looked_at;
    show(0);
    if (!done && first)
      first = done;  // one file's trouble does not keep the others from being sealed
  }
  if (auto done = keep_below_limit(); !done && first) first = done;
  return first;
}

FolderSealer::FolderSealer(std::string folder, SealOptions options)
    : impl_(new Impl(std::move(folder), options)) {}
FolderSealer::~FolderSealer() = default;

Status FolderSealer::step() { return impl_->step(false); }
Status FolderSealer::finish(std::function<void(double)> on_progress) {
  impl_->on_progress = std::move(on_progress);
  Status done = impl_->step(true);
  impl_->on_progress = nullptr;
  const uint64_t limit = impl_->options.max_disk_bytes, lasting = impl_->lasting_bytes();
  impl_->totals.above_limit_bytes = limit != 0 && lasting > limit ? lasting : 0;
  return done;
}
const SealTotals& FolderSealer::totals() const { return impl_->totals; }

}  // namespace gpumemprof
