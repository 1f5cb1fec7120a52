#include "probe/dynamic.h"

#include <string.h>

#include "probe/sys.h"

namespace gpumemprof::probe {
namespace {

constexpr size_t kMaxObjects = 2048;
constexpr size_t kNameBytes = 1 << 20;

/// Names of the loaded objects. dlopen() must not be called inside dl_iterate_phdr, so they are
/// copied.
struct Names {
  char* bytes;
  size_t used;
  size_t count;
  uint32_t offsets[kMaxObjects];
};

int collect(dl_phdr_info* info, size_t, void* context) {
  auto* names = static_cast<Names*>(context);
  if (!info->dlpi_name || info->dlpi_name[0] != '/') return 0;
  size_t length = strlen(info->dlpi_name) + 1;
  if (names->count == kMaxObjects || names->used + length > kNameBytes) return 1;
  memcpy(names->bytes + names->used, info->dlpi_name, length);
  names->offsets[names->count++] = static_cast<uint32_t>(names->used);
  names->used += length;
  return 0;
}

void* look(const char* path, const char* name, const void* ours) {
  void* handle =
      dlopen(path, RTLD_NOLOAD | RTLD_LAZY);  // the reference pins it, as we call into it
  if (!handle) return nullptr;
  void* found = dlsym(handle, name);
  return found == ours ? nullptr : found;
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

void* find_real(const char* name, const void* ours, const char* hint) {
  if (!dlopen || !dlsym) return nullptr;
  // No mmap here: the program may have forbidden it. Pages of this that are not used cost nothing.
  static struct {
    Names names;
    char bytes[kNameBytes];
  } buffer;
  static uint32_t in_use;
  while (__atomic_exchange_n(&in_use, 1, __ATOMIC_ACQUIRE)) {  // a look-up each symbol, 1 ms
  }
  Names* names = &buffer.names;
  names->bytes = buffer.bytes;
  names->used = names->count = 0;
  dl_iterate_phdr(collect, names);
  void* found = nullptr;
  for (int pass = 0; pass < 2 && !found; ++pass) {
    for (size_t i = 0; i < names->count && !found; ++i) {
      const char* path = names->bytes + names->offsets[i];
      const char* base = strrchr(path, '/') + 1;
      if ((strstr(base, hint) != nullptr) == (pass == 0)) found = look(path, name, ours);
    }
  }
  __atomic_store_n(&in_use, 0, __ATOMIC_RELEASE);
  return found;
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
