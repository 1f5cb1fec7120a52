// Reads what `run` asked for. The environment is read when the library is loaded, while there is
// one thread: later the program may change it.
#include <stdlib.h>
#include <string.h>

#include "probe/arena.h"
#include "probe/hot.h"
#include "probe/job_place.h"
#include "probe/package.h"
#include "probe/python_arenas.h"
#include "probe/recorder.h"

namespace gpumemprof::probe {

// constinit: an initialiser that runs would run after read_config() and undo it.
HOT_DATA constinit Config g_config{};
char g_folder[3072];

static uint64_t number(const char* text) {
  uint64_t value = 0;
  for (; text && *text >= '0' && *text <= '9'; ++text) value = value * 10 + (*text - '0');
  return value;
}

static uint32_t stack_mode(const char* text) {
  if (!text || !strcmp(text, "python")) return format::kStacksPython;
  if (!strcmp(text, "native")) return format::kStacksNative;
  if (!strcmp(text, "both")) return format::kStacksBoth;
  return format::kStacksNone;
}

__attribute__((constructor)) static void read_config() {
  const char* folder = getenv("GPUMEMPROF_DIR");
  if (!folder || folder[0] != '/') return;
  size_t length = strlen(folder);
  if (length >= sizeof(g_folder)) return;
  memcpy(g_folder, folder, length + 1);
  g_config.stacks = stack_mode(getenv("GPUMEMPROF_STACKS"));
  g_config.free_stacks = getenv("GPUMEMPROF_FREE_STACKS") != nullptr;
  g_config.no_cpu = getenv("GPUMEMPROF_NO_CPU") != nullptr;
  g_config.no_attribution = getenv("GPUMEMPROF_NO_ATTRIBUTION") != nullptr;
  const char* collectives = getenv("GPUMEMPROF_COLLECTIVES");
  g_config.marks_collectives = !collectives || strcmp(collectives, "0") != 0;
  g_arena_address = parse_arena_address(getenv("GPUMEMPROF_ARENA"));
  g_config.max_disk_bytes = number(getenv("GPUMEMPROF_MAX_DISK"));
  const char* package = getenv("GPUMEMPROF_PACKAGE");
  length = package ? strlen(package) : 0;
  if (length > 0 && length < sizeof(g_package)) {
    memcpy(g_package, package, length + 1);
    g_is_package_wanted = 1;
  }
  g_config.rank_plus_one = read_job_place(&g_config.job);
  count_python_arenas();
}

/// exit() ran: what follows is known to be complete but for what other destructors still free.
__attribute__((destructor)) static void mark_clean_exit() {
  uint32_t now = state();
  if ((now == kRecording || now == kPaused) && file_state()) {
    __atomic_store_n(&file_state()->clean_exit, 1, __ATOMIC_RELAXED);
  }
}

}  // namespace gpumemprof::probe
