#include "probe/stream.h"

#include <string.h>
#include <sys/mman.h>

#include "probe/arena.h"
#include "probe/call_after.h"
#include "probe/clock.h"
#include "probe/hot.h"
#include "probe/sys.h"

namespace gpumemprof::probe {

constinit FirstEventCall g_at_first_event = nullptr;
namespace {

using namespace format;

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/// What the thread knows of itself. Zero at its birth; plain data, so it outlives every destructor.
/// What an event reads and writes of it is one cache line. On x86-64, that is: elsewhere the
/// thread's own block may be aligned to less, and a library that is opened later, as by a program
/// that attaches, cannot ask for more.
#if defined(__x86_64__)
struct alignas(64) ThreadLocal {
#else
struct ThreadLocal {
#endif
  uint32_t incarnation;  // of the recording that `stream` belongs to; 0: none
  uint32_t busy;         // inside record(): a signal handler that allocates must not enter again
  Stream stream;
  uint32_t backoff;  // events to drop before asking for a stage again
};
static_assert(offsetof(ThreadLocal, stream) + offsetof(Stream, refused) <= 64);
thread_local ThreadLocal t_thread __attribute__((tls_model("initial-exec")));

constexpr uint32_t kRetryEvents = 4096;

/// Tells the file who writes this stream. The name is the kernel's (15 bytes).
void define_thread(Stream* stream, uint32_t tid) {
  char body[4 + 16] = {};
  memcpy(body, &tid, 4);
  sys(SYS_prctl, 16 /* PR_GET_NAME */, sys_ptr(body + 4));
  define(stream, kDefThread, body, 4 + strnlen(body + 4, 15));
}

/// The private tables for a stage: those of the thread before, emptied, or new ones.
Caches* prepare_caches(Stage* stage, Caches* fresh) {
  if (!stage->caches) return stage->caches = fresh;
  sys(SYS_munmap, sys_ptr(fresh), sizeof(Caches));
  sys(SYS_madvise, sys_ptr(stage->caches), sizeof(Caches), MADV_DONTNEED);  // all zero again
  return stage->caches;
}

bool begin_stream(ThreadLocal* self) {
  LossKind why = g_sandboxed ? kLostSandboxed : kLostNoBuffer;
  // The tables come first: a stage in the file that could then not be used would stay there.
  auto* fresh = g_sandboxed ? nullptr : static_cast<Caches*>(map_private(sizeof(Caches)));
  uint32_t tid = fresh ? static_cast<uint32_t>(sys(SYS_gettid)) : 0;
  Stage* stage = fresh ? claim_stage(tid, &why) : nullptr;
  if (!stage) {
    if (fresh) sys(SYS_munmap, sys_ptr(fresh), sizeof(Caches));
    self->backoff = kRetryEvents;
    count_loss(why);
    return false;
  }
  Caches* caches = prepare_caches(stage, fresh);
  caches->next_string = caches->next_frame = caches->next_stack = 1;
  StageControl* control = stage->control();
  const auto turn = static_cast<uint32_t>(control->events_published >> 32);
  self->stream = Stream{.events = stage->events(),
                        .control = control,
                        .mirrored = stage->mirrored,
                        .salt = salt(control->stream, turn),
                        .count = 0,
                        .step = kNoStep,
                        .caches = caches,
                        .stage = stage,
                        .refused = 0,
                        .refusal = 0};
  self->incarnation = incarnation();
  define_thread(&self->stream, tid);
  return true;
}

/// Makes room in the events half. False where the file refuses: what is there stays, new events are
/// counted.
bool make_room(Stream* s) {
  if (s->refused && s->refused % kRetryEvents != 0) {
    s->refused += 1;
    count_loss(static_cast<LossKind>(s->refusal));
    return false;
  }
  LossKind why = kLostIo;
  if (!flush_events(s->stage, &why)) {
    s->refused += 1;
    s->refusal = why;
    count_loss(why);
    return false;
  }
  s->refused = 0;
  s->count = 0;
  s->step = kNoStep;
  StageControl* control = s->control;
  s->salt = salt(control->stream, static_cast<uint32_t>(control->events_published >> 32));
  // The program may have loaded an interpreter meanwhile. A few times only: looking takes the
  // loader's lock.
  static uint32_t looks;
  if (!g_python.ready && __atomic_load_n(&looks, __ATOMIC_RELAXED) < 20) {
    __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
    prepare_python();
  }
  return true;
}

constexpr uint32_t kEventsAhead = 3;  // more than a cache line

inline void publish(Stream* s, uint32_t added) {
  StageControl* control = s->control;
  uint64_t sequence = control->events_published >> 32 << 32;
  s->count += added;
  __atomic_store_n(&control->events_published, sequence | s->count, __ATOMIC_RELEASE);
  // The next event's line: it was written a turn ago and has left the caches, and a store that
  // misses them holds up every store of the program after it. Past the end it asks in vain.
  __builtin_prefetch(s->events + s->count + kEventsAhead, 1);
  if (UNLIKELY(s->mirrored)) {
    mirror(s->stage, s->events + s->count - added, added * sizeof(RawEvent));
    mirror(s->stage, control, sizeof(*control));
  }
}

/// The part of record() that needs the stream, where an event is more than one record, or its half
/// may be full. `detail`: of the kRawWide, 0 where there is nothing to tell; `device_free` as well,
/// or null.
__attribute__((noinline)) void append(Stream* s, RawAction action, uint64_t time_ns,
                                      uint64_t address, uint64_t size, uint64_t requested,
                                      uint32_t device_class, uint32_t stack, int64_t step,
                                      const uint64_t* totals, uint32_t detail = 0,
                                      const uint64_t* device_free = nullptr) {
  const uint32_t most = device_free ? 6 : 4;  // what belongs together is never torn apart
  if (UNLIKELY(s->count + most > kStageEvents) && !make_room(s)) return;
  RawEvent* at = s->events + s->count;
  uint32_t n = 0;
  if (UNLIKELY(device_free != nullptr)) {
    at[n++] = pack(time_ns, 0, device_class, 0, kRawWide, kDetailDeviceFree, s->salt);
    at[n++] = pack(time_ns, *device_free, device_class, 0, kRawTotals, 0, s->salt);
  }
  // A free belongs to no step: the last owner may be anywhere.
  const bool is_other_step = step != s->step && (action == kRawAlloc || action == kRawOom);
  if (UNLIKELY(is_other_step)) {
    s->step = step;
    at[n++] = pack_step(time_ns, step != kNoStep, step, s->salt);
  }
  if (UNLIKELY(size > kSizeMask || requested || detail || is_other_step)) {
    at[n++] = pack(time_ns, requested, device_class, size >> 37, kRawWide, detail, s->salt);
  }
  at[n++] = pack(time_ns, address, device_class, size, action, stack, s->salt);
  if (UNLIKELY(action == kRawOom)) count_refusal();
  if (totals) {
    at[n++] = pack(time_ns, totals[0], device_class, totals[1] >> 9, kRawTotals,
                   static_cast<uint32_t>(totals[1] & 511), s->salt);
  }
  publish(s, n);
}

constexpr uint32_t kNoPlaceLeft = UINT32_MAX;

/// The id of a placement in this stream, defined on first sight; kNoPlaceLeft where that cannot be.
uint32_t place_id(Stream* s, const Placement& place) {
  if (place == Placement{}) return 0;
  Caches* caches = s->caches;
  uint32_t slot = 0;
  for (; slot < kPlacements && caches->place_ids[slot]; ++slot) {
    if (caches->placements[slot] == place) return caches->place_ids[slot];
  }
  if (slot == kPlacements) slot = caches->next_place % kPlacements;
  if (caches->next_place >= kMaxPlacement) return kNoPlaceLeft;
  struct __attribute__((packed)) {
    uint32_t id;
    Placement place;
  } body{caches->next_place + 1, place};
  if (!define(s, kDefPlacement, &body, sizeof(body))) return kNoPlaceLeft;
  caches->placements[slot] = place;
  caches->place_ids[slot] = ++caches->next_place;
  return body.id;
}

/// What the kRawWide before an event says of it.
uint32_t detail_of(Stream* s, const AllocatorSays& says) {
  uint32_t id = place_id(s, says.place);
  if (UNLIKELY(id == kNoPlaceLeft)) return id;
  return id << 4 | (says.is_delayed ? kDetailDelayedFree : kNoDetail);
}

/// Out of line: the first event of a process or thread, a forked child, recording switched off.
__attribute__((noinline, cold)) Stream* slow_stream(ThreadLocal* self) {
  // Here a thread may learn that another one has opened the recording: all of that is to be seen.
  uint32_t now = __atomic_load_n(state_page(), __ATOMIC_ACQUIRE);
  if (now == kFrozen) count_loss(kLostSandboxed);
  if (now == kOff || now == kPaused || now == kFrozen || now == kUnrecordable) return nullptr;
  if (now != kRecording && !begin_recording()) return nullptr;
  if (self->incarnation == incarnation()) return &self->stream;
  if (self->incarnation != 0) {  // in a forked child: what is here is the parent's
    self->incarnation = 0;
    self->backoff = 0;
  }
  if (self->backoff) {
    self->backoff -= 1;
    count_loss(g_sandboxed ? kLostSandboxed : kLostNoBuffer);
    return nullptr;
  }
  if (!begin_stream(self)) return nullptr;
  if (g_at_first_event) {
    self->busy = 0;
    g_at_first_event();
    self->busy = 1;
  }
  return &self->stream;
}

}  // namespace

namespace {

/// Calls `use` with the calling thread's stream, unless this happens inside another record(); where
/// there is none, `otherwise`. `counts`: toward a call that is wanted.
template <class Use, class Otherwise>
inline void with_stream(Use use, Otherwise otherwise, int64_t blocks = 0, bool counts = true) {
  ThreadLocal* self = &t_thread;
  if (UNLIKELY(self->busy)) {
    if (state() == kRecording) count_loss(kLostReentered);
    return;
  }
  self->busy = 1;
  __asm__ volatile("" ::: "memory");
  Stream* s = &self->stream;
  if (UNLIKELY(state() != kRecording || self->incarnation != incarnation())) {
    s = slow_stream(self);
    if (!s) otherwise();
  }
  if (s) use(s);
  __asm__ volatile("" ::: "memory");
  self->busy = 0;
  if (counts) one_more_event(blocks);
}

template <class Use>
inline void with_stream(Use use) {
  with_stream(use, [] {});
}

/// An event of a process that has no file.
__attribute__((noinline, cold)) void count_without_file(RawAction action, uint64_t size) {
  if (state() == kUnrecordable) count_unrecorded(action == kRawAlloc ? size : 0);
}

/// One event. `class_of(stream)` answers its device class; kDeviceClasses where there are too many.
/// `is_second`: the end of a free that was told already.
template <class ClassOf>
inline void record_one(RawAction action, uint64_t address, uint64_t size, uint64_t requested,
                       const uint64_t* totals, const Label* label, int64_t step, ClassOf class_of,
                       const AllocatorSays* says = nullptr, bool is_second = false,
                       bool counts = true) {
  const auto use = [&](Stream* s) {
    uint32_t device_class = class_of(s);
    uint32_t detail = says ? detail_of(s, *says) : 0;
    if (UNLIKELY(address > kAddressMask || device_class == kDeviceClasses ||
                 detail == kNoPlaceLeft)) {
      count_loss(kLostWide);
      return;
    }
    const bool is_free = action != kRawAlloc && action != kRawOom;
    const bool wants_stack = !is_free || g_config.free_stacks;
    if (wants_stack) prefetch_frames(s->caches->walked);
    uint64_t now = event_time_ns(s);
    uint32_t stack = wants_stack ? current_stack(s, label, is_free) : 0;
    // Nearly all events are one record. The other arguments then need not be handed on.
    const bool is_one = !totals && !requested && !says && size <= kSizeMask && action != kRawOom &&
                        (step == s->step || action != kRawAlloc);
    if (__builtin_expect(is_one && s->count + 4 <= kStageEvents, 1)) {
      s->events[s->count] = pack(now, address, device_class, size, action, stack, s->salt);
      return publish(s, 1);
    }
    append(s, action, now, address, size, requested, device_class, stack, step, totals, detail,
           says && says->has_device_free ? &says->device_free : nullptr);
  };
  const int64_t blocks = action == kRawAlloc ? 1 : action == kRawOom || is_second ? 0 : -1;
  with_stream(use, [&] { count_without_file(action, size); }, blocks, counts);
}

/// The class in this stream of the device that `key` stands for; 0 where it has none yet.
inline uint32_t known_class(const Stream* s, uint16_t key) {
  const Caches* caches = s->caches;
  for (uint32_t i = 0; i < caches->device_count; ++i) {
    if (caches->devices[i] == key) return i + 2;
  }
  return 0;
}

/// Defines one with `body`, whose first byte becomes the class.
__attribute__((noinline, cold)) uint32_t new_class(Stream* s, uint16_t key, uint8_t* body,
                                                   size_t length) {
  Caches* caches = s->caches;
  if (caches->device_count + 2 >= kDeviceClasses) return kDeviceClasses;
  uint32_t device_class = caches->device_count + 2;
  body[0] = static_cast<uint8_t>(device_class);
  if (!define(s, kDefDevice, body, length)) return kDeviceClasses;
  caches->devices[caches->device_count++] = key;
  return device_class;
}

__attribute__((noinline, cold)) uint32_t new_memory(Stream* s, uint16_t key, const Memory& memory) {
  uint8_t body[5 + sizeof(memory.name)] = {0, static_cast<uint8_t>(memory.device.type),
                                           static_cast<uint8_t>(memory.device.index), memory.layer,
                                           memory.size_is_requested};
  size_t length = strnlen(memory.name, sizeof(memory.name));
  memcpy(body + 5, memory.name, length);
  return new_class(s, key, body, 5 + length);
}

}  // namespace

HOT void record(RawAction action, uint64_t address, uint64_t size, uint32_t device_class,
                const uint64_t* totals) {
  record_one(action, address, size, 0, totals, nullptr, kNoStep,
             [=](Stream*) { return device_class; });
}

/// The class of a device that has no other name.
static uint32_t plain_class(Stream* s, Device device) {
  uint8_t type = static_cast<uint8_t>(device.type), index = static_cast<uint8_t>(device.index);
  const uint16_t key = static_cast<uint16_t>(type << 8 | index);
  if (uint32_t known = known_class(s, key)) return known;
  uint8_t body[5] = {0, type, index, 2 /* Layer::kAllocator */, 0};
  return new_class(s, key, body, sizeof(body));
}

void record_device(RawAction action, uint64_t address, uint64_t size, Device device,
                   uint64_t allocated, uint64_t reserved, const AllocatorSays* says) {
  const uint64_t totals[2] = {allocated, reserved};
  const uint64_t requested = says && says->requested != size ? says->requested : 0;
  record_one(
      action, address, size, requested, totals, nullptr, kNoStep,
      [=](Stream* s) { return plain_class(s, device); }, says);
}

void record_completed(uint64_t address, Device device) {
  record_one(
      kRawFreeCompleted, address, 0, 0, nullptr, nullptr, kNoStep,
      [=](Stream* s) { return plain_class(s, device); }, nullptr, true);
}

void record_segment(RawDetail what, uint64_t address, uint64_t size, Device device,
                    const Placement& place) {
  with_stream([&](Stream* s) {
    uint32_t device_class = plain_class(s, device), id = place_id(s, place);
    if (UNLIKELY(address > kAddressMask || device_class == kDeviceClasses || id == kNoPlaceLeft)) {
      count_loss(kLostWide);
      return;
    }
    prefetch_frames(s->caches->walked);
    uint64_t now = event_time_ns(s);
    const bool is_free = what == kDetailSegmentFree || what == kDetailSegmentUnmap;
    uint32_t stack = current_stack(s, nullptr, is_free);
    if (UNLIKELY(s->count + 2 > kStageEvents) && !make_room(s)) return;
    RawEvent* at = s->events + s->count;
    at[0] = pack(now, 0, device_class, 0, kRawWide, id << 4 | what, s->salt);
    at[1] = pack(now, address, device_class, size >> 9, kRawTotals, stack, s->salt);
    publish(s, 2);
  });
}

HOT bool record_mark(RawMarkKind kind, uint64_t address, uint64_t value, const char* text,
                     size_t length) {
  bool done = false;
  with_stream([&](Stream* s) {
    uint32_t string = text ? define_string(s, text, length) : 0;
    if (kind == format::kMarkCopied) string = static_cast<uint32_t>(value >> 37);
    if (UNLIKELY(address > kAddressMask || string > kMaxMarkString || (text && !string))) {
      count_loss(kLostWide);
      return;
    }
    if (UNLIKELY(s->count + 1 > kStageEvents) && !make_room(s)) return;
    const uint64_t now = event_time_ns(s);
    s->events[s->count] = pack_mark(now, kind, address, value, string, s->salt);
    publish(s, 1);
    done = true;
  });
  return done;
}

bool tell_allocator(const void* body, size_t length) {
  bool done = false;
  with_stream([&](Stream* s) { done = define(s, kDefAllocator, body, length); });
  return done;
}

void record_in(RawAction action, uint64_t address, uint64_t size, const Memory& memory,
               const Label& label, uint64_t requested) {
  record_one(
      action, address, size, requested, nullptr,
      label.length || label.is_code_alone ? &label : nullptr, label.step,
      [&](Stream* s) {
        const uint16_t key = static_cast<uint16_t>(0x8000 | memory.id);
        const uint32_t known = known_class(s, key);
        return known ? known : new_memory(s, key, memory);
      },
      nullptr, false, memory.layer != kHostLayer);
}

bool define(Stream* s, DefinitionType type, const void* body, size_t length) {
  StageControl* control = s->control;
  size_t need = sizeof(DefinitionHeader) + length;
  if (need > kStageDefinitionBytes) return false;
  uint64_t published = control->definitions_published;
  if (static_cast<uint32_t>(published) + need > kStageDefinitionBytes) {
    LossKind why;
    if (!flush_definitions(s->stage, &why)) return false;
    published = control->definitions_published;
  }
  uint8_t* at = s->stage->definitions() + static_cast<uint32_t>(published);
  DefinitionHeader header{type, 0, static_cast<uint16_t>(length)};
  memcpy(at, &header, sizeof(header));
  memcpy(at + sizeof(header), body, length);
  uint8_t parity = salt(control->stream, static_cast<uint32_t>(published >> 32));
  for (size_t i = 0; i < need; ++i) parity ^= at[i];
  at[offsetof(DefinitionHeader, parity)] = parity;
  __atomic_store_n(&control->definitions_published, published + need, __ATOMIC_RELEASE);
  if (s->mirrored) {
    mirror(s->stage, at, need);
    mirror(s->stage, control, sizeof(*control));
  }
  return true;
}

}  // namespace gpumemprof::probe
