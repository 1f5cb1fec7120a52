// Records which storage is copied into which, where one may be a parameter (copies.h): so a copy of
// weights is known, not guessed from its size. clone(), deepcopy(), to(), float() and
// load_state_dict() all end in at::_ops::copy_::call.
//
// The real function does the work, and its exceptions pass through.
#include "format/format.h"
#include "probe/copies.h"
#include "probe/dynamic.h"
#include "probe/hooks/torch_parts.h"
#include "probe/hot.h"
#include "probe/python_frames.h"
#include "probe/recorder.h"
#include "probe/stream.h"

#define HOOK extern "C" __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define COPY "_ZN2at4_ops5copy_4callERNS_6TensorERKS2_b"

namespace gpumemprof::probe {
namespace {

using Copy = void* (*)(void* target, const void* source, bool non_blocking);
HOT_DATA Copy g_copy;

/// `target` and `source` are at::Tensor: a pointer each.
HOT __attribute__((noinline)) void tell(const void* target, const void* source) {
  const uint64_t from = storage_address(load<const void*>(source, 0));
  const uint64_t to = from ? storage_address(load<const void*>(target, 0)) : 0;
  if (to && to != from && is_watched_copy(from, to)) {
    record_mark(format::kMarkCopied, to, from, nullptr, 0);
  }
}

void* find_copy();

}  // namespace
}  // namespace gpumemprof::probe

HOOK void* gpumemprof_hook_copy(void*, const void*, bool) __asm__(COPY);
HOT void* gpumemprof_hook_copy(void* target, const void* source, bool non_blocking) {
  using namespace gpumemprof::probe;
  auto real = __atomic_load_n(&g_copy, __ATOMIC_ACQUIRE);
  // Somebody called it, so somebody defines it.
  if (UNLIKELY(!real)) real = reinterpret_cast<Copy>(find_copy());
  void* result = real(target, source, non_blocking);
  if (state() == kRecording && g_config.wants_attribution()) tell(target, source);
  return result;
}

namespace gpumemprof::probe {
namespace {

void* find_copy() {
  if (auto known = __atomic_load_n(&g_copy, __ATOMIC_ACQUIRE)) {
    return reinterpret_cast<void*>(known);
  }
  void* found = find_real(COPY, reinterpret_cast<void*>(&gpumemprof_hook_copy), "libtorch_cpu");
  if (found) __atomic_store_n(&g_copy, reinterpret_cast<Copy>(found), __ATOMIC_RELEASE);
  return found;
}

}  // namespace

const Hook kCopyHooks[1] = {
    {COPY, reinterpret_cast<void*>(&gpumemprof_hook_copy), find_copy, false}};

}  // namespace gpumemprof::probe
