#include "probe/phases.h"

#include <string.h>

#include "probe/copies.h"
#include "probe/hot.h"
#include "probe/scopes_context.h"

namespace gpumemprof::probe {
namespace {

constexpr uint32_t kSlots = 250;
constexpr uint32_t kNoSlot = 255;  // in the lowest byte of a phase's number

/// An open phase. `id` is stored last and cleared first: a reader of the name compares it before and
/// after.
struct Slot {
  uint64_t id;  // serial << 8 | its index; 0: free, 1: being filled
  uint32_t incarnation;
  uint32_t length;
  char name[kMostPhaseName];
};
Slot g_slots[kSlots];
uint64_t g_serial;

/// `context`: of asynchronous code, in which it was begun; 0: the thread's own.
struct Entry {
  uint64_t id, hash, context;
};
/// What the thread has begun. Zero at its birth; plain data, so it outlives every destructor.
struct Open {
  uint32_t incarnation;  // of the recording that all of it belongs to
  uint16_t count;
  uint16_t unseen;  // begun and not in `entries`, for which there was no room
  Entry entries[14];
};
constexpr uint16_t kMostEntries = sizeof(Open::entries) / sizeof(Entry);
thread_local Open t_open __attribute__((tls_model("initial-exec")));

Slot* slot_of(uint64_t id) {
  const uint32_t index = static_cast<uint32_t>(id & 255);
  return index < kSlots ? &g_slots[index] : nullptr;
}

bool is_open(const Slot* slot, uint64_t id) {
  return __atomic_load_n(&slot->id, __ATOMIC_ACQUIRE) == id && slot->incarnation == incarnation();
}

uint64_t context_here() {
  const uint64_t context = current_context();
  return context == kBaseContext ? 0 : context;
}

/// Of tasks that take turns on the thread each has its own phases. A task that has begun none may
/// have been started by the one that began the last, which is then its phase, too.
const Entry* of_this_context(const Open* open) {
  const Entry* last = &open->entries[open->count - 1];
  uint64_t any = 0;
  for (uint16_t i = 0; i < open->count; ++i) any |= open->entries[i].context;
  if (__builtin_expect(any == 0, 1)) return last;
  const uint64_t here = context_here();
  for (uint16_t i = open->count; i > 0; --i) {
    const Entry* entry = &open->entries[i - 1];
    if (entry->context == here && is_open(slot_of(entry->id), entry->id)) return entry;
  }
  return here ? last : nullptr;
}

/// Takes away what ended, on this thread or another, and what is a parent process's. Null where no
/// name can be told.
const Entry* innermost() {
  Open* open = &t_open;
  if (__builtin_expect(open->count == 0 && open->unseen == 0, 1)) return nullptr;
  if (open->incarnation != incarnation()) open->count = open->unseen = 0;
  while (open->count) {
    const Entry& last = open->entries[open->count - 1];
    if (is_open(slot_of(last.id), last.id)) break;
    open->count -= 1;
  }
  return open->count && !open->unseen ? of_this_context(open) : nullptr;
}

/// A free slot with the name in it, and the number that opens it; the number alone where all are
/// taken.
uint64_t take_slot(const char* name, uint32_t length) {
  const uint64_t serial = __atomic_add_fetch(&g_serial, 1, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < kSlots; ++i) {
    const uint32_t index = static_cast<uint32_t>((serial + i) % kSlots);
    Slot* slot = &g_slots[index];
    uint64_t free = 0;
    if (!__atomic_compare_exchange_n(&slot->id, &free, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
      continue;
    }
    slot->incarnation = incarnation();
    slot->length = length;
    memcpy(slot->name, name, length);
    const uint64_t id = serial << 8 | index;
    __atomic_store_n(&slot->id, id, __ATOMIC_RELEASE);
    return id;
  }
  return serial << 8 | kNoSlot;
}

void enter(uint64_t id, uint64_t hash) {
  Open* open = &t_open;
  innermost();  // makes room
  open->incarnation = incarnation();
  if (open->unseen || open->count == kMostEntries || !slot_of(id)) {
    open->unseen += 1;
    count_loss(format::kLostPhase);
    return;
  }
  open->entries[open->count] = {id, hash, know_contexts() ? context_here() : 0};
  // A signal handler that allocates in between sees the phase around it, never half of one.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  __atomic_store_n(&open->count, static_cast<uint16_t>(open->count + 1), __ATOMIC_RELAXED);
}

bool is_listed(uint64_t id) {
  for (uint16_t i = 0; i < t_open.count; ++i) {
    if (t_open.entries[i].id == id) return true;
  }
  return false;
}

}  // namespace

uint64_t begin_phase(const char* name) {
  if (state() == kUnset) begin_recording();
  if (state() != kRecording) return 0;
  auto length = name ? static_cast<uint32_t>(length_of_text(name, kMostPhaseName)) : 0;
  if (length == 0) {  // who asks for the name takes none for a phase that has ended
    name = "(no name)";
    length = static_cast<uint32_t>(strlen(name));
  }
  const uint64_t id = take_slot(name, length);
  // What cannot be written is counted there; the stacks have the name all the same.
  record_mark(format::kMarkPhaseBegin, id, 0, name, length);
  enter(id, hash_text(name, length, 0x8ebc6af09c88c6e3u));
  return id;
}

void end_phase(uint64_t phase) {
  if (phase >> 8 == 0 || phase >> 8 > __atomic_load_n(&g_serial, __ATOMIC_RELAXED)) return;
  Slot* slot = slot_of(phase);
  if (slot) {
    const bool is_ours = is_open(slot, phase);
    uint64_t id = phase;
    if (!__atomic_compare_exchange_n(&slot->id, &id, 0, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
      return;
    }
    if (!is_ours) return;  // the parent's: not in this recording
  }
  if (t_open.unseen && t_open.incarnation == incarnation() && !is_listed(phase)) {
    t_open.unseen -= 1;
  }
  innermost();
  if (state() == kRecording) record_mark(format::kMarkPhaseEnd, phase, 0, nullptr, 0);
}

HOT uint64_t phase_hash() {
  const Entry* entry = innermost();
  return entry ? entry->hash : 0;
}

uint32_t phase_name(char out[kMostPhaseName]) {
  const Entry* entry = innermost();
  if (!entry) return 0;
  const Slot* slot = slot_of(entry->id);
  const uint32_t length = slot->length < kMostPhaseName ? slot->length : kMostPhaseName;
  memcpy(out, slot->name, length);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return is_open(slot, entry->id) ? length : 0;
}

void end_step() {
  if (state() == kUnset) begin_recording();
  if (state() != kRecording && state() != kPaused) return;
  // A forked child counts from 0: incarnation << 32 | steps.
  static uint64_t steps;
  uint64_t known = __atomic_load_n(&steps, __ATOMIC_RELAXED), next;
  do {
    const bool is_ours = known >> 32 == incarnation();
    next = is_ours ? known + 1 : uint64_t{incarnation()} << 32 | 1;
  } while (!__atomic_compare_exchange_n(&steps, &known, next, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  end_watching_all_copies();
  if (state() == kRecording) {
    record_mark(format::kMarkStep, 0, static_cast<uint32_t>(next) - 1, nullptr, 0);
  }
}

}  // namespace gpumemprof::probe
