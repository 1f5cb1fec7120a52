#include "probe/hooks/torch_parts.h"

#include <stdlib.h>
#include <string.h>

#include "probe/dynamic.h"
#include "probe/recorder.h"
#include "probe/sys.h"

#define HOOK extern "C" __attribute__((visibility("default")))

namespace gpumemprof::probe {
namespace {

using namespace format;

constexpr int8_t kCuda = 1;  // c10::DeviceType
constexpr uint32_t kMostDevices = 128;

/// The beginning of c10's TraceEntry, which no release from 2.5 to 2.15 has moved. `pool` is there
/// from 2.8 on.
struct TraceEntry {
  int32_t action;
  int8_t device;
  uint64_t address;  // refusals: what the device has free
  void* context[2];
  int64_t stream;
  uint64_t size;
  int64_t pool[2];
};
static_assert(sizeof(TraceEntry) == 64);

enum TraceAction : int32_t {
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kSnapshot,
  kOom
};

/// What the tracker said on this thread and no report has taken yet.
struct Pending {
  uint64_t address;  // 0: nothing
  int32_t action;
  int8_t device;
  AllocatorSays says;
};
thread_local Pending t_pending __attribute__((tls_model("initial-exec")));

const char kSetUpUnseen[] = "the allocator was not followed from its start";

bool g_is_attached, g_has_pools;
uint32_t g_is_on;                   // followed, and nothing has contradicted it
uint64_t g_reserved[kMostDevices];  // sum of segments; changed under the device's lock alone
uint64_t g_device_bytes[kMostDevices];
uint32_t g_is_told[kMostDevices];
const char* g_untold;  // why it was switched off, while the file does not say so yet
char g_version[64], g_settings[2048];

bool is_on() { return __atomic_load_n(&g_is_on, __ATOMIC_RELAXED); }

/// Writes what is known of a device's allocator. `why`: null where it is followed. False where the
/// file cannot be written to now.
bool tell(int8_t device, const char* why) {
  char body[16 + sizeof(g_version) + sizeof(g_settings) + 256];
  const uint16_t version = static_cast<uint16_t>(strlen(g_version));
  const uint16_t settings = static_cast<uint16_t>(strlen(g_settings));
  const size_t reason = why ? strnlen(why, 255) : 0;
  body[0] = kCuda, body[1] = device, body[2] = why == nullptr, body[3] = 0;
  const bool is_known = device >= 0 && static_cast<uint32_t>(device) < kMostDevices;
  const uint64_t bytes = is_known ? g_device_bytes[static_cast<uint32_t>(device)] : 0;
  memcpy(body + 4, &bytes, 8);
  memcpy(body + 12, &version, 2), memcpy(body + 14, &settings, 2);
  memcpy(body + 16, g_version, version);
  memcpy(body + 16 + version, g_settings, settings);
  memcpy(body + 16 + version + settings, why ? why : "", reason);
  return tell_allocator(body, 16u + version + settings + reason);
}

/// Of all devices. Tried again with later events where the file cannot be written to now: recording
/// may be paused.
void tell_why() {
  const char* why = __atomic_exchange_n(&g_untold, nullptr, __ATOMIC_RELAXED);
  if (!why) return;
  bool is_told = true;
  for (uint32_t i = 0; i < kMostDevices; ++i) {
    if (g_device_bytes[i] || g_reserved[i]) is_told = tell(static_cast<int8_t>(i), why) && is_told;
  }
  if (!is_told) __atomic_store_n(&g_untold, why, __ATOMIC_RELAXED);
}

/// From here on nothing is taken from the tracker.
void switch_off(const char* why) {
  if (!__atomic_exchange_n(&g_is_on, 0, __ATOMIC_RELAXED)) return;
  __atomic_store_n(&g_untold, why, __ATOMIC_RELAXED);
  tell_why();
}

/// Once a device: why its allocator is not followed, where it has never been.
void say_unseen(Device device) {
  const uint32_t index = static_cast<uint8_t>(device.index);
  if (g_is_attached || index >= kMostDevices) return;
  if (!__atomic_exchange_n(&g_is_told[index], 1, __ATOMIC_RELAXED))
    tell(device.index, kSetUpUnseen);
}

Placement place_of(const TraceEntry& entry) {
  if (!g_has_pools) return {entry.stream, {0, 0}};
  return {entry.stream, {entry.pool[0], entry.pool[1]}};
}

void on_segment(const TraceEntry& entry) {
  uint64_t& reserved = g_reserved[static_cast<uint8_t>(entry.device) % kMostDevices];
  const bool is_new = entry.action == kSegmentAlloc || entry.action == kSegmentMap;
  reserved = is_new ? reserved + entry.size : reserved - entry.size;
  if (entry.size % 512 != 0) return switch_off("a segment is no multiple of 512 bytes");
  constexpr RawDetail kDetails[] = {kDetailSegmentAlloc, kDetailSegmentFree, kDetailSegmentMap,
                                    kDetailSegmentUnmap};
  record_segment(kDetails[entry.action - kSegmentAlloc], entry.address, entry.size,
                 {kCuda, entry.device}, place_of(entry));
}

/// The tracker: called with the device's lock held, on the thread that allocates or frees. Nothing
/// here waits, allocates or calls back.
void on_entry(const void*, const TraceEntry& entry) {
  if (!is_on()) return;
  if (state() == kPaused) return switch_off("recording was paused");
  if ((state() != kRecording && state() != kUnset && state() != kOpening) || entry.device < 0)
    return;
  Pending* pending = &t_pending;
  switch (entry.action) {
    case kAlloc:
    case kFreeRequested:
      *pending = {entry.address, entry.action, entry.device, {}};
      pending->says.requested = entry.action == kAlloc ? entry.size : 0;
      pending->says.place = place_of(entry);
      pending->says.is_delayed = entry.action == kFreeRequested;
      break;
    case kFreeCompleted:
      // Within the free itself, or later, when the streams that used the block are done.
      if (pending->address == entry.address && pending->action == kFreeRequested) {
        pending->says.is_delayed = false;
      } else {
        record_completed(entry.address, {kCuda, entry.device});
      }
      break;
    case kSegmentAlloc:
    case kSegmentFree:
    case kSegmentMap:
    case kSegmentUnmap:
      on_segment(entry);
      break;
    case kOom:
      *pending = {1, kOom, entry.device, {}};
      pending->says.place = place_of(entry);
      pending->says.has_device_free = true;
      pending->says.device_free = entry.address;
      break;
    default:  // snapshots, annotations, what is not known
      break;
  }
}

/// What the tracker says of the reported event if the two agree; otherwise the tracker is switched
/// off.
const AllocatorSays* take(int32_t action, uint64_t address, Device device) {
  if (device.type != kCuda) return nullptr;
  if (!is_on()) {
    if (__atomic_load_n(&g_untold, __ATOMIC_RELAXED)) tell_why();
    return say_unseen(device), nullptr;
  }
  Pending* pending = &t_pending;
  const bool fits =
      pending->address == address && pending->action == action && pending->device == device.index;
  pending->address = 0;
  if (fits) return &pending->says;
  switch_off("the allocator's history and its reports do not agree");
  return nullptr;
}

bool reserves(uint64_t reserved, Device device) {
  if (g_reserved[static_cast<uint8_t>(device.index) % kMostDevices] == reserved) return true;
  switch_off("the segments do not add up to what the allocator has reserved");
  return false;
}

/// A std::function of libstdc++ that calls on_entry and holds nothing.
struct Function {
  void* held[2];
  bool (*manage)(void*, const void*, int);
  void (*call)(const void*, const TraceEntry&);
};
bool manage(void* to, const void* from, int what) {
  constexpr int kClone = 2;
  if (what == kClone) memcpy(to, from, sizeof(Function::held));
  return false;
}

/// Bytes of each device, as the driver says without making a context.
void ask_driver(uint32_t devices) {
  using Get = int (*)(int*, int);
  using Total = int (*)(size_t*, int);
  auto get = reinterpret_cast<Get>(find_real("cuDeviceGet", nullptr, "libcuda"));
  auto total = reinterpret_cast<Total>(find_real("cuDeviceTotalMem_v2", nullptr, "libcuda"));
  for (uint32_t i = 0; i < devices && get && total; ++i) {
    int device = 0;
    size_t bytes = 0;
    if (get(&device, static_cast<int>(i)) == 0 && total(&bytes, device) == 0) {
      g_device_bytes[i] = bytes;
    }
  }
}

/// What the release reads its settings from: since 2.10 the name without CUDA comes first.
void take_settings(uint32_t minor) {
  const char* text = minor >= 10 ? getenv("PYTORCH_ALLOC_CONF") : nullptr;
  if (!text) text = getenv("PYTORCH_CUDA_ALLOC_CONF");
  const size_t length = text ? strnlen(text, sizeof(g_settings) - 1) : 0;
  memcpy(g_settings, text ? text : "", length);
  g_settings[length] = 0;
}

/// Right after the allocator was set up for `devices` devices.
void follow(int64_t devices) {
  if (g_is_attached || !g_folder[0] || devices <= 0) return;
  if (state() != kUnset && state() != kRecording && state() != kOpening) return;
  const uint32_t count =
      devices < int64_t{kMostDevices} ? static_cast<uint32_t>(devices) : kMostDevices;
  const char* why = nullptr;
  const TorchAllocator found = find_torch_allocator(g_version, sizeof(g_version), &why);
  take_settings(found.minor);
  g_is_attached = true;  // one way or the other; not tried again
  if (!found.allocator) {
    for (uint32_t i = 0; i < count; ++i) tell(static_cast<int8_t>(i), why);
    return;
  }
  ask_driver(count);
  for (uint32_t i = 0; i < count; ++i) tell(static_cast<int8_t>(i), nullptr);
  g_has_pools = found.has_pools;
  __atomic_store_n(&g_is_on, 1, __ATOMIC_RELEASE);
  Function tracker{{nullptr, nullptr}, manage, on_entry};
  found.attach(found.allocator, &tracker);
}

}  // namespace

const AllocatorSays* cuda_says_of_alloc(uint64_t address, uint64_t size, uint64_t reserved,
                                        Device device) {
  const AllocatorSays* says = take(kAlloc, address, device);
  if (!says || !reserves(reserved, device)) return nullptr;
  if (says->requested <= size) return says;
  switch_off("a block is smaller than what was asked for");
  return nullptr;
}

const AllocatorSays* cuda_says_of_free(uint64_t address, uint64_t reserved, Device device) {
  const AllocatorSays* says = take(kFreeRequested, address, device);
  return says && reserves(reserved, device) ? says : nullptr;
}

const AllocatorSays* cuda_says_of_oom(Device device) { return take(kOom, 1, device); }

// The function that makes the caches of peers is the first that PyTorch calls when the allocator is
// there: in libc10_cuda from 2.11 on, before in libtorch_cuda.
#define PEERS_HOOK(id, mangled)                                                               \
  HOOK void gpumemprof_hook_peers_##id(int64_t devices) __asm__(mangled);                     \
  static void (*g_peers_##id)(int64_t);                                                       \
  static void* find_peers_##id() {                                                            \
    if (!g_peers_##id) {                                                                      \
      g_peers_##id = reinterpret_cast<void (*)(int64_t)>(                                     \
          find_real(mangled, reinterpret_cast<void*>(&gpumemprof_hook_peers_##id), "_cuda")); \
    }                                                                                         \
    return reinterpret_cast<void*>(g_peers_##id);                                             \
  }                                                                                           \
  void gpumemprof_hook_peers_##id(int64_t devices) {                                          \
    if (find_peers_##id()) g_peers_##id(devices);                                             \
    follow(devices);                                                                          \
  }

#define PEERS_C10 "_ZN3c104cuda6detail21init_p2p_access_cacheEl"
#define PEERS_AT "_ZN2at4cuda6detail21init_p2p_access_cacheEl"
PEERS_HOOK(c10, PEERS_C10)
PEERS_HOOK(at, PEERS_AT)

const Hook kCudaHooks[kCudaHookCount] = {
    {PEERS_C10, reinterpret_cast<void*>(&gpumemprof_hook_peers_c10), find_peers_c10, false},
    {PEERS_AT, reinterpret_cast<void*>(&gpumemprof_hook_peers_at), find_peers_at, false},
};

}  // namespace gpumemprof::probe
