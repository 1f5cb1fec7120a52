// Blocks of malloc's, and what the two kinds of host memory share.
//
//   program ── malloc ──> src/host_blocks ── 64 KiB and more ──> took() ──> g_blocks, an event
//           ── free ────> its filter says that it may be one ──> gave() ──> out of g_blocks, an event
//
// A forked child finds g_blocks empty: its parent's blocks are copies there, told by nobody.
#include <string.h>

#include "probe/hooks/host/host.h"
#include "probe/live_table.h"
#include "probe/native_stack.h"
#include "probe/program_end.h"
#include "probe/recorder.h"

namespace gpumemprof::probe {
namespace {

using namespace format;

constexpr int8_t kHostType = 80;   // kHostBlocks of trace/tables.h
// The ids lie above those of the driver's memories.
constexpr uint16_t kFirstId = 0x6000;

LiveTable g_blocks;
constinit const char* g_unseen_malloc = nullptr;
constinit HostMemory g_unseen_note = kHostUnseenMalloc;
uint32_t g_noted_in;  // the incarnation whose file has the note of it

constexpr uint32_t kMostLeft = 8;
struct Left {
  ObjectRange range;
  bool are_file_maps;  // only those
};
// constinit: told before this library's initialisers run, which would undo it.
constinit Left g_left[kMostLeft]{};
constinit uint32_t g_left_count = 0;

thread_local uint32_t t_framework_takes __attribute__((tls_model("initial-exec")));

void note_unseen_malloc() {
  const char* library = __atomic_load_n(&g_unseen_malloc, __ATOMIC_ACQUIRE);
  const uint32_t now = incarnation();
  if (!library || state() != kRecording ||
      __atomic_exchange_n(&g_noted_in, now, __ATOMIC_RELAXED) == now) {
    return;
  }
  record_host(kRawAlloc, g_unseen_note, 1, 0);
}

bool on_took(void* block, size_t size_bytes, const void* caller) {
  if (!host_is_wanted() || is_left(caller, false)) return false;
  const uint64_t address = reinterpret_cast<uintptr_t>(block);
  Block old;
  if (g_blocks.put(address, {size_bytes, 0, kHostMalloc}, &old) == LiveTable::kNoMemory) {
    count_loss(kLostNoBuffer);  // its free would not be known either
    return false;
  }
  record_host(kRawAlloc, kHostMalloc, address, size_bytes);
  return true;
}

bool on_gave(void* block, size_t* size_bytes) {
  Block known;
  const uint64_t address = reinterpret_cast<uintptr_t>(block);
  if (!g_blocks.take(address, &known)) return false;
  *size_bytes = known.size_bytes;
  if (host_is_wanted()) {
    look_for_program_end();
    record_host(kRawFreeCompleted, kHostMalloc, address, 0);
  }
  return true;
}

void on_refused(size_t size_bytes) {
  if (host_is_wanted()) record_host(kRawOom, kHostMalloc, 0, size_bytes);
}

void on_lost() {
  if (host_is_wanted()) count_loss(kLostReentered);
}

void on_unseen(const char* library, bool with_maps) {
  g_unseen_note = with_maps ? kHostUnseenMallocAndMaps : kHostUnseenMalloc;
  g_at_first_event = note_unseen_malloc;
  __atomic_store_n(&g_unseen_malloc, library, __ATOMIC_RELEASE);
}

void on_leave(const void* begin, const void* end) {
  leave_blocks_of({reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(end)});
}

void on_here(const void* begin, const void* end) {
  g_host_library = {reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(end)};
}

}  // namespace

bool host_is_wanted() {
  const uint32_t now = state();
  return g_folder[0] != 0 && now != kOff && now != kPaused;
}

void record_host(RawAction action, HostMemory memory, uint64_t address, uint64_t size_bytes,
                 const char* file) {
  Memory told{};
  told.id = static_cast<uint16_t>(kFirstId + memory);
  told.device = {kHostType, static_cast<int8_t>(memory)};
  told.layer = kHostLayer;
  told.size_is_requested = true;
  strncpy(told.name, kHostMemoryNames[memory], sizeof(told.name) - 1);
  if (memory >= kHostUnseenMalloc) {
    const size_t at = strlen(told.name);
    strncpy(told.name + at, g_unseen_malloc, sizeof(told.name) - 1 - at);
  }
  Label label{};
  label.is_code_alone = true;
  if (file) {
    label.place = kFileMapPlace, label.text = file;
    label.length = static_cast<uint32_t>(strnlen(file, kMaxString));
  }
  record_in(action, address, size_bytes, told, label);
}

/// Called when a library is first used: two threads that come at once may leave one range out.
static void leave(const Left& left) {
  const uint32_t i = __atomic_load_n(&g_left_count, __ATOMIC_ACQUIRE);
  for (uint32_t k = 0; k < i; ++k) {
    if (g_left[k].range.begin == left.range.begin) return;
  }
  if (i == kMostLeft || left.range.end == 0) return;
  g_left[i] = left;
  __atomic_store_n(&g_left_count, i + 1, __ATOMIC_RELEASE);
}

void leave_blocks_of(ObjectRange range) { leave({range, false}); }
void leave_file_maps_of(ObjectRange range) { leave({range, true}); }

bool is_left(const void* caller, bool is_file_map) {
  if (t_framework_takes) return true;
  const uint32_t count = __atomic_load_n(&g_left_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; ++i) {
    if (g_left[i].range.contains(caller) && (is_file_map || !g_left[i].are_file_maps)) return true;
  }
  return false;
}

FrameworkTakes::FrameworkTakes() { t_framework_takes += 1; }
FrameworkTakes::~FrameworkTakes() { t_framework_takes -= 1; }

}  // namespace gpumemprof::probe

static const gpumemprof::probe::HostLink kHostLink = {
    gpumemprof::probe::kHostLinkVersion, gpumemprof::probe::on_took,
    gpumemprof::probe::on_gave,          gpumemprof::probe::on_refused,
    gpumemprof::probe::host_mapped,      gpumemprof::probe::host_unmapped,
    gpumemprof::probe::host_moved,       gpumemprof::probe::on_lost,
    gpumemprof::probe::on_unseen,        gpumemprof::probe::on_leave,
    gpumemprof::probe::on_here};

extern "C" __attribute__((visibility("default"))) const gpumemprof::probe::HostLink*
gpumemprof_host_link(uint32_t version) {
  return version == gpumemprof::probe::kHostLinkVersion ? &kHostLink : nullptr;
}
