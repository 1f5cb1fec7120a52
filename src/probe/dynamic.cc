#include "probe/dynamic.h"

#include <string.h>

namespace gpumemprof::probe {
namespace {

/// The number-th loaded object whose file name contains `hint`, or does not. dlopen() must not be
/// called inside dl_iterate_phdr, so its name is copied.
struct NameQuery {
  const char* hint;
  bool contains;
  size_t number;
  char path[4096];
};

int take_name(dl_phdr_info* info, size_t, void* context) {
  auto* query = static_cast<NameQuery*>(context);
  const char* path = info->dlpi_name;  // relative where LD_LIBRARY_PATH is; empty: the program
  if (!path || !path[0]) return 0;
  const char* slash = strrchr(path, '/');
  if ((strstr(slash ? slash + 1 : path, query->hint) != nullptr) != query->contains) return 0;
  size_t length = strlen(path) + 1;
  if (length > sizeof(query->path) || query->number-- != 0) return 0;
  memcpy(query->path, path, length);
  return 1;
}

void* look(const char* path, const char* name, const void* ours) {
  void* handle =
      dlopen(path, RTLD_NOLOAD | RTLD_LAZY);  // the reference pins it, as we call into it
  if (!handle) return nullptr;
  void* found = dlsym(handle, name);
  return found == ours ? nullptr : found;
}

/// The path of the object that holds `address`; empty for the program itself.
struct PathQuery {
  const void* address;
  char path[4096];
};

int match_path(dl_phdr_info* info, size_t, void* context) {
  auto* query = static_cast<PathQuery*>(context);
  if (!loaded_range(*info).contains(query->address)) return 0;
  const char* path = info->dlpi_name ? info->dlpi_name : "";
  size_t length = strlen(path) + 1;
  if (length <= sizeof(query->path)) memcpy(query->path, path, length);
  return 1;
}

struct RangeQuery {
  uintptr_t address;
  ObjectRange range;
};

int match_range(dl_phdr_info* info, size_t, void* context) {
  auto* query = static_cast<RangeQuery*>(context);
  ObjectRange range = loaded_range(*info);
  if (!range.contains(reinterpret_cast<const void*>(query->address))) return 0;
  query->range = range;
  return 1;
}

}  // namespace

// Asks for one object after the other, from the beginning each time, so that nothing is shared: a
// lock here would be inherited by a forked child, or wait for a thread that waits for the loader.
// With 300 objects all of it takes under a millisecond, once a symbol.
void* find_real(const char* name, const void* ours, const char* hint) {
  if (!dlopen || !dlsym) return nullptr;
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t number = 0;; ++number) {
      NameQuery query;
      query.hint = hint, query.contains = pass == 0, query.number = number;
      if (!dl_iterate_phdr(take_name, &query)) break;
      if (void* found = look(query.path, name, ours)) return found;
    }
  }
  return nullptr;
}

void* find_real_of(const void* address, const char* name, const void* ours) {
  if (!dlopen || !dlsym) return nullptr;
  PathQuery query;
  query.address = address, query.path[0] = 0;
  dl_iterate_phdr(match_path, &query);
  return query.path[0] ? look(query.path, name, ours) : nullptr;
}

bool object_is_named(const void* address, const char* part) {
  PathQuery query;
  query.address = address, query.path[0] = 0;
  dl_iterate_phdr(match_path, &query);
  const char* slash = strrchr(query.path, '/');
  return strstr(slash ? slash + 1 : query.path, part) != nullptr;
}

ObjectRange loaded_range(const dl_phdr_info& info) {
  ObjectRange range{~uintptr_t{0}, 0};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    if (begin < range.begin) range.begin = begin;
    if (begin + segment.p_memsz > range.end) range.end = begin + segment.p_memsz;
  }
  return range;
}

ObjectRange object_of(const void* address) {
  RangeQuery query{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(match_range, &query);
  return query.range;
}

}  // namespace gpumemprof::probe
