#include "probe/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>

#include "base/system_page.h"
#include "probe/file_name.h"
#include "probe/recorder.h"
#include "probe/storage.h"
#include "probe/sys.h"
#include "probe/text.h"

namespace gpumemprof::probe {

using namespace format;

ArenaAddress g_arena_address;

namespace {

ArenaHeader* g_arena;      // the first pages
Unrecorded* g_unrecorded;  // where this process counts, if it has no file

char g_command[sizeof(Unrecorded::command)];

bool take_number(const char** text, uint64_t* out) {
  const char* p = *text;
  if (*p == '.') ++p;
  if (*p < '0' || *p > '9') return false;
  for (*out = 0; *p >= '0' && *p <= '9'; ++p) *out = *out * 10 + static_cast<uint64_t>(*p - '0');
  *text = p;
  return true;
}

/// A descriptor of the arena, or -1. The link is used first: behind a number that came back as
/// another process may be anything, and opening some things does something.
long open_arena() {
  for (int i = 0; i < 2 && g_arena_address.id; ++i) {
    char path[64];
    Text name(path, sizeof(path));
    name.add("/proc/"), name.add(g_arena_address.pid[i]);
    name.add("/fd/"), name.add(g_arena_address.fd[i]);
    char link[sizeof(kArenaLink)] = {};
    long n = sys(SYS_readlinkat, AT_FDCWD, sys_ptr(path), sys_ptr(link), sizeof(kArenaLink) - 1);
    if (n < 0 || memcmp(link, kArenaLink, sizeof(kArenaLink) - 1) != 0) continue;
    long fd = sys(SYS_openat, AT_FDCWD, sys_ptr(path), O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) continue;
    uint64_t head[2] = {};
    sys(SYS_pread64, fd, sys_ptr(head), sizeof(head), 0);
    if (head[0] == kArenaMagic && head[1] == g_arena_address.id) return fd;
    sys(SYS_close, fd);
  }
  return -1;
}

/// The disk may have room again by the time somebody looks at it from outside.
uint32_t notes_of(long error) {
  struct statfs disk{};
  if (error != -ENOSPC || is_filtered()) return 0;
  if (sys(SYS_statfs, sys_ptr(g_folder), sys_ptr(&disk)) < 0) return 0;
  const bool has_inodes = disk.f_files == 0 || disk.f_ffree != 0;
  return has_inodes ? 0 : uint32_t{kNoInodesThen};
}

uint64_t file_limit() {
  struct rlimit64 limit;
  return sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, sys_ptr(&limit)) < 0 ? UINT64_MAX : limit.rlim_cur;
}

}  // namespace

ArenaAddress parse_arena_address(const char* text) {
  ArenaAddress address{};
  uint64_t numbers[5];
  for (uint64_t& number : numbers) {
    if (!text || !take_number(&text, &number)) return {};
  }
  if (*text) return {};
  address.id = numbers[0];
  for (int i = 0; i < 2; ++i) {
    address.pid[i] = static_cast<uint32_t>(numbers[1 + 2 * i]);
    address.fd[i] = static_cast<uint32_t>(numbers[2 + 2 * i]);
  }
  return address;
}

bool use_arena() {
  if (g_arena) return true;
  long fd = open_arena();
  if (fd < 0) return false;
  g_arena = reinterpret_cast<ArenaHeader*>(map_shared(fd, 0, kArenaHeaderBytes));
  sys(SYS_close, fd);
  return g_arena;
}

ArenaPlace* claim_arena_place(uint64_t file_offset, uint64_t length) {
  if (!g_arena) return nullptr;
  long fd = open_arena();
  if (fd < 0) return nullptr;
  const uint64_t page = system_page(), size = round_to(kPage + length, page);
  const uint64_t at = __atomic_fetch_add(&g_arena->next_offset, size, __ATOMIC_RELAXED);
  uint8_t* mapped = nullptr;
  const bool is_a_place =
      at >= kArenaHeaderBytes && at % page == 0 && at < kArenaMostBytes && at + size > at;
  // Where fallocate may not be asked for, zeros are written, and RLIMIT_FSIZE counts for that.
  if (is_a_place && !(is_filtered() && exceeds_file_limit(at + size)) &&
      allocate(fd, at, size) == 0) {
    mapped = map_shared(fd, at, size);
  }
  sys(SYS_close, fd);
  if (!mapped) return nullptr;
  auto* place = reinterpret_cast<ArenaPlace*>(mapped);
  place->magic = kArenaMagic ^ at;
  place->file_offset = file_offset;
  place->length = length;
  return place;
}

bool list_process(const ArenaPlace* place) {
  const uint64_t offset = offset_of(place);
  for (uint64_t& entry : g_arena->processes) {
    uint64_t expected = 0;
    if (__atomic_load_n(&entry, __ATOMIC_RELAXED) == 0 &&
        __atomic_compare_exchange_n(&entry, &expected, offset, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED)) {
      return true;
    }
  }
  return false;
}

void list_stage(ArenaPlace* process, ArenaPlace* stage) {
  stage->recording_id = process->recording_id;
  uint64_t first = __atomic_load_n(&process->first_stage, __ATOMIC_RELAXED);
  do {
    stage->next_stage = first;
  } while (!__atomic_compare_exchange_n(&process->first_stage, &first, offset_of(stage), false,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void remember_command(const char* command) {
  memset(g_command, 0, sizeof(g_command));
  memcpy(g_command, command, strnlen(command, sizeof(g_command) - 1));
}

bool begin_unrecorded(UnrecordedAt at, long error) {
  if (!use_arena()) return false;
  Unrecorded* entry = nullptr;
  for (Unrecorded& one : g_arena->unrecorded) {
    uint32_t expected = 0;
    if (__atomic_load_n(&one.state, __ATOMIC_RELAXED) == 0 &&
        __atomic_compare_exchange_n(&one.state, &expected, Unrecorded::kTaken, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      entry = &one;
      break;
    }
  }
  if (!entry) {
    __atomic_fetch_add(&g_arena->crowd.processes, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&g_unrecorded, &g_arena->crowd, __ATOMIC_RELEASE);
    return true;
  }
  uint32_t pid = 0;
  entry->start_ticks = read_start_ticks(&pid);
  entry->pid = pid ? pid : static_cast<uint32_t>(sys(SYS_getpid));
  entry->at = at;
  entry->error = static_cast<int32_t>(-error);
  entry->user = static_cast<uint32_t>(sys(SYS_geteuid));
  entry->processes = 1;
  entry->notes = notes_of(error);
  entry->file_limit_bytes = file_limit();
  read_command(entry->command, sizeof(entry->command));
  if (!entry->command[0]) memcpy(entry->command, g_command, sizeof(g_command));
  __atomic_store_n(&entry->state, Unrecorded::kFilled, __ATOMIC_RELEASE);
  __atomic_store_n(&g_unrecorded, entry, __ATOMIC_RELEASE);
  return true;
}

void count_unrecorded(uint64_t bytes) {
  Unrecorded* entry = __atomic_load_n(&g_unrecorded, __ATOMIC_ACQUIRE);
  if (!entry) return;
  __atomic_fetch_add(&entry->events, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&entry->bytes, bytes, __ATOMIC_RELAXED);
}

void forget_unrecorded() { g_unrecorded = nullptr; }

}  // namespace gpumemprof::probe
