// No header of PyTorch is used: the allocator is an object with a table of functions, and the place
// of attachAllocatorTraceTracker in that table is known for each release. A wrong place would call
// something else, so three things must be right before it is used: the release, by its own word;
// the class of the object, by its type information; and the length of the table, which any function
// that a changed build adds or drops changes.
#include "probe/hooks/torch_parts.h"

#include <string.h>

#include "probe/dynamic.h"
#include "probe/sys.h"

namespace gpumemprof::probe {
namespace {

struct Layout {
  uint32_t minor;
  uint32_t slot;   // of attachAllocatorTraceTracker
  uint32_t slots;  // of the whole table
  bool has_pools;
};
/// Taken from each release's own header and library.
constexpr Layout kLayouts[] = {
    {5, 30, 36, false}, {6, 35, 41, false}, {7, 35, 41, false}, {8, 38, 44, true},
    {9, 39, 45, true},  {10, 44, 50, true}, {11, 44, 50, true}, {12, 46, 52, true},
    {13, 48, 55, true}, {14, 50, 57, true}, {15, 50, 57, true},
};
constexpr uint32_t kMostSlots = 96;
constexpr char kAllocatorSymbol[] = "_ZN3c104cuda20CUDACachingAllocator9allocatorE";
constexpr char kNativeClass[] = "N3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocatorE";

struct PathQuery {
  const void* address;
  char path[4096];
};
int take_path(dl_phdr_info* info, size_t, void* context) {
  auto* query = static_cast<PathQuery*>(context);
  if (!loaded_range(*info).contains(query->address)) return 0;
  const size_t length = info->dlpi_name ? strlen(info->dlpi_name) + 1 : sizeof(query->path) + 1;
  if (length <= sizeof(query->path)) memcpy(query->path, info->dlpi_name, length);
  return 1;
}

/// "2.13.0+cu130" after `__version__ = '` in the text.
void take_version(const char* text, char* version, size_t size) {
  const char* at = strstr(text, "__version__ = '");
  if (!at) return;
  at += strlen("__version__ = '");
  const size_t length = strcspn(at, "'\n");
  if (length >= size) return;
  memcpy(version, at, length);
  version[length] = 0;
}

/// A wheel has torch/version.py beside torch/lib; a distribution the number in the library's name.
void find_version(const void* in_library, char* version, size_t size) {
  static PathQuery query;  // one thread
  query.address = in_library, query.path[0] = 0;
  dl_iterate_phdr(take_path, &query);
  char* slash = strrchr(query.path, '/');
  if (!slash) return;
  char name[128] = "";
  if (strlen(slash + 1) < sizeof(name)) memcpy(name, slash + 1, strlen(slash + 1) + 1);
  static constexpr char kBeside[] = "/../version.py";
  if (static_cast<size_t>(slash - query.path) + sizeof(kBeside) <= sizeof(query.path)) {
    memcpy(slash, kBeside, sizeof(kBeside));
    static char text[4096];
    const long length = read_file(query.path, text, sizeof(text) - 1);
    text[length > 0 ? length : 0] = 0;
    take_version(text, version, size);
  }
  const char* number = strstr(name, ".so.");
  if (version[0] || !number || strlen(number + 4) >= size) return;
  memcpy(version, number + 4, strlen(number + 4) + 1);
}

/// 13 for "2.13.0", "2.13.0+cu130" and "2.13"; 0 for what is no release ("2.13.0a0+gitabc").
uint32_t minor_of(const char* version) {
  if (version[0] != '2' || version[1] != '.') return 0;
  uint32_t minor = 0;
  const char* at = version + 2;
  for (; *at >= '0' && *at <= '9' && minor < 1000; ++at) minor = minor * 10 + (*at - '0');
  if (*at == '.') ++at;
  while (*at >= '0' && *at <= '9') ++at;
  return *at == 0 || strncmp(at, "+cu", 3) == 0 ? minor : 0;
}

/// Which of a table's entries lead into code.
struct TableQuery {
  void* entries[kMostSlots];
  uint32_t count;
  bool is_code[kMostSlots];
};
int mark_code(dl_phdr_info* info, size_t, void* context) {
  auto* query = static_cast<TableQuery*>(context);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    const ObjectRange code{begin, begin + segment.p_memsz};
    for (uint32_t k = 0; k < query->count; ++k)
      query->is_code[k] |= code.contains(query->entries[k]);
  }
  return 0;
}

/// How many functions the table at `entries` has: what follows one is never code.
uint32_t count_functions(void* const* entries, const ObjectRange& library) {
  static TableQuery query;  // one thread
  memset(&query, 0, sizeof(query));
  for (; query.count < kMostSlots && library.contains(entries + query.count + 1); ++query.count) {
    query.entries[query.count] = entries[query.count];
  }
  dl_iterate_phdr(mark_code, &query);
  uint32_t functions = 0;
  while (functions < query.count && query.is_code[functions]) ++functions;
  return functions;
}

/// The name of the class that the table is of, by the Itanium ABI: before the table lies a pointer
/// to the type information, whose second word is the name.
bool is_native(void* const* entries, const ObjectRange& library) {
  void* const* type = static_cast<void* const*>(entries[-1]);
  if (!library.contains(type) || !library.contains(type + 2)) return false;
  const char* name = static_cast<const char*>(type[1]);
  if (*name == '*') ++name;  // a class that no other library knows
  return library.contains(name) && library.contains(name + sizeof(kNativeClass)) &&
         strcmp(name, kNativeClass) == 0;
}

}  // namespace

TorchAllocator find_torch_allocator(char* version, size_t size, const char** why) {
  TorchAllocator found{};
  // A program that names the variable itself has its own copy of it, which then is the one in use.
  void* variable = dlsym ? dlsym(RTLD_DEFAULT, kAllocatorSymbol) : nullptr;
  if (!variable) variable = find_real(kAllocatorSymbol, nullptr, "libc10_cuda");
  void* allocator = variable ? *static_cast<void**>(variable) : nullptr;
  if (!allocator) return *why = "PyTorch's CUDA allocator was not found", found;
  void* const* entries = *static_cast<void* const* const*>(allocator);
  const ObjectRange library = object_of(entries);
  find_version(entries, version, size);
  found.minor = minor_of(version);
  const Layout* layout = nullptr;
  for (const Layout& each : kLayouts) {
    if (each.minor == found.minor) layout = &each;
  }
  if (!layout) return *why = "the layout of this PyTorch's allocator is not known", found;
  if (!library.contains(entries) || !library.contains(entries - 2) ||
      !is_native(entries, library)) {
    return *why = "another allocator than PyTorch's own caching one is in use", found;
  }
  if (count_functions(entries, library) != layout->slots) {
    return *why = "this build of PyTorch's allocator has other functions than the release", found;
  }
  found.attach = reinterpret_cast<void (*)(void*, void*)>(entries[layout->slot]);
  found.has_pools = layout->has_pools;
  found.allocator = allocator;
  return found;
}

}  // namespace gpumemprof::probe
