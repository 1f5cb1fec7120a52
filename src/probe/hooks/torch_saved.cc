// What autograd keeps for backward: the constructor of SavedVariable, which every node calls for
// each tensor that it saves (the other constructors call this one, through the same table).
//
// The object is the caller's, and the real constructor makes it; an exception of its own passes
// through. Afterwards we look at what the object holds: its first member is the tensor, or nothing
// where the program's own hooks (saved_tensors_hooks, checkpointing, offloading) took it.
//
// No header of PyTorch is used; see torch_parts.h.
#include "format/format.h"
#include "probe/dynamic.h"
#include "probe/hooks/torch_parts.h"
#include "probe/hot.h"
#include "probe/python_frames.h"
#include "probe/recorder.h"
#include "probe/stream.h"

#define HOOK extern "C" __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SAVED "_ZN5torch8autograd13SavedVariableC1ERKN2at6TensorEbb"

namespace gpumemprof::probe {
namespace {

using Constructor = void (*)(void* self, const void* tensor, bool is_output, bool is_on_view);
HOT_DATA Constructor g_construct;

HOT __attribute__((noinline)) void tell(const void* saved, const void* tensor, bool is_output) {
  const uint64_t address = storage_address(load<const void*>(saved, 0));
  if (!address) return;
  uint64_t flags = is_output ? format::kSavedIsOutput : 0;
  const void* impl = load<const void*>(tensor, 0);
  if (has_autograd_metadata(impl)) {
    flags |= format::kSavedHasHistory;
    if (!requires_grad(impl)) flags |= format::kSavedIsConstant;
  }
  record_mark(format::kMarkSaved, address, flags, nullptr, 0);
}

void* find_constructor();

}  // namespace
}  // namespace gpumemprof::probe

HOOK void gpumemprof_hook_saved(void*, const void*, bool, bool) __asm__(SAVED);
HOT void gpumemprof_hook_saved(void* self, const void* tensor, bool is_output, bool is_on_view) {
  using namespace gpumemprof::probe;
  auto real = __atomic_load_n(&g_construct, __ATOMIC_ACQUIRE);
  // Somebody called it, so somebody defines it.
  if (UNLIKELY(!real)) real = reinterpret_cast<Constructor>(find_constructor());
  real(self, tensor, is_output, is_on_view);
  if (state() == kRecording && g_config.wants_attribution()) {
    tell(self, tensor, is_output);
  }
}

namespace gpumemprof::probe {
namespace {

void* find_constructor() {
  if (auto known = __atomic_load_n(&g_construct, __ATOMIC_ACQUIRE)) {
    return reinterpret_cast<void*>(known);
  }
  void* found = find_real(SAVED, reinterpret_cast<void*>(&gpumemprof_hook_saved), "libtorch_cpu");
  if (found) {
    __atomic_store_n(&g_construct, reinterpret_cast<Constructor>(found), __ATOMIC_RELEASE);
  }
  return found;
}

}  // namespace

const Hook kSavedHooks[1] = {
    {SAVED, reinterpret_cast<void*>(&gpumemprof_hook_saved), find_constructor, false}};

}  // namespace gpumemprof::probe
