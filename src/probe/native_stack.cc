#include "probe/native_stack.h"

#include <string.h>

#include "probe/dynamic.h"
#include "probe/recorder.h"
#include "probe/sys.h"

namespace gpumemprof::probe {
namespace {

int (*g_unw_backtrace)(void**, int);
ObjectRange g_own;  // our own frames, which no stack shows

struct ModuleQuery {
  uintptr_t pc;
  Module* out;
};

int match_module(dl_phdr_info* info, size_t, void* context) {
  auto* query = static_cast<ModuleQuery*>(context);
  uintptr_t begin = ~uintptr_t{0}, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    uintptr_t at = info->dlpi_addr + segment.p_vaddr;
    if (at < begin) begin = at;
    if (at + segment.p_memsz > end) end = at + segment.p_memsz;
  }
  if (query->pc < begin || query->pc >= end) return 0;
  query->out->begin = begin;
  query->out->end = end;
  query->out->bias = info->dlpi_addr;
  const char* name = info->dlpi_name ? info->dlpi_name : "";
  size_t length = strnlen(name, sizeof(query->out->path) - 1);
  memcpy(query->out->path, name, length);
  query->out->path[length] = 0;
  return 1;
}

}  // namespace

void prepare_native() {
  auto* shared = file_state();
  if (!shared || !(g_config.stacks & format::kStacksNative)) return;
  if (!g_unw_backtrace && dlopen && dlsym) {
    void* library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (library) {
      g_unw_backtrace = reinterpret_cast<int (*)(void**, int)>(dlsym(library, "unw_backtrace"));
    }
  }
  g_own = object_of(reinterpret_cast<void*>(&prepare_native));
  __atomic_store_n(&shared->native_state,
                   g_unw_backtrace ? format::kNativeOk : format::kNativeNoLibunwind,
                   __ATOMIC_RELAXED);
}

int native_backtrace(void** out, int max) {
  if (!g_unw_backtrace) return 0;
  int count = g_unw_backtrace(out, max), own = 0;
  while (own < count && g_own.contains(out[own])) ++own;
  if (own > 0 && count > own)
    memmove(out, out + own, static_cast<size_t>(count - own) * sizeof(*out));
  return count - own;
}

bool find_module(uintptr_t pc, Module* out) {
  ModuleQuery query{pc, out};
  if (!dl_iterate_phdr(match_module, &query)) return false;
  if (!out->path[0]) {  // the program itself has no name there
    long n = sys(SYS_readlinkat, -100 /* AT_FDCWD */, sys_ptr("/proc/self/exe"), sys_ptr(out->path),
                 sizeof(out->path) - 1);
    out->path[n > 0 ? n : 0] = 0;
  }
  return true;
}

}  // namespace gpumemprof::probe
