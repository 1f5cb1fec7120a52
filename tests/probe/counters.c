// Preloaded beside the probe: counts from the start, and says at the end on stderr what it counted, as JSON.
#include <stdio.h>

#include "gpumemprof/gpumemprof.h"

static const int kDevices[][2] = {{1, 0}, {1, 1}, {20, 0}, {0, 0}, {0, -1}, {2, 0}, {-5, 0}, {1, 999}};

__attribute__((constructor)) static void begin(void) {
  if (gpumemprof_counting_begin) gpumemprof_counting_begin();
}

__attribute__((destructor)) static void end(void) {
  const char *separator = "[";
  for (size_t i = 0; i < sizeof(kDevices) / sizeof(kDevices[0]); ++i) {
    struct gpumemprof_counters c;
    fputs(separator, stderr);
    separator = ", ";
    if (!gpumemprof_read_counters(kDevices[i][0], kDevices[i][1], &c)) {
      fputs("null", stderr);
      continue;
    }
    const uint64_t words[] = {c.live_bytes, c.alloc_count, c.free_count, c.alloc_bytes, c.free_bytes,
                              c.unknown_free_count, c.untracked_count};
    for (int k = 0; k < 7; ++k) fprintf(stderr, "%s%llu", k ? ", " : "[", (unsigned long long)words[k]);
    fputs("]", stderr);
  }
  fputs("]\n", stderr);
}
