// cuMemAlloc and its like, host memory, arrays, memory of other processes.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "driver.h"

namespace fake_cuda {
namespace {

/// A page or several, at a multiple of kPage. Blocks up to kSmall share one.
struct Pages {
  int device;
  Use use;
  uint64_t bytes;
  std::map<Pointer, uint64_t> blocks;  // end by begin
};
constexpr uint64_t kSmall = kMib;
constexpr uint64_t kAlignment = 512;

std::map<Pointer, Pages> g_pages;
std::map<void*, bool> g_host;  // true: registered, of the program's own
std::set<Pointer> g_managed;
std::map<Pointer, uint64_t> g_imported;  // what the handle said; 0: nobody can tell

/// The first hole of the page where `bytes` fit; 0 where there is none.
Pointer hole_in(Pointer begin, const Pages& pages, uint64_t bytes) {
  Pointer at = begin;
  for (const auto& [from, to] : pages.blocks) {
    if (from - at >= bytes) return at;
    at = to;
  }
  return begin + pages.bytes - at >= bytes ? at : 0;
}

}  // namespace

Pointer take_addresses(uint64_t bytes) {
  static Pointer next = 0x7f00'0000'0000;
  const Pointer found = next;
  next += round_up(bytes, kPage) + kPage;
  return found;
}

Result take_pages(int device, Use use, uint64_t bytes, Pointer* out) {
  if (bytes == 0) return kInvalidValue;
  bytes = round_up(bytes, kAlignment);
  if (bytes <= kSmall) {
    for (auto& [begin, pages] : g_pages) {
      if (pages.device != device || pages.use != use || pages.bytes != kPage) continue;
      const Pointer hole = hole_in(begin, pages, bytes);
      if (!hole) continue;
      pages.blocks[hole] = hole + bytes;
      *out = hole;
      return kSuccess;
    }
  }
  const uint64_t whole = round_up(bytes, kPage);
  if (const Result code = charge(device, use, int64_t(whole))) return code;
  const Pointer begin = take_addresses(whole);
  g_pages[begin] = {device, use, whole, {{begin, begin + bytes}}};
  *out = begin;
  return kSuccess;
}

bool give_back_pages(Pointer address) {
  auto at = g_pages.upper_bound(address);
  if (at == g_pages.begin()) return false;
  --at;
  if (at->second.blocks.erase(address) == 0) return false;
  if (!at->second.blocks.empty()) return true;
  charge(at->second.device, at->second.use, -int64_t(at->second.bytes));
  g_pages.erase(at);
  return true;
}

void forget_memory(int device) {
  for (auto at = g_pages.begin(); at != g_pages.end();) {
    if (at->second.device != device) {
      ++at;
      continue;
    }
    charge(device, at->second.use, -int64_t(at->second.bytes));
    at = g_pages.erase(at);
  }
}

}  // namespace fake_cuda

using namespace fake_cuda;

static Result allocate(Pointer* out, size_t bytes, Use use = fake_gpu::kMemory) {
  const std::lock_guard lock(g_lock);
  int device = 0;
  if (const Result code = current_device(&device)) return code;
  return take_pages(device, use, bytes, out);
}

FAKE_CUDA Result cuMemAlloc_v2(Pointer* out, size_t bytes) { return allocate(out, bytes); }

FAKE_CUDA Result cuMemAllocPitch_v2(Pointer* out, size_t* pitch, size_t width, size_t height,
                                    unsigned) {
  *pitch = round_up(width, kAlignment);
  return allocate(out, *pitch * height);
}

FAKE_CUDA Result cuMemFree_v2(Pointer address) {
  const std::lock_guard lock(g_lock);
  if (address == 0) return kSuccess;
  if (g_managed.erase(address)) return kSuccess;
  return give_back_pages(address) || free_from_pool(address) ? kSuccess : kInvalidValue;
}

/// Where it lies is decided by who touches it: here, nobody does.
FAKE_CUDA Result cuMemAllocManaged(Pointer* out, size_t bytes, unsigned) {
  const std::lock_guard lock(g_lock);
  int device = 0;
  if (const Result code = current_device(&device)) return code;
  if (bytes == 0) return kInvalidValue;
  g_managed.insert(*out = take_addresses(bytes));
  return kSuccess;
}

FAKE_CUDA Result cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  const std::lock_guard lock(g_lock);
  int device = 0;
  if (const Result code = current_device(&device)) return code;
  *out = std::aligned_alloc(4096, round_up(bytes ? bytes : 1, 4096));
  g_host[*out] = false;
  return kSuccess;
}
FAKE_CUDA Result cuMemAllocHost_v2(void** out, size_t bytes) {
  return cuMemHostAlloc(out, bytes, 0);
}

