#include "native/probe.h"

#include <dlfcn.h>

#include <mutex>

namespace gpumemprof::python {
namespace {

std::mutex g_mutex;
Probe g_probe;
void* g_handle = nullptr;  ///< of the library that attach() loaded; never closed

template <class Function>
void find(Function& function, const char* name) {
  void* address = dlsym(RTLD_DEFAULT, name);
  if (!address && g_handle) address = dlsym(g_handle, name);
  function = reinterpret_cast<Function>(address);
}

void look_up() {
  find(g_probe.counting_begin, "gpumemprof_counting_begin");
  find(g_probe.read_counters, "gpumemprof_read_counters");
  find(g_probe.scope_begin, "gpumemprof_scope_begin");
  find(g_probe.scope_end, "gpumemprof_scope_end");
  find(g_probe.scope_switch_out, "gpumemprof_scope_switch_out");
  find(g_probe.scope_switch_in, "gpumemprof_scope_switch_in");
  find(g_probe.attach, "gpumemprof_attach");
  find(g_probe.attach_error, "gpumemprof_attach_error");
  uint64_t (*event_count)(void) = nullptr;  // every probe has this one
  find(event_count, "gpumemprof_event_count");
  Dl_info info;
  if (event_count && dladdr(reinterpret_cast<void*>(event_count), &info) && info.dli_fname)
    g_probe.library = info.dli_fname;
}

}  // namespace

const Probe& probe() {
  std::lock_guard lock(g_mutex);
  if (g_probe.library.empty()) look_up();
  return g_probe;
}

Status attach_probe(const char* library, const char* folder, int flags) {
  if (probe().library.empty()) {
    std::lock_guard lock(g_mutex);
    // Local: nothing but this module should see the probe's names; it patches what it stands in
    // for.
    g_handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!g_handle) return std::unexpected(Error{ErrorCode::kSystem, dlerror(), std::nullopt});
    look_up();
  }
  const Probe& loaded = probe();
  if (!loaded.attach) {
    return std::unexpected(Error{ErrorCode::kUnsupported,
                                 loaded.library + ": this probe cannot attach", std::nullopt});
  }
  if (loaded.attach(folder, flags) == 1) return {};
  const char* why = loaded.attach_error ? loaded.attach_error() : nullptr;
  return std::unexpected(
      Error{ErrorCode::kSystem, why && *why ? why : "the probe gave no reason", std::nullopt});
}

}  // namespace gpumemprof::python
