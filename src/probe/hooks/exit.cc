// _exit() is the ordinary end of a worker of multiprocessing, and leaves a recording as whole as
// exit() does.
#include <stdint.h>

#include "probe/dynamic.h"
#include "probe/recorder.h"
#include "probe/sys.h"

namespace gpumemprof::probe {
namespace {

using Leave = void (*)(int);
Leave g_leave, g_leave_of_c99;  // libc's

/// A child of vfork() leaves with _exit() too, and has its parent's memory.
bool is_of_this_process(const format::FileState* shared) {
  const auto* page = reinterpret_cast<const uint8_t*>(shared) - format::kStateOffset;
  const auto* header = reinterpret_cast<const format::FileHeader*>(page);
  return sys(SYS_getpid) == static_cast<long>(header->pid);
}

[[noreturn]] void leave(int code, Leave real) {
  const uint32_t now = state();
  format::FileState* shared = now == kRecording || now == kPaused ? file_state() : nullptr;
  if (shared && !g_sandboxed && is_of_this_process(shared)) {
    __atomic_store_n(&shared->clean_exit, 1, __ATOMIC_RELAXED);
  }
  if (real) real(code);
  for (;;) sys(SYS_exit_group, code);
}

// While the library is loaded: dlsym() may wait for a lock that a forked child never gets.
__attribute__((constructor)) void find_real_exits() {
  if (!dlsym) return;
  g_leave = reinterpret_cast<Leave>(dlsym(RTLD_NEXT, "_exit"));
  g_leave_of_c99 = reinterpret_cast<Leave>(dlsym(RTLD_NEXT, "_Exit"));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) [[noreturn]] void _exit(int code) {
  leave(code, g_leave);
}

extern "C" __attribute__((visibility("default"))) [[noreturn]] void _Exit(int code) {
  leave(code, g_leave_of_c99);
}

}  // namespace gpumemprof::probe
