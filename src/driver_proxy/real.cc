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

/// Where the environment was emptied on the way (env -i, a launcher), the link beside the one that
/// we were opened by.
int find_sibling(dl_phdr_info* info, size_t, void*) {
  const auto own = reinterpret_cast<uintptr_t>(&g_path);
  bool is_ours = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    is_ours |= segment.p_type == PT_LOAD && own >= begin && own < begin + segment.p_memsz;
  }
  if (!is_ours) return 0;
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
  errno = saved;
  return found;
}

}  // namespace gpumemprof::driver_proxy
