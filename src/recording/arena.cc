#include "recording/arena.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "base/descriptor.h"
#include "base/system_page.h"

namespace gpumemprof {

using namespace format;

namespace {

constexpr size_t kMostStages = 4096;  // of a process, as the probe has it

/// The link is used first: behind a number that a file names may be anything, and opening some
/// things does something.
int open_descriptor(uint32_t pid, uint32_t fd) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  char link[sizeof(kArenaLink)] = {};
  const ssize_t n = readlink(path.c_str(), link, sizeof(link) - 1);
  if (n < 0 || memcmp(link, kArenaLink, sizeof(kArenaLink) - 1) != 0) return -1;
  return open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

ArenaHeader* map_header(int fd) {
  void* p = mmap(nullptr, kArenaHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return p == MAP_FAILED ? nullptr : static_cast<ArenaHeader*>(p);
}

/// It can be read to its end for as long as it is open: nobody can make it shorter.
bool is_sealed(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK);
}

/// Those that are open in this process, by id.
struct OpenArenas {
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<Arena>> by_id;
};
OpenArenas& open_arenas() {
  static OpenArenas arenas;
  return arenas;
}

std::unexpected<Error> refused(const char* what) {
  return fail(ErrorCode::kSystem,
              std::string("memory for the recorded processes: ") + what + ": " + strerror(errno));
}

}  // namespace

std::shared_ptr<Arena> Arena::of(const ArenaHolder& holder) {
  if (holder.arena_id == 0) return nullptr;
  auto& [mutex, known] = open_arenas();
  std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  if (auto it = known.find(holder.arena_id); it != known.end()) {
    if (auto arena = it->second.lock()) return arena;
  }
  for (int i = 0; i < 2; ++i) {
    const int fd = open_descriptor(holder.pid[i], holder.fd[i]);
    if (fd < 0) continue;
    const off_t bytes = lseek(fd, 0, SEEK_END);
    if (!is_sealed(fd) || bytes < static_cast<off_t>(kArenaHeaderBytes)) {
      close(fd);
      continue;
    }
    std::shared_ptr<Arena> arena(new Arena(fd, map_header(fd)));
    if (!arena->header_ || arena->header_->magic != kArenaMagic ||
        arena->header_->id != holder.arena_id) {
      continue;
    }
    arena->id_ = holder.arena_id, arena->bytes_ = static_cast<uint64_t>(bytes);
    known[holder.arena_id] = arena;
    return arena;
  }
  return nullptr;
}

Result<std::shared_ptr<Arena>> Arena::make() {
  const int fd =
      above_standard_streams(memfd_create(kArenaName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd < 0) return refused("memfd_create");
  std::shared_ptr<Arena> arena(new Arena(fd, nullptr));
  rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  getrlimit(RLIMIT_FSIZE, &limit);  // beyond it would be a signal
  arena->bytes_ = std::min<uint64_t>(kArenaMostBytes, limit.rlim_cur) & ~(system_page() - 1);
  if (arena->bytes_ < 2 * kArenaHeaderBytes) {
    errno = EFBIG;
    return refused("RLIMIT_FSIZE");
  }
  if (ftruncate(fd, static_cast<off_t>(arena->bytes_)) != 0) return refused("ftruncate");
  if (fallocate(fd, 0, 0, kArenaHeaderBytes) != 0) return refused("fallocate");
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return refused("F_ADD_SEALS");
  arena->header_ = map_header(fd);
  if (!arena->header_) return refused("mmap");
  while (arena->id_ == 0) {
    if (getrandom(&arena->id_, sizeof(arena->id_), 0) < 0) return refused("getrandom");
  }
  *arena->header_ = {};
  arena->header_->magic = kArenaMagic;
  arena->header_->id = arena->id_;
  arena->header_->bytes = arena->bytes_;
  arena->header_->next_offset = round_to(kArenaHeaderBytes, system_page());
  std::lock_guard lock(open_arenas().mutex);
  open_arenas().by_id[arena->id_] = arena;
  return arena;
}

Arena::~Arena() {
  if (header_) munmap(header_, kArenaHeaderBytes);
  close(fd_);
}

bool Arena::read_at(uint64_t offset, void* data, size_t size) const {
  return offset + size >= offset && offset + size <= bytes_ &&
         pread(fd_, data, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

std::optional<ArenaPlace> Arena::place_at(uint64_t offset) const {
  ArenaPlace place{};
  if (offset < kArenaHeaderBytes || offset % kPage != 0) return std::nullopt;
  if (!read_at(offset, &place, sizeof(place)) || place.magic != (kArenaMagic ^ offset) ||
      place.length > kMaxStageBytes || place.file_offset % kPage != 0 ||
      offset + kPage + place.length > bytes_) {
    return std::nullopt;
  }
  return place;
}

std::optional<ArenaPlace> Arena::process_at(uint64_t offset) const {
  auto place = place_at(offset);
  if (!place || place->file_offset != 0 || place->length != kPage) return std::nullopt;
  if (memchr(place->file, 0, sizeof(place->file)) == nullptr || !place->file[0] ||
      strchr(place->file, '/') || place->file[0] == '.') {
    return std::nullopt;
  }
  return place;
}

std::vector<ArenaPiece> Arena::stages_of(const ArenaPlace& process) const {
  std::vector<ArenaPiece> stages;
  uint64_t next = process.first_stage;
  while (next != 0 && stages.size() < kMostStages) {
    const auto place = place_at(next);
    if (!place || place->recording_id != process.recording_id || place->file_offset < kPage ||
        place->length != kStageBytes) {
      break;
    }
    stages.push_back({place->file_offset, place->length, next + kPage});
    next = place->next_stage;
  }
  std::ranges::sort(stages, {}, &ArenaPiece::file_offset);
  return stages;
}

bool Arena::is_final(uint64_t offset) const {
  const auto place = place_at(offset);  // none where its memory was given back
  return !place || place->is_final != 0;
}

void Arena::set_final(uint64_t offset) {
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t n =
      pwrite(fd_, &one, sizeof(one), static_cast<off_t>(offset + offsetof(ArenaPlace, is_final)));
}

void Arena::set_open(bool is_open) {
  for (uint64_t& entry : header_->processes) {
    uint64_t expected = is_open ? kClosedEntry : 0;
    __atomic_compare_exchange_n(&entry, &expected, is_open ? 0 : kClosedEntry, false,
                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  }
}

void Arena::give_back(const ArenaPiece& piece) {
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(piece.offset - kPage),
            static_cast<off_t>(round_to(kPage + piece.length, system_page())));
}

Result<uint64_t> Arena::add_at(uint64_t offset, uint64_t amount) {
  const uint64_t size = system_page(), page = offset & ~(size - 1);
  if (offset % 8 != 0 || page + size > bytes_)
    return fail(ErrorCode::kSystem, "an impossible position in the arena");
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(page));
  if (p == MAP_FAILED) return refused("mmap");
  auto* word = reinterpret_cast<uint64_t*>(static_cast<char*>(p) + (offset - page));
  const uint64_t before = __atomic_fetch_add(word, amount, __ATOMIC_RELAXED);
  munmap(p, size);
  return before;
}

}  // namespace gpumemprof
