#include "probe/hooks/driver/callers.h"

#include <string.h>

#include "probe/driver_link.h"
#include "probe/native_stack.h"

namespace gpumemprof::probe {
namespace {

/// Written once each and never changed: `end` is stored last, so a reader sees all of it or none.
struct Library {
  uintptr_t begin, end;
  uint32_t length;
  char name[116];
};
constexpr uint32_t kMostLibraries = 128;
Library g_libraries[kMostLibraries];
uint32_t g_library_count;

const Library* known(uintptr_t pc) {
  const uint32_t count = __atomic_load_n(&g_library_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count && i < kMostLibraries; ++i) {
    const Library& one = g_libraries[i];
    if (pc < __atomic_load_n(&one.end, __ATOMIC_ACQUIRE) && pc >= one.begin) return &one;
  }
  return nullptr;
}

}  // namespace

Label driver_caller(const void* return_address) {
  const auto pc = reinterpret_cast<uintptr_t>(return_address) - 1;
  if (const Library* one = known(pc)) return {kDriverCallerPlace, one->name, one->length};
  Module module;  // takes the loader's lock, once a library
  static const char kUnknown[] = "unknown library";
  const Label unknown = {kDriverCallerPlace, kUnknown, sizeof(kUnknown) - 1};
  if (!find_module(pc, &module)) return unknown;
  const uint32_t slot = __atomic_fetch_add(&g_library_count, 1, __ATOMIC_ACQ_REL);
  if (slot >= kMostLibraries) {
    __atomic_store_n(&g_library_count, kMostLibraries, __ATOMIC_RELEASE);
    return unknown;
  }
  Library& fresh = g_libraries[slot];
  const char* slash = strrchr(module.path, '/');
  const char* name = slash ? slash + 1 : module.path;
  const size_t length = length_of_text(name, sizeof(fresh.name));
  memcpy(fresh.name, name, length);
  fresh.length = static_cast<uint32_t>(length);
  fresh.begin = module.begin;
  __atomic_store_n(&fresh.end, module.end, __ATOMIC_RELEASE);
  return length ? Label{kDriverCallerPlace, fresh.name, fresh.length} : unknown;
}

uint32_t driver_caller_number(const void* return_address) {
  if (!return_address) return 0;
  driver_caller(return_address);  // so that it is in the list
  const Library* one = known(reinterpret_cast<uintptr_t>(return_address) - 1);
  return one ? static_cast<uint32_t>(one - g_libraries) + 1 : 0;
}

const void* address_of_caller(uint32_t number) {
  if (number == 0 || number > kMostLibraries) return nullptr;
  return reinterpret_cast<const void*>(g_libraries[number - 1].begin + 1);
}

}  // namespace gpumemprof::probe
