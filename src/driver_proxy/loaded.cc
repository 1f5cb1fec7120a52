// The real functions of a library that stands beside the program's others and keeps its own name:
// ours come first in the lookup of symbols, the real ones are in what is loaded as LIBRARY.
#include <errno.h>
#include <string.h>

#include "driver_proxy/real.h"
#include "probe/dynamic.h"

namespace gpumemprof::driver_proxy {
namespace {

struct Wanted {
  char path[4096];
};

int find_library(dl_phdr_info* info, size_t, void* out) {
  static const char kName[] = GPUMEMPROF_REAL_LIBRARY;
  const char* path = info->dlpi_name;
  const char* slash = path ? strrchr(path, '/') : nullptr;
  if (!slash || strncmp(slash + 1, kName, sizeof kName - 1) != 0) return 0;
  if (strlen(path) >= sizeof(Wanted::path)) return 0;
  strcpy(static_cast<Wanted*>(out)->path, path);
  return 1;
}

}  // namespace

/// Who calls is linked to the library, so it is loaded by now; nothing is ever opened for us.
void* real_function(const char* name) {
  const int saved = errno;
  static void* library;
  void* known = __atomic_load_n(&library, __ATOMIC_ACQUIRE);
  Wanted wanted;
  if (!known && dlopen && dl_iterate_phdr(find_library, &wanted) != 0) {
    known = dlopen(wanted.path, RTLD_LAZY | RTLD_NOLOAD);
    __atomic_store_n(&library, known, __ATOMIC_RELEASE);
  }
  void* found = known && dlsym ? dlsym(known, name) : nullptr;
  errno = saved;
  return found;
}

}  // namespace gpumemprof::driver_proxy
