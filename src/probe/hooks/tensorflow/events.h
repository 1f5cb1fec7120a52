// A thread's current work in TensorFlow's allocators, and the events that result.
#pragma once

#include "probe/counters.h"
#include "probe/hooks/tensorflow/annotation.h"
#include "probe/hooks/tensorflow/callers.h"
#include "probe/hooks/tensorflow/pools.h"
#include "probe/recorder.h"

namespace gpumemprof::probe::tensorflow {

/// Zero at the thread's birth; plain data, so it outlives every destructor.
struct ThreadState {
  // The frame in which a pool is being called, and that pool: deeper allocations are regions. An
  // address, not a counter, because an exception may unwind it.
  const char* pool_frame;
  const Pool* pool;
  const char* malloc_frame;     // in which an AlignedMalloc runs: one form of it may call another
  void *region, *freed_region;  // told by one function already, when another one of it comes
  const void* freeing;          // AlignedSizedFree may call AlignedFree
  const uint64_t* annotation;   // TensorFlow's of this thread
  const Pool* last_pool;
  // The frame of a running operation that has no annotation, and its name.
  const char* async_frame;
  StringView async_name;
  const void* tensor_caller;  // that asked for a tensor's memory last (callers.h)
};
extern constinit thread_local ThreadState t_state __attribute__((tls_model("initial-exec")));

/// Whether `frame` is further up the stack than the place where this is inlined.
inline bool is_inside(const char* frame) {
  return frame && static_cast<const char*>(__builtin_frame_address(0)) < frame;
}

using namespace format;

inline bool is_wanted() { return state() != kOff || is_counting(); }
inline bool is_recorded(const Memory& memory) {
  return state() != kOff && !(g_config.no_cpu && memory.device.type == kCpuType);
}

#define ALWAYS_INLINE inline __attribute__((always_inline))

ALWAYS_INLINE Label label_of(ThreadState* t) {
  Label label = current_label(&t->annotation);
  if (!label.length && is_inside(t->async_frame)) {
    label.text = t->async_name.text;
    label.length = static_cast<uint32_t>(t->async_name.length);
  }
  return label;
}

ALWAYS_INLINE void on_alloc(ThreadState* t, const Memory& memory, void* p, size_t size,
                            size_t requested) {
  uint64_t address = reinterpret_cast<uintptr_t>(p);
  if (is_counting()) count_alloc(address, size, memory.device);
  if (!is_recorded(memory)) return;
  record_in(kRawAlloc, address, size, memory, label_of(t), requested == size ? 0 : requested);
}

/// A block of an object of TensorFlow's own, by its class.
__attribute__((noinline, cold)) inline void on_own_alloc(ThreadState* t, void* p, size_t size,
                                                         const char* owner) {
  uint64_t address = reinterpret_cast<uintptr_t>(p);
  if (is_counting()) count_alloc(address, size, kAligned.device);
  if (!is_recorded(kAligned)) return;
  Label label = current_label(&t->annotation);
  label.place = kInternal;
  label.text = owner;
  label.length = static_cast<uint32_t>(strlen(owner));
  record_in(kRawAlloc, address, size, kAligned, label);
}

__attribute__((noinline, cold)) inline void on_refused(ThreadState* t, const Memory& memory,
                                                       size_t size) {
  if (size && is_recorded(memory)) record_in(kRawOom, 0, size, memory, label_of(t));
}

/// Before the real free: afterwards another thread may get the address, and its allocation would
/// come first.
ALWAYS_INLINE void on_free(const Memory& memory, const void* p) {
  uint64_t address = reinterpret_cast<uintptr_t>(p);
  if (is_counting()) count_free(address, memory.device);
  if (is_recorded(memory)) record_in(kRawFreeCompleted, address, 0, memory, Label{});
}

/// A pool got a region, through whichever function reports it first.
void on_region(ThreadState* t, void* p, size_t size);
/// How many entries of the table of regions were ever used.
extern uint32_t g_region_end;
/// True if `p` is a region: then its free is recorded.
bool look_for_region(ThreadState* t, const void* p);
inline bool on_region_free(ThreadState* t, const void* p) {
  return (t->freed_region || __atomic_load_n(&g_region_end, __ATOMIC_RELAXED)) &&
         look_for_region(t, p);
}

}  // namespace gpumemprof::probe::tensorflow
