#include "probe/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/system_page.h"
#include "format/checksum.h"
#include "probe/arena.h"
#include "probe/file_name.h"
#include "probe/hot.h"
#include "probe/job_place.h"
#include "probe/native_stack.h"
#include "probe/python_frames.h"
#include "probe/storage.h"
#include "probe/sys.h"

namespace gpumemprof::probe {
namespace {

using namespace format;

HOT_DATA uint32_t g_unset[2] = {kUnset, 0};

/// Everything about the current process; begun afresh in a forked child.
struct Recorder {
  char path[4096];
  uint8_t* page;      // the file's first page: of the arena, of the file, or private
  ArenaPlace* place;  // where it is of the arena
  uint64_t recording_id;
  uint32_t pid;
  uint32_t stage_count;
  bool is_mappable;    // promises_pages() of the file
  Stage stages[4096];  // 128 KiB of address space, touched as threads come
};
Recorder* g_recorder;

/// The page that a fork empties. Without MADV_WIPEONFORK (kernel < 4.14) a child would go on in the
/// parent's file, so then we do not record at all.
volatile uint32_t* make_state_page() {
  void* page = map_private(kPage);
  if (!page) return nullptr;
  if (sys(SYS_madvise, sys_ptr(page), kPage, MADV_WIPEONFORK) < 0) {
    sys(SYS_munmap, sys_ptr(page), kPage);
    return nullptr;
  }
  return static_cast<volatile uint32_t*>(page);
}

/// What is there is not looked at: it may be the memory of a parent that is gone.
void unmap_piece(const uint8_t* base, size_t size, bool in_arena) {
  if (!base) return;
  const size_t before = in_arena ? kPage : 0;
  sys(SYS_munmap, sys_ptr(base - before), static_cast<long>(size + before));
}

/// The parent's buffers in a forked child: never written again.
void forget_parent() {
  Recorder* old = g_recorder;
  if (!old) return;
  for (uint32_t i = 0; i < old->stage_count && i < 4096; ++i) {
    unmap_piece(old->stages[i].base, kStageBytes, old->stages[i].in_arena);
  }
  unmap_piece(old->page, kPage, old->place != nullptr);
  memset(old, 0, sizeof(*old));
}

long open_file() {
  return sys(SYS_openat, AT_FDCWD, sys_ptr(g_recorder->path), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
}

/// A place of `size` bytes, rounded to pages, for the caller alone. 0 where --max-disk does not
/// allow it.
uint64_t claim_place(size_t size) {
  FileState* shared = file_state();
  size = round_to_page(size);
  uint64_t next = __atomic_load_n(&shared->next_offset, __ATOMIC_RELAXED);
  uint64_t reclaimed = __atomic_load_n(&shared->reclaimed_bytes, __ATOMIC_RELAXED);
  if (g_config.max_disk_bytes && next + size - reclaimed > g_config.max_disk_bytes) return 0;
  return __atomic_fetch_add(&shared->next_offset, size, __ATOMIC_RELAXED);
}

PlacePool* pool() { return reinterpret_cast<PlacePool*>(g_recorder->page + kPoolOffset); }

FileCounts* counts() { return reinterpret_cast<FileCounts*>(g_recorder->page + kCountsOffset); }

/// A place whose events are sealed, to be written over; 0 where there is none. What a damaged page
/// says is not believed.
uint64_t claim_used_place() {
  for (uint64_t& offset : pool()->offsets) {
    if (!__atomic_load_n(&offset, __ATOMIC_RELAXED)) continue;
    uint64_t place = __atomic_exchange_n(&offset, 0, __ATOMIC_ACQUIRE);
    uint64_t end = __atomic_load_n(&file_state()->next_offset, __ATOMIC_RELAXED);
    if (place >= kPage && place % kPage == 0 && place + kEventsPlaceBytes <= end) return place;
  }
  return 0;
}

/// Gives a place back that the file system then refused: a refusal must not use up --max-disk, nor
/// leave blocks that nothing refers to. False where somebody has claimed one after it.
bool unclaim_place(uint64_t offset, size_t size) {
  uint64_t end = offset + round_to_page(size);
  return __atomic_compare_exchange_n(&file_state()->next_offset, &end, offset, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/// What was written of a chunk before the file system refused the rest is then no damage.
void mark_never_written(int fd, uint64_t offset, uint32_t length) {
  ChunkHeader header{};
  header.magic = kChunkMagic;
  header.type = kZero;
  header.length = length;
  header.recording_id = g_recorder->recording_id;
  header.crc32c = chunk_crc(header, nullptr);
  write_all(fd, &header, sizeof(header), offset);
}

/// Puts the first page into the arena, so that the file needs no mapping. False: there is none.
bool keep_page_in_arena(long fd, uint8_t* page) {
  ArenaPlace* place = use_arena() ? claim_arena_place(0, kPage) : nullptr;
  if (!place) return false;
  const auto* header = reinterpret_cast<const FileHeader*>(page);
  struct stat file{};
  const char* name = strrchr(g_recorder->path, '/') + 1;
  const size_t length = strlen(name);
  place->recording_id = header->recording_id;
  place->start_ticks = read_start_ticks(&place->pid);
  bool ok = place->pid && length < sizeof(place->file) && sys(SYS_fstat, fd, sys_ptr(&file)) == 0;
  if (ok) {
    memcpy(place->file, name, length);
    place->device = file.st_dev, place->inode = file.st_ino;
    ArenaHolder holder{g_arena_address.id, offset_of(place), {}, {}};
    memcpy(holder.pid, g_arena_address.pid, sizeof(holder.pid));
    memcpy(holder.fd, g_arena_address.fd, sizeof(holder.fd));
    memcpy(page + kHolderOffset, &holder, sizeof(holder));
    memcpy(piece_of(place), page, kPage);
    // Who reads the file must know before it lacks anything.
    ok = write_all(fd, page, kPage, 0) == 0 && list_process(place);
  }
  if (!ok) {
    memset(page + kHolderOffset, 0, sizeof(ArenaHolder));
    write_all(fd, page, kPage, 0);
    unmap_piece(piece_of(place), kPage, true);
    return false;
  }
  g_recorder->place = place;
  g_recorder->page = piece_of(place);
  return true;
}

/// A first page that is the process's own; what changes in it is written to the file.
bool keep_page_here(long fd, uint8_t* page) {
  reinterpret_cast<FileState*>(page + kStateOffset)->unshared = 1;
  g_recorder->page = static_cast<uint8_t*>(map_private(kPage));
  if (!g_recorder->page) return false;
  memcpy(g_recorder->page, page, kPage);
  return write_all(fd, page, kPage, 0) == 0;
}

/// Creates the file and its first page; the path is in g_recorder then. 0, or a negative errno with
/// what it was that failed.
long create_file(UnrecordedAt* at) {
  alignas(8) static uint8_t page[kPage];  // only the opening thread is here
  memset(page, 0, sizeof(page));
  auto* header = reinterpret_cast<FileHeader*>(page);
  *at = kAtCreation;
  long fd = create_recording_file(g_folder, header, g_recorder->path, sizeof(g_recorder->path));
  if (fd < 0) return fd;
  *at = kAtFirstPage;
  remember_command(header->command);
  header->stack_mode = g_config.stacks;
  header->free_stacks = g_config.free_stacks;
  header->rank_plus_one = g_config.rank_plus_one;
  seal_header(header);
  auto* job = reinterpret_cast<JobPlace*>(page + kJobOffset);
  *job = g_config.job;
  seal_job_place(header->recording_id, job);
  auto* shared = reinterpret_cast<FileState*>(page + kStateOffset);
  // The system's whole page: a store to a mapped one may need room on the disk for all of it.
  shared->next_offset = system_page();
  shared->pid_namespace = pid_namespace();
  long error = exceeds_file_limit(system_page()) ? -EFBIG : allocate(fd, 0, system_page());
  if (error == 0) error = write_all(fd, page, kPage, 0);
  if (error == 0 && !keep_page_in_arena(fd, page)) {
    g_recorder->is_mappable = promises_pages(fd);
    if (g_recorder->is_mappable) g_recorder->page = map_shared(fd, 0, kPage);
    if (!g_recorder->page && !keep_page_here(fd, page)) error = -ENOMEM;
  }
  sys(SYS_close, fd);
  if (error < 0) sys(SYS_unlinkat, AT_FDCWD, sys_ptr(g_recorder->path), 0);
  g_recorder->recording_id = header->recording_id;
  g_recorder->pid = header->pid;
  return error;
}

/// What the process is from its first event on.
State open_recording_of_this_process() {
  if (!g_folder[0]) return kOff;
  forget_unrecorded();
  if (!g_recorder) {
    g_recorder = static_cast<Recorder*>(map_private(sizeof(Recorder)));
    if (!g_recorder) return kOff;
  } else {
    forget_parent();
  }
  UnrecordedAt at;
  if (long error = create_file(&at); error < 0) {
    return begin_unrecorded(at, error) ? kUnrecordable : kOff;
  }
  prepare_python();
  prepare_native();
  return kRecording;
}

}  // namespace

HOT_DATA volatile uint32_t* g_state = g_unset;
bool g_sandboxed;

/// What tell_own_rank() was told, into the file: by whoever comes later, it or the opening thread.
static void write_own_rank() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);  // the config, the page: one of both sees the other's
  const uint32_t rank_plus_one = g_config.rank_plus_one;
  FileState* shared = file_state();
  if (rank_plus_one == 0 || !shared || shared->unshared) return;
  auto* header = reinterpret_cast<FileHeader*>(g_recorder->page);
  auto* job = reinterpret_cast<JobPlace*>(g_recorder->page + kJobOffset);
  header->rank_plus_one = rank_plus_one;
  job->launcher = g_config.job.launcher, job->world_size = g_config.job.world_size;
  job->crc32c = job_crc(header->recording_id, *job);
}

bool begin_recording() {
  if (g_sandboxed) return false;
  if (g_state == g_unset) {
    volatile uint32_t* page = g_folder[0] ? make_state_page() : nullptr;
    if (!page) {
      __atomic_store_n(&g_unset[0], kOff, __ATOMIC_RELAXED);
      return false;
    }
    volatile uint32_t* expected = g_unset;
    if (!__atomic_compare_exchange_n(&g_state, &expected, page, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
      sys(SYS_munmap, sys_ptr(const_cast<uint32_t*>(page)), kPage);
    }
  }
  uint32_t expected = kUnset;
  if (__atomic_compare_exchange_n(g_state, &expected, kOpening, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE)) {
    const State next = open_recording_of_this_process();
    // Never 0, which is what a new thread carries, and random, as a PID may come again in a
    // grandchild.
    if (next == kRecording) {
      __atomic_store_n(g_state + 1, static_cast<uint32_t>(g_recorder->recording_id) | 1,
                       __ATOMIC_RELAXED);
    }
    __atomic_store_n(g_state, next, __ATOMIC_RELEASE);
    if (g_config.job.launcher == format::kOwnGroup) write_own_rank();
    return next == kRecording;
  }
  // Another thread opens the file, which takes under a millisecond; wait at most about a second for
  // it.
  for (int i = 0; i < 1000 && __atomic_load_n(g_state, __ATOMIC_ACQUIRE) == kOpening; ++i) {
    int64_t wait[2] = {0, 1000000};
    sys(SYS_nanosleep, sys_ptr(wait));
  }
  return state() == kRecording;
}

void freeze() {
  uint32_t now = state();
  bool has_file = now == kRecording || now == kPaused;  // else there is nothing of ours to count in
  if (now != kUnrecordable)                             // that only counts
    __atomic_store_n(g_state, has_file ? kFrozen : kOff, __ATOMIC_SEQ_CST);
}

FileState* file_state() {
  // In a forked child that has not begun, g_recorder is still the parent's.
  return g_recorder && g_recorder->page && state() != kUnset && state() != kOff
             ? reinterpret_cast<FileState*>(g_recorder->page + kStateOffset)
             : nullptr;
}

void tell_own_rank(uint32_t rank, uint32_t size) {
  g_config.job.launcher = format::kOwnGroup, g_config.job.world_size = size;
  g_config.rank_plus_one = rank + 1;
  write_own_rank();
}

void count_loss(LossKind kind, uint64_t events) {
  FileState* shared = file_state();
  if (!shared) return;
  __atomic_fetch_add(&shared->lost[kind], events, __ATOMIC_RELAXED);
  if (state() == kFrozen) return;
  uint64_t now = monotonic_ns();
  if (!__atomic_load_n(&shared->first_lost_ns, __ATOMIC_RELAXED)) {
    __atomic_store_n(&shared->first_lost_ns, now, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&shared->last_lost_ns, now, __ATOMIC_RELAXED);
}

void count_refusal() {
  if (!file_state()) return;  // no page of this process's own
  auto* count = reinterpret_cast<uint64_t*>(g_recorder->page + kRefusalsOffset);
  __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

/// Of a page that could not be mapped, the state as it is now.
static void mirror_state(long fd) {
  if (!file_state()->unshared || g_sandboxed) return;
  write_all(fd, file_state(), sizeof(FileState), kStateOffset);
  write_all(fd, counts(), sizeof(FileCounts), kCountsOffset);
}

void mirror(const Stage* stage, const void* from, size_t size) {
  if (g_sandboxed) return;
  long fd = open_file();
  if (fd < 0) return;
  write_all(fd, from, size, stage->offset + (static_cast<const uint8_t*>(from) - stage->base));
  sys(SYS_close, fd);
}

uint32_t write_chunk(ChunkHeader header, const void* payload) {
  if (g_sandboxed) return kLostSandboxed + 1;
  uint64_t size = sizeof(header) + header.length;
  long fd = open_file();
  if (fd < 0) return loss_of(fd) + 1;
  bool fills_place = header.type == kRawEvents && round_to_page(size) == kEventsPlaceBytes;
  uint64_t used = fills_place ? claim_used_place() : 0;
  uint64_t offset = used ? used : claim_place(size);
  if (offset == 0 || exceeds_file_limit(offset + size)) {
    if (offset != 0 && !used) unclaim_place(offset, size);
    sys(SYS_close, fd);
    return (offset == 0 ? kLostMaxDisk : kLostNoSpace) + 1;
  }
  // The payload first: a chunk without its header is "never written", not damage.
  long error = write_all(fd, payload, header.length, offset + sizeof(header));
  if (error == 0) error = write_all(fd, &header, sizeof(header), offset);
  if (error < 0 && !used && !unclaim_place(offset, size)) {
    mark_never_written(fd, offset, header.length);
  }
  if (error == 0 && header.type == kRawEvents) {
    __atomic_fetch_add(&pool()->raw_bytes, round_to_page(size), __ATOMIC_RELAXED);
    const auto* records = static_cast<const RawEvent*>(payload);
    __atomic_fetch_add(&counts()->written_events, events_among(records, header.count),
                       __ATOMIC_RELAXED);
  }
  mirror_state(fd);
  sys(SYS_close, fd);
  return error < 0 ? loss_of(error) + 1 : 0;
}

static void fill_header(ChunkHeader* header, ChunkType type, uint32_t length) {
  memset(header, 0, sizeof(*header));
  header->magic = kChunkMagic;
  header->type = type;
  header->length = length;
  header->recording_id = g_recorder->recording_id;
}

bool flush_events(Stage* stage, LossKind* why) {
  StageControl* control = stage->control();
  uint32_t sequence = static_cast<uint32_t>(control->events_published >> 32);
  uint32_t count = static_cast<uint32_t>(control->events_published);
  if (count == 0) return true;
  ChunkHeader header;
  fill_header(&header, kRawEvents, count * sizeof(RawEvent));
  header.stream = control->stream;
  header.sequence = sequence;
  header.count = count;
  header.first_ordinal = control->first_ordinal[sequence & 1];
  header.time_first_ns = time_of(stage->events()[0]);
  header.time_last_ns = time_of(stage->events()[count - 1]);
  header.crc32c = chunk_crc(header, stage->events());
  if (uint32_t error = write_chunk(header, stage->events())) {
    *why = static_cast<LossKind>(error - 1);
    return false;
  }
  control->first_ordinal[(sequence + 1) & 1] = header.first_ordinal + count;
  __atomic_store_n(&control->events_published, uint64_t{sequence + 1} << 32, __ATOMIC_RELEASE);
  if (stage->mirrored) mirror(stage, control, sizeof(*control));
  return true;
}

bool flush_definitions(Stage* stage, LossKind* why) {
  StageControl* control = stage->control();
  uint32_t sequence = static_cast<uint32_t>(control->definitions_published >> 32);
  uint32_t bytes = static_cast<uint32_t>(control->definitions_published);
  if (bytes == 0) return true;
  ChunkHeader header;
  fill_header(&header, kRawDefinitions, bytes);
  header.stream = control->stream;
  header.sequence = sequence;
  header.crc32c = chunk_crc(header, stage->definitions());
  if (uint32_t error = write_chunk(header, stage->definitions())) {
    *why = static_cast<LossKind>(error - 1);
    return false;
  }
  __atomic_store_n(&control->definitions_published, uint64_t{sequence + 1} << 32, __ATOMIC_RELEASE);
  if (stage->mirrored) mirror(stage, control, sizeof(*control));
  return true;
}

/// Gives a stage to a new stream. Both halves are empty, so nothing is at risk between the stores.
static void begin_stream(Stage* stage, uint32_t tid) {
  StageControl* control = stage->control();
  uint32_t events = static_cast<uint32_t>(control->events_published >> 32);
  control->first_ordinal[events & 1] = 0;
  control->tid = tid;
  control->stream =
      static_cast<uint32_t>(__atomic_add_fetch(&file_state()->next_stream, 1, __ATOMIC_RELAXED));
  if (stage->mirrored) mirror(stage, control, sizeof(*control));
}

static bool is_alive(uint32_t tid) { return sys(SYS_tgkill, g_recorder->pid, tid, 0) != -ESRCH; }

/// A stage whose owner died, with its halves written out. Its owner cannot come back: a tid that
/// answers ESRCH has left the process. A tid of a dead owner that a new thread carries looks alive
/// and is left alone.
static Stage* adopt_stage(uint32_t tid) {
  uint32_t count = __atomic_load_n(&g_recorder->stage_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count && i < 4096; ++i) {
    Stage* stage = &g_recorder->stages[i];
    uint32_t owner = __atomic_load_n(&stage->owner, __ATOMIC_ACQUIRE);
    if (!stage->base || owner == 0 || (owner != tid && is_alive(owner))) continue;
    if (!__atomic_compare_exchange_n(&stage->owner, &owner, tid, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
      continue;
    }
    // All that the dead owner stored, it stored before it published its last record.
    StageControl* control = stage->control();
    (void)__atomic_load_n(&control->definitions_published, __ATOMIC_ACQUIRE);
    (void)__atomic_load_n(&control->events_published, __ATOMIC_ACQUIRE);
    LossKind why;
    if (flush_definitions(stage, &why) && flush_events(stage, &why)) return stage;
    __atomic_store_n(&stage->owner, owner, __ATOMIC_RELEASE);  // keep what it holds
    return nullptr;
  }
  return nullptr;
}

static bool map_stage(Stage* stage, LossKind* why) {
  long fd = open_file();
  if (fd < 0) return *why = loss_of(fd), false;
  // Whole pages of the system, which is to map them.
  const uint64_t page = system_page(), size = round_to(kStageBytes, page);
  const uint64_t claimed_size = size + page - kPage, claimed = claim_place(claimed_size);
  if (claimed == 0) return sys(SYS_close, fd), *why = kLostMaxDisk, false;
  stage->offset = round_to(claimed, page);
  long error = exceeds_file_limit(stage->offset + size) ? -EFBIG
                                                        : allocate(fd, stage->offset, size);
  if (error == 0 && g_recorder->place) {
    ArenaPlace* place = claim_arena_place(stage->offset, kStageBytes);
    stage->in_arena = place;
    if (place) stage->base = piece_of(place);
  }
  if (error == 0 && !stage->base && g_recorder->is_mappable)
    stage->base = map_shared(fd, stage->offset, kStageBytes);
  if (error == 0 && !stage->base) {
    stage->mirrored = true;
    stage->base = static_cast<uint8_t*>(map_private(kStageBytes));
  }
  sys(SYS_close, fd);
  if (stage->base) return true;
  unclaim_place(claimed, claimed_size);
  *why = error < 0 ? loss_of(error) : kLostNoBuffer;
  return false;
}

Stage* claim_stage(uint32_t tid, LossKind* why) {
  if (g_sandboxed) return *why = kLostSandboxed, nullptr;
  Stage* stage = adopt_stage(tid);
  if (!stage) {
    Stage made{};
    if (__atomic_load_n(&g_recorder->stage_count, __ATOMIC_RELAXED) >= 4096) {
      return *why = kLostNoBuffer, nullptr;
    }
    if (!map_stage(&made, why)) return nullptr;
    uint32_t index = __atomic_fetch_add(&g_recorder->stage_count, 1, __ATOMIC_ACQ_REL);
    if (index >= 4096) {  // several threads at once
      unmap_piece(made.base, kStageBytes, made.in_arena);
      return *why = kLostNoBuffer, nullptr;
    }
    ChunkHeader header;
    fill_header(&header, kStage, kStageBytes - sizeof(header));
    header.crc32c = chunk_crc(header, nullptr);
    memcpy(made.base, &header, sizeof(header));
    __atomic_fetch_add(&counts()->stages, 1, __ATOMIC_RELAXED);
    if (made.in_arena) list_stage(g_recorder->place, place_of(made.base));
    stage = &g_recorder->stages[index];
    stage->offset = made.offset;
    stage->mirrored = made.mirrored;
    stage->in_arena = made.in_arena;
    stage->base = made.base;
    __atomic_store_n(&stage->owner, tid, __ATOMIC_RELEASE);
    if (stage->mirrored) mirror(stage, stage->base, sizeof(header));
  }
  begin_stream(stage, tid);
  return stage;
}

uint64_t event_count() {
  if (!file_state()) return 0;
  uint64_t total = 0;
  uint32_t count = __atomic_load_n(&g_recorder->stage_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count && i < 4096; ++i) {
    if (!g_recorder->stages[i].base) continue;
    StageControl* control = g_recorder->stages[i].control();
    uint64_t published = __atomic_load_n(&control->events_published, __ATOMIC_ACQUIRE);
    total += control->first_ordinal[published >> 32 & 1] + static_cast<uint32_t>(published);
  }
  return total;
}

}  // namespace gpumemprof::probe
