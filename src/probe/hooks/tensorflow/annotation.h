// What TensorFlow says that the calling thread works on: the operation and the step.
//
// ScopedMemoryDebugAnnotation::ThreadMemoryDebugAnnotation() keeps it, profiler or not. Up to 2.16
// it begins {const char* op; int64 step; …}, from then on {string_view op; int64 step; …}, and a
// string_view begins with its length: no address is that small (vm.mmap_min_addr), no name that
// long.
#pragma once

#include <string.h>

#include "probe/stream.h"

namespace gpumemprof::probe::tensorflow {

inline constexpr uint64_t kLeastAddress = 65536;
inline constexpr size_t kMostName = 1024;

enum Trust : uint32_t { kUntested = 0, kTrusted = 64, kDistrusted = ~0u };
extern uint32_t
    g_trust;  // how many names were found sound; below kTrusted they are looked at first

/// TensorFlow's annotation of the calling thread; null if there is none. Queried once per thread.
const uint64_t* find_annotation();
/// False, and no annotation is used from then on, if the bytes are not mapped or not printable.
bool is_sound(const char* text, size_t length);

/// `words`: of the calling thread, or null if not queried yet.
inline Label current_label(const uint64_t** words_of_thread) {
  Label label{"<tensorflow>"};
  uint32_t trust = __atomic_load_n(&g_trust, __ATOMIC_RELAXED);
  if (__builtin_expect(trust == kDistrusted, 0)) return label;
  if (__builtin_expect(!*words_of_thread, 0) && !(*words_of_thread = find_annotation())) {
    return label;
  }
  const uint64_t* words = *words_of_thread;
  if (words[0] == 0) return label;
  bool is_view = words[0] < kLeastAddress;
  if (is_view && words[1] < kLeastAddress) return label;
  label.text = reinterpret_cast<const char*>(words[is_view ? 1 : 0]);
  size_t length = is_view ? words[0] : strnlen(label.text, kMostName);
  if (length > kMostName) length = kMostName;
  if (__builtin_expect(trust < kTrusted, 0) && !is_sound(label.text, length)) return label;
  label.length = static_cast<uint32_t>(length);
  label.step = static_cast<int64_t>(words[is_view ? 2 : 1]);
  return label;
}

}  // namespace gpumemprof::probe::tensorflow