FAKE_CUDA Result cuMemFreeHost(void* address) {
  const std::lock_guard lock(g_lock);
  const auto at = g_host.find(address);
  if (at == g_host.end() || at->second) return kInvalidValue;
  g_host.erase(at);
  std::free(address);
  return kSuccess;
}
FAKE_CUDA Result cuMemHostRegister_v2(void* address, size_t, unsigned) {
  const std::lock_guard lock(g_lock);
  return g_host.emplace(address, true).second ? kSuccess : kInvalidValue;
}
FAKE_CUDA Result cuMemHostUnregister(void* address) {
  const std::lock_guard lock(g_lock);
  const auto at = g_host.find(address);
  if (at == g_host.end() || !at->second) return kInvalidValue;
  g_host.erase(at);
  return kSuccess;
}

// ---- Memory of other processes: 64 bytes go from one to the other, and the owner pays.
struct IpcHandle {
  char bytes[64];
};
FAKE_CUDA Result cuMemGetAddressRange_v2(Pointer* base, size_t* bytes, Pointer address) {
  const std::lock_guard lock(g_lock);
  const auto imported = g_imported.find(address);
  if (imported != g_imported.end() && imported->second)
    return *base = imported->first, *bytes = imported->second, kSuccess;
  auto at = g_pages.upper_bound(address);
  if (at == g_pages.begin()) return kInvalidValue;
  const auto& blocks = (--at)->second.blocks;
  const auto block = blocks.find(address);
  if (block == blocks.end()) return kInvalidValue;
  return *base = address, *bytes = block->second - address, kSuccess;
}
FAKE_CUDA Result cuIpcGetMemHandle(IpcHandle* handle, Pointer address) {
  Pointer base = 0;
  size_t bytes = 0;
  if (const Result code = cuMemGetAddressRange_v2(&base, &bytes, address)) return code;
  std::memset(handle, 0, sizeof(*handle));
  const uint64_t words[3] = {uint64_t(getpid()), address, bytes};
  std::memcpy(handle, words, sizeof(words));
  return kSuccess;
}
FAKE_CUDA Result cuIpcOpenMemHandle_v2(Pointer* out, IpcHandle handle, unsigned) {
  const std::lock_guard lock(g_lock);
  uint64_t words[3] = {};
  std::memcpy(words, &handle, sizeof(words));
  if (words[0] == 0) return kInvalidHandle;
  *out = take_addresses(std::max<uint64_t>(words[2], kPage));
  g_imported[*out] = words[2];
  return kSuccess;
}
FAKE_CUDA Result cuIpcCloseMemHandle(Pointer address) {
  const std::lock_guard lock(g_lock);
  return g_imported.erase(address) ? kSuccess : kInvalidValue;
}

// ---- Arrays: the descriptor says how many elements, the driver alone how they lie. Here: rows of
// 512 bytes.
struct Array2d {
  size_t width, height;
  int format;
  unsigned channels;
};
struct Array3d {
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};
static size_t element_bytes(int format, unsigned channels) {
  const size_t one = format == 1 || format == 8                     ? 1
                     : format == 2 || format == 9 || format == 0x10 ? 2
                                                                    : 4;
  return one * channels;
}
FAKE_CUDA Result cuArray3DCreate_v2(Pointer* out, const Array3d* d) {
  const uint64_t row = round_up(d->width * element_bytes(d->format, d->channels), kAlignment);
  const uint64_t rows = (d->height ? d->height : 1) * (d->depth ? d->depth : 1);
  return allocate(out, row * rows, fake_gpu::kArrays);
}
FAKE_CUDA Result cuArrayCreate_v2(Pointer* out, const Array2d* d) {
  const Array3d whole = {d->width, d->height, 0, d->format, d->channels, 0};
  return cuArray3DCreate_v2(out, &whole);
}
FAKE_CUDA Result cuArrayDestroy(Pointer array) {
  const std::lock_guard lock(g_lock);
  return give_back_pages(array) ? kSuccess : kInvalidHandle;
}
/// Each level is half as wide and half as high as the one before it, and half as deep where its
/// depth is no number of layers.
FAKE_CUDA Result cuMipmappedArrayCreate(Pointer* out, const Array3d* d, unsigned levels) {
  uint64_t bytes = 0;
  for (unsigned level = 0; level < levels; ++level) {
    const size_t width = d->width >> level ? d->width >> level : 1;
    const size_t height = d->height >> level ? d->height >> level : 1;
    const size_t deep = d->flags & 5 ? d->depth : d->depth >> level;
    bytes += round_up(width * element_bytes(d->format, d->channels), kAlignment) * height *
             (deep ? deep : 1);
  }
  return allocate(out, bytes, fake_gpu::kArrays);
}
FAKE_CUDA Result cuMipmappedArrayDestroy(Pointer array) { return cuArrayDestroy(array); }
