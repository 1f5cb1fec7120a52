// cuGetProcAddress, through which nearly all of the driver is reached. The real one is asked for
// everything, so that what it has and we do not know passes unchanged; where it answers with a
// function that is recorded, ours is handed out.
#include <string.h>

#include "driver_proxy/recorded.h"
#include "driver_proxy/watch.h"

using namespace gpumemprof::driver_proxy;

namespace {

struct Row {
  const char* base;
  int version;
  int streams;
  const char* symbol;
};
constexpr Row kRows[] = {
#define ROW(base, version, symbol, streams) {#base, version, streams, #symbol},
    DRIVER_RECORDED(ROW)};
constexpr int kRowCount = sizeof(kRows) / sizeof(kRows[0]);

}  // namespace

// Their addresses, by the assembler: the linker binds them to our own definitions.
#define WORD(base, version, symbol, streams) ".quad " #symbol "\n"
__asm__(".pushsection .data.rel.ro,\"aw\"\n.balign 8\ngpumemprof_driver_own:\n" DRIVER_RECORDED(
    WORD) ".popsection\n");
extern "C" __attribute__((visibility("hidden"))) void* const gpumemprof_driver_own[];

namespace {

/// The row of `base` in `version`; -1 if it is not recorded.
int row_of(const char* base, int version, uint64_t flags) {
  const int wanted = flags & 2 ? 2 : 1;
  int best = -1;
  for (int i = 0; i < kRowCount; ++i) {
    const Row& row = kRows[i];
    if (row.version > version || (row.streams && row.streams != wanted)) continue;
    if (strcmp(row.base, base) != 0) continue;
    if (best < 0 || row.version > kRows[best].version) best = i;
  }
  return best;
}

/// Whether `found` is a version of the function that is exported under another name than the row's.
bool is_other_version(const Row& row, const void* found) {
  static const char* const kVersions[] = {"", "_v2", "_v3", "_v4", "_v5"};
  static const char* const kStreams[] = {"", "_ptsz", "_ptds"};
  char name[96];
  const size_t length = strlen(row.base);
  if (length + 9 > sizeof(name)) return true;
  memcpy(name, row.base, length);
  for (const char* version : kVersions) {
    for (const char* streams : kStreams) {
      strcpy(name + length, version);
      strcat(name, streams);
      if (strcmp(name, row.symbol) != 0 && real_function(name) == found) return true;
    }
  }
  return false;
}

/// What to hand out where the real one has answered with `found`.
void* ours_or(void* found, const char* base, int version, uint64_t flags) {
  if (!found) return found;
  // One of the recorded ones by its address is that one, whatever version brought it.
  for (int i = 0; i < kRowCount; ++i) {
    if (strcmp(kRows[i].base, base) == 0 && real_function(kRows[i].symbol) == found)
      return gpumemprof_driver_own[i];
  }
  const int at = row_of(base, version, flags);
  if (at < 0) return found;
  const Row& row = kRows[at];
  // Not the exported one of this name. A later interface than we know of may have another version.
  if (version > kNewestKnownInterface || is_other_version(row, found)) return found;
  return gpumemprof_driver_own[at];
}

}  // namespace

DRIVER_EXPORT Result cuGetProcAddress(const char* name, void** out, int version, uint64_t flags) {
  WATCH();
  const Result code = CALL_REAL(cuGetProcAddress, name, out, version, flags);
  if (code == kSuccess && name && out) *out = ours_or(*out, name, version, flags);
  return code;
}

DRIVER_EXPORT Result cuGetProcAddress_v2(const char* name, void** out, int version, uint64_t flags,
                                         int* status) {
  WATCH();
  const Result code = CALL_REAL(cuGetProcAddress_v2, name, out, version, flags, status);
  if (code == kSuccess && name && out) *out = ours_or(*out, name, version, flags);
  return code;
}
