#include "native/marks/calls.h"

#include <dlfcn.h>

namespace gpumemprof::python {
namespace {

template <class Function>
bool find(Function& function, void* library, const char* name) {
  void* address = dlsym(RTLD_DEFAULT, name);
  if (!address && library) address = dlsym(library, name);
  if (address) function = reinterpret_cast<Function>(address);
  return address != nullptr;
}

}  // namespace

Calls g_calls = {
    [](const char*) -> uint64_t { return 0; },
    [](uint64_t) {},
    [] {},
    [](const void*, int, const char*) {},
    [](const void*) {},
    [] {},
    [] {},
    [](const void*, const char*) {},
    [](int (*)(void*), void*) {},
    [](uint64_t, int (*)(int (*)(void*), void*), int (*)(void*), void*) {},
    []() -> int64_t { return 0; },
    [](const char** why) -> int64_t { return *why = "the probe is not loaded", -1; },
};

bool find_calls(const char* path) {
  // A reference more keeps the library where it is; it is never unloaded anyway.
  void* library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  Calls found = g_calls;
  const bool all = find(found.phase_begin, library, "gpumemprof_phase_begin") &&
                   find(found.phase_end, library, "gpumemprof_phase_end") &&
                   find(found.step_end, library, "gpumemprof_step_end") &&
                   find(found.mark_storage, library, "gpumemprof_mark_storage") &&
                   find(found.unmark_storage, library, "gpumemprof_unmark_storage") &&
                   find(found.roles_hold, library, "gpumemprof_roles_hold") &&
                   find(found.program_ends, library, "gpumemprof_program_ends") &&
                   find(found.mark_module, library, "gpumemprof_mark_module") &&
                   find(found.when_module_is_new, library, "gpumemprof_when_module_is_new") &&
                   find(found.call_after, library, "gpumemprof_call_after") &&
                   find(found.blocks_until_call, library, "gpumemprof_blocks_until_call") &&
                   find(found.python_arenas, library, "gpumemprof_python_arenas");
  if (all) g_calls = found;
  return all;
}

}  // namespace gpumemprof::python
