#include "probe/hooks/torch_parts.h"

#include <string.h>

#include "probe/class_name.h"
#include "probe/dynamic.h"
#include "probe/hot.h"
#include "probe/python_frames.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace gpumemprof::probe {
namespace {

/// c10::TensorImpl and c10::StorageImpl are both derived from intrusive_ptr_target and nothing
/// else, and their first members are the storage and the data's pointer: both at the same offset.
/// Behind the storage a TensorImpl has its autograd metadata.
constexpr uint32_t kUnknown = 1;
HOT_DATA uint32_t g_first_member;  // 0: not looked for yet
HOT_DATA const char*
    g_storage_table;  // of the virtual functions of StorageImpl, that was seen last
HOT_DATA bool (*g_requires_grad)(const void*);

uint32_t offset_of_storage(bool (*has_storage)(const void*)) {
  alignas(16) static uint64_t object[64];  // one thread; larger than what is asked about
  uint32_t found = 0;
  if (has_storage(object)) return 0;
  for (uint32_t i = 1; i < 16; ++i) {
    object[i] = 1;
    const bool is_it = has_storage(object);
    object[i] = 0;
    if (is_it && found) return 0;
    if (is_it) found = i * 8;
  }
  return found;
}

__attribute__((noinline, cold)) uint32_t find_first_member() {
  static uint32_t is_looking;
  if (__atomic_exchange_n(&is_looking, 1, __ATOMIC_ACQ_REL)) return kUnknown;
  auto has_storage = reinterpret_cast<bool (*)(const void*)>(
      find_real("_ZNK3c1010TensorImpl11has_storageEv", nullptr, "libc10"));
  g_requires_grad = reinterpret_cast<bool (*)(const void*)>(
      find_real("_ZNK3c1010TensorImpl13requires_gradEv", nullptr, "libc10"));
  uint32_t found = has_storage ? offset_of_storage(has_storage) : 0;
  if (!found) found = kUnknown;
  __atomic_store_n(&g_first_member, found, __ATOMIC_RELEASE);
  return found;
}

/// Several libraries may have a table of this class, so it is told by the name.
bool is_storage(const char* table, const void* object) {
  const char* name = mangled_class(object);
  if (!name || strcmp(name, "N3c1011StorageImplE") != 0) return false;
  __atomic_store_n(&g_storage_table, table, __ATOMIC_RELAXED);
  return true;
}

}  // namespace

HOT uint64_t storage_address(const void* tensor_impl) {
  uint32_t first_member = __atomic_load_n(&g_first_member, __ATOMIC_ACQUIRE);
  if (UNLIKELY(!first_member)) first_member = find_first_member();
  if (first_member == kUnknown || !tensor_impl) return 0;
  const void* storage = load<const void*>(tensor_impl, first_member);
  if (!storage) return 0;
  const char* table = load<const char*>(storage, 0);
  if (table != __atomic_load_n(&g_storage_table, __ATOMIC_RELAXED) && !is_storage(table, storage)) {
    return 0;
  }
  return load<uint64_t>(storage, first_member);
}

HOT bool has_autograd_metadata(const void* tensor_impl) {
  return load<uint64_t>(tensor_impl, g_first_member + 8) != 0;
}

HOT bool requires_grad(const void* tensor_impl) {
  return !g_requires_grad || g_requires_grad(tensor_impl);
}

}  // namespace gpumemprof::probe
