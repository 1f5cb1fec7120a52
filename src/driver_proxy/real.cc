#include "driver_proxy/real.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probe/dynamic.h"

namespace gpumemprof::driver_proxy {
namespace {

char g_path[4096];
void* g_library;

/// `run` says where the real driver is. The environment is read while there is one thread.
__attribute__((constructor)) void read_path() {
  const char* path = getenv("GPUMEMPROF_DRIVER");
  if (path && path[0] == '/' && strlen(path) < sizeof(g_path)) strcpy(g_path, path);
}

bool is_in(const dl_phdr_info& info, const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& segment = info.dlpi_phdr[i];
    const uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && at >= begin && at < begin + segment.p_memsz) return true;
  }
  return false;
}

/// Where we lie: begin and end.
struct OwnRange {
  uintptr_t begin, end;
};
int find_own(dl_phdr_info* info, size_t, void* out) {
  if (!is_in(*info, &g_path)) return 0;
  OwnRange own = {UINTPTR_MAX, 0};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (begin < own.begin) own.begin = begin;
    if (begin + segment.p_memsz > own.end) own.end = begin + segment.p_memsz;
  }
  *static_cast<OwnRange*>(out) = own;
  return 1;
}

/// A call forwarded to ourselves would never end. Computed once; threads that race compute the same.
bool is_own(const void* function) {
  static OwnRange own;
  if (!__atomic_load_n(&own.end, __ATOMIC_ACQUIRE)) {
    OwnRange found = {0, 1};
    dl_iterate_phdr(find_own, &found);
    __atomic_store_n(&own.begin, found.begin, __ATOMIC_RELAXED);
    __atomic_store_n(&own.end, found.end, __ATOMIC_RELEASE);
  }
  const auto at = reinterpret_cast<uintptr_t>(function);
  return at >= own.begin && at < own.end;
}

/// Where the environment was emptied on the way (env -i, a launcher), the link beside the one that
/// we were opened by.
int find_sibling(dl_phdr_info* info, size_t, void*) {
  if (!is_in(*info, &g_path)) return 0;
  static const char kSibling[] = "driver";
  const char* slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : nullptr;
  if (!slash) return 1;
  const auto folder = static_cast<size_t>(slash - info->dlpi_name) + 1;
  if (folder + sizeof(kSibling) > sizeof(g_path)) return 1;
  memcpy(g_path, info->dlpi_name, folder);
  memcpy(g_path + folder, kSibling, sizeof(kSibling));
  return 1;
}

/// A path with a slash is never answered with us, though our name is the same.
void* library() {
  void* known = __atomic_load_n(&g_library, __ATOMIC_ACQUIRE);
  if (known || !dlopen) return known;
  if (!g_path[0]) dl_iterate_phdr(find_sibling, nullptr);
  if (!g_path[0]) return nullptr;
  known = dlopen(g_path, RTLD_NOW | RTLD_LOCAL);
  __atomic_store_n(&g_library, known, __ATOMIC_RELEASE);
  return known;
}

}  // namespace

void* real_function(const char* name) {
  const int saved = errno;
  void* from = library();
  void* found = from && dlsym ? dlsym(from, name) : nullptr;
  if (found && is_own(found)) found = nullptr;
  errno = saved;
  return found;
}

}  // namespace gpumemprof::driver_proxy
