#include "recording/arena_mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "recording/writer_state.h"

namespace gpumemprof {

using namespace format;

namespace {

constexpr size_t kMostOpenFiles = 256;
constexpr int kTries = 16;  // a live program may empty a half while it is copied

uint32_t low(uint64_t word) { return static_cast<uint32_t>(word); }
uint32_t turn(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

LossKind loss_of(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG ? kLostNoSpace : kLostIo;
}

constexpr size_t kLostOffset = kStateOffset + offsetof(FileState, lost);

/// Of a first page, empty for none.
uint64_t losses_in(const std::string& page) {
  uint64_t sum = 0;
  for (uint32_t kind = 0; kind < kLossKinds && !page.empty(); ++kind) {
    uint64_t lost = 0;
    memcpy(&lost, page.data() + kLostOffset + 8 * kind, sizeof(lost));
    if (loses_events(kind)) sum += lost;
  }
  return sum;
}

void add_loss(std::string* page, LossKind kind, uint64_t events) {
  uint64_t lost = 0;
  memcpy(&lost, page->data() + kLostOffset + 8 * kind, sizeof(lost));
  lost += events;
  memcpy(page->data() + kLostOffset + 8 * kind, &lost, sizeof(lost));
}

}  // namespace

int ArenaMirror::write_at(int fd, uint64_t offset, const void* data, size_t size) {
  const char* p = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = pwrite(fd, p, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    p += n, offset += static_cast<uint64_t>(n), size -= static_cast<size_t>(n);
  }
  return 0;
}

ArenaMirror::ArenaMirror(std::shared_ptr<Arena> arena, std::string folder, Write write)
    : arena_(std::move(arena)),
      folder_(std::move(folder)),
      write_(std::move(write)),
      unrecorded_(arena_, folder_) {}

ArenaMirror::~ArenaMirror() {
  for (auto& [offset, process] : processes_) close_file(&process);
}

void ArenaMirror::close_file(Process* process) {
  if (process->fd < 0) return;
  close(process->fd);
  process->fd = -1, --open_files_;
}

void ArenaMirror::take_new() {
  for (const uint64_t& entry : arena_->header()->processes) {
    const uint64_t offset = __atomic_load_n(&entry, __ATOMIC_ACQUIRE);
    if (offset == 0 || offset == kClosedEntry || processes_.contains(offset)) continue;
    const auto place = arena_->process_at(offset);
    if (!place) continue;
    uint64_t its_namespace = 0;  // of the file's first page
    (void)arena_->read_at(offset + kPage + kStateOffset + offsetof(FileState, pid_namespace),
                          &its_namespace, sizeof(its_namespace));
    processes_[offset].here = process_here(place->pid, place->start_ticks, its_namespace);
  }
}

bool ArenaMirror::open_its_file(Process* process, const ArenaPlace& place) {
  if (process->fd < 0) {
    const std::string path = folder_ + '/' + place.file;
    process->fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (process->fd < 0) return false;
    ++open_files_;
  }
  struct stat st;
  if (fstat(process->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == place.device &&
      st.st_ino == place.inode) {
    files_.insert(place.file);
    process->file_bytes = static_cast<uint64_t>(st.st_size);
    return true;
  }
  close_file(process);
  errno = ENOENT;  // another file of that name
  return false;
}

/// 0 or errno. `again`: also what is there already. `left`: records of the half that the file
/// lacks.
int ArenaMirror::write_stage(int fd, const ArenaPiece& stage, bool again, Written* written,
                             uint64_t* left) {
  for (int i = 0; i < kTries; ++i) {
    StageControl before{}, after{};
    const uint64_t control = stage.offset + sizeof(ChunkHeader);
    if (!arena_->read_at(control, &before, sizeof(before))) return EIO;
    if (!again && written->any && memcmp(&before, &written->control, sizeof(before)) == 0) return 0;
    const bool same = written->any && before.stream == written->control.stream;
    auto from = [&](uint64_t now, uint64_t then) {
      return same && turn(now) == turn(then) ? std::min(low(now), low(then)) : 0;
    };
    const uint32_t records = std::min(low(before.events_published), kStageEvents);
    const uint32_t there = from(before.events_published, written->control.events_published);
    const uint32_t first = again ? 0 : there;
    const uint32_t bytes = std::min(low(before.definitions_published), kStageDefinitionBytes);
    const uint32_t begin =
        again ? 0 : from(before.definitions_published, written->control.definitions_published);
    const uint64_t events_at = kStageEventsOffset + uint64_t{first} * sizeof(RawEvent);
    const uint64_t definitions_at = kStageDefinitionsOffset + uint64_t{begin};
    std::string events((records - std::min(first, records)) * sizeof(RawEvent), '\0');
    std::string definitions(bytes - std::min(begin, bytes), '\0');
    ChunkHeader header{};
    if (!arena_->read_at(stage.offset, &header, sizeof(header)) ||
        !arena_->read_at(stage.offset + events_at, events.data(), events.size()) ||
        !arena_->read_at(stage.offset + definitions_at, definitions.data(), definitions.size()) ||
        !arena_->read_at(control, &after, sizeof(after))) {
      return EIO;
    }
    if (after.stream != before.stream ||
        turn(after.events_published) != turn(before.events_published) ||
        turn(after.definitions_published) != turn(before.definitions_published)) {
      continue;
    }
    const uint64_t at = stage.file_offset;
    int error = write_(fd, at + events_at, events.data(), events.size());
    if (error == 0) error = write_(fd, at + definitions_at, definitions.data(), definitions.size());
    if (error == 0 && (again || !written->any)) error = write_(fd, at, &header, sizeof(header));
    if (error == 0) error = write_(fd, at + sizeof(header), &before, sizeof(before));
    if (error == 0) *written = {true, before};
    if (error != 0) *left += records - std::min(there, records);
    return error;
  }
  return 0;  // it lives, and the next round comes
}

/// 0 or errno. The file's first page comes last: where its process is gone it says that the file
/// has everything.
int ArenaMirror::write(Process* process, uint64_t offset, const ArenaPlace& place, bool give_up) {
  int error = open_its_file(process, place) ? 0 : errno;
  // A sealer claims places in the page: one that it claims after the copy would be lost.
  const bool is_being_sealed = error == 0 && process->is_gone &&
                               flock(process->fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (is_being_sealed) return EWOULDBLOCK;
  std::string page(kPage, '\0');
  if (!arena_->read_at(offset + kPage, page.data(), page.size())) return EIO;
  const std::vector<ArenaPiece> stages = arena_->stages_of(place);
  if (error != 0) {
    if (give_up && process->is_gone && error != ENOENT) tell_given_up(*process, page, error);
    return error;
  }
  const uint64_t end = stages.empty() ? kPage : stages.back().file_offset + stages.back().length;
  // All of it at the end, and where somebody has cut the file.
  const bool is_cut = process->file_bytes < end;
  const bool everything = process->is_gone || is_cut;
  uint64_t left = 0;
  for (const ArenaPiece& stage : stages) {
    Written& written = process->stages[stage.file_offset];
    if (is_cut) written = {};
    if (int failed = write_stage(process->fd, stage, everything, &written, &left)) error = failed;
  }
  const bool is_last = process->is_gone && (error == 0 || give_up);
  if (is_last) {
    memset(page.data() + kHolderOffset, 0, sizeof(ArenaHolder));
    if (left != 0) add_loss(&page, loss_of(error), left);
  }
  if (everything || page != process->last_page) {
    const int failed = write_(process->fd, 0, page.data(), page.size());
    if (failed == 0) process->last_page = page;
    if (failed == 0 && is_last) error = 0;  // what is missing is counted in it
    if (failed != 0 && is_last && give_up) tell_given_up(*process, page, failed);
    if (failed != 0) error = failed;
  }
  return error;
}

/// What the file does not count although it should: this is said by us, then.
void ArenaMirror::tell_given_up(const Process& process, const std::string& page, int error) {
  FileHeader header{};
  memcpy(&header, page.data(), sizeof(header));
  given_up_.push_back(
      {.pid = static_cast<int>(header.pid),
       .command = {header.command, strnlen(header.command, sizeof(header.command))},
       .reason = std::string("its last events could not be written: ") + strerror(error),
       .lost_events = losses_in(page) - losses_in(process.last_page)});
}

void ArenaMirror::forget(uint64_t offset, Process* process) {
  const auto place = arena_->process_at(offset);
  arena_->set_final(offset);
  close_file(process);  // and its lock: a sealer finds the file from here on
  for (uint64_t& entry : arena_->header()->processes) {
    uint64_t expected = offset;
    if (__atomic_compare_exchange_n(&entry, &expected, is_open_ ? 0 : kClosedEntry, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      break;
    }
  }
  if (!place) return;
  for (const ArenaPiece& stage : arena_->stages_of(*place)) arena_->give_back(stage);
  arena_->give_back({0, kPage, offset + kPage});
}

void ArenaMirror::round(bool give_up) {
  take_new();
  alive_ = waiting_ = being_sealed_ = 0;
  for (auto it = processes_.begin(); it != processes_.end();) {
    auto& [offset, process] = *it;
    const auto place = arena_->process_at(offset);
    // First whether it lives, then what it holds: so nothing comes after the last look.
    if (place) process.is_gone = process.is_gone || !process.here.is_running();
    const int error = place ? write(&process, offset, *place, give_up) : ENOENT;
    alive_ += place && !process.is_gone;
    // A recording that was deleted takes its last events with it.
    const bool is_being_sealed = error == EWOULDBLOCK;
    const bool is_done = error == 0 || error == ENOENT || (give_up && !is_being_sealed);
    if (place && !(process.is_gone && is_done)) {
      waiting_ += process.is_gone;
      being_sealed_ += process.is_gone && is_being_sealed;
      if (process.fd >= 0) flock(process.fd, LOCK_UN);
      if (open_files_ > kMostOpenFiles) close_file(&process);
      ++it;
      continue;
    }
    forget(offset, &process);
    it = processes_.erase(it);
  }
  alive_ += unrecorded_.round();
}

bool ArenaMirror::leave() {
  arena_->set_open(is_open_ = false);
  round();
  is_open_ = alive_ + waiting_ != 0;
  if (is_open_) arena_->set_open(true);
  return !is_open_;
}

}  // namespace gpumemprof
