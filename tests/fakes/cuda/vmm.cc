// Physical memory and addresses apart: handles, reservations, mappings. Memory is the device's
// again once its handle was released as often as it was made or retained, and nothing maps it any
// more.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "driver.h"

namespace fake_cuda {
namespace {

struct Physical {
  int device;
  uint64_t bytes;
  int references, maps;
  bool is_imported;
};
struct Mapping {
  uint64_t bytes, handle;
};

std::map<uint64_t, Physical> g_handles;
std::map<Pointer, uint64_t> g_reserved;
std::map<Pointer, Mapping> g_mapped;

void drop_if_unused(uint64_t handle) {
  const auto at = g_handles.find(handle);
  if (at->second.references > 0 || at->second.maps > 0) return;
  if (!at->second.is_imported)
    charge(at->second.device, fake_gpu::kHandles, -int64_t(at->second.bytes));
  g_handles.erase(at);
}

/// The lowest number that is free: a handle's value comes again.
uint64_t new_handle(const Physical& physical) {
  uint64_t handle = 0x1000;
  while (g_handles.contains(handle)) handle += 0x10;
  g_handles[handle] = physical;
  return handle;
}

bool overlaps(Pointer begin, uint64_t bytes) {
  for (const auto& [from, mapping] : g_mapped)
    if (from < begin + bytes && begin < from + mapping.bytes) return true;
  return false;
}

}  // namespace
}  // namespace fake_cuda

using namespace fake_cuda;

/// Of CUmemAllocationProp: the kind, the kind of handle, where: {type, number}, and what is of no
/// matter here.
struct Prop {
  int type, handles, place, device;
  void* security;
  unsigned char rest[8];
};

FAKE_CUDA Result cuMemGetAllocationGranularity(size_t* bytes, const Prop*, int) {
  *bytes = kPage;
  return kSuccess;
}

FAKE_CUDA Result cuMemCreate(uint64_t* handle, size_t bytes, const Prop* prop, unsigned long long) {
  const std::lock_guard lock(g_lock);
  if (!is_device(prop->device) || bytes == 0 || bytes % kPage != 0) return kInvalidValue;
  if (const Result code = charge(prop->device, fake_gpu::kHandles, int64_t(bytes))) return code;
  *handle = new_handle({prop->device, bytes, 1, 0, false});
  return kSuccess;
}

FAKE_CUDA Result cuMemRelease(uint64_t handle) {
  const std::lock_guard lock(g_lock);
  const auto at = g_handles.find(handle);
  if (at == g_handles.end() || at->second.references == 0) return kInvalidValue;
  --at->second.references;
  drop_if_unused(handle);
  return kSuccess;
}

FAKE_CUDA Result cuMemRetainAllocationHandle(uint64_t* handle, void* address) {
  const std::lock_guard lock(g_lock);
  auto at = g_mapped.upper_bound(reinterpret_cast<Pointer>(address));
  if (at == g_mapped.begin()) return kInvalidValue;
  --at;
  if (reinterpret_cast<Pointer>(address) >= at->first + at->second.bytes) return kInvalidValue;
  *handle = at->second.handle;
  ++g_handles[*handle].references;
  return kSuccess;
}

FAKE_CUDA Result cuMemAddressReserve(Pointer* out, size_t bytes, size_t, Pointer,
                                     unsigned long long) {
  const std::lock_guard lock(g_lock);
  if (bytes == 0 || bytes % kPage != 0) return kInvalidValue;
  g_reserved[*out = take_addresses(bytes)] = bytes;
  return kSuccess;
}

FAKE_CUDA Result cuMemAddressFree(Pointer address, size_t bytes) {
  const std::lock_guard lock(g_lock);
  const auto at = g_reserved.find(address);
  if (at == g_reserved.end() || at->second != bytes || overlaps(address, bytes))
    return kInvalidValue;
  g_reserved.erase(at);
  return kSuccess;
}

FAKE_CUDA Result cuMemMap(Pointer address, size_t bytes, size_t offset, uint64_t handle,
                          unsigned long long) {
  const std::lock_guard lock(g_lock);
  const auto at = g_handles.find(handle);
  if (at == g_handles.end() || at->second.references == 0) return kInvalidValue;
  if (bytes == 0 || offset + bytes > at->second.bytes || overlaps(address, bytes))
    return kInvalidValue;
  auto reserved = g_reserved.upper_bound(address);
  if (reserved == g_reserved.begin()) return kInvalidValue;
  --reserved;
  if (address + bytes > reserved->first + reserved->second) return kInvalidValue;
  g_mapped[address] = {bytes, handle};
  ++at->second.maps;
  return kSuccess;
}

/// The range must be made of whole mappings.
FAKE_CUDA Result cuMemUnmap(Pointer address, size_t bytes) {
  const std::lock_guard lock(g_lock);
  Pointer at = address;
  while (at < address + bytes) {
    const auto one = g_mapped.find(at);
    if (one == g_mapped.end()) return kInvalidValue;
    at += one->second.bytes;
  }
  if (at != address + bytes) return kInvalidValue;
  for (at = address; at < address + bytes;) {
    const Mapping mapping = g_mapped[at];
    g_mapped.erase(at);
    --g_handles[mapping.handle].maps;
    drop_if_unused(mapping.handle);
    at += mapping.bytes;
  }
  return kSuccess;
}

FAKE_CUDA Result cuMemSetAccess(Pointer, size_t, const void*, size_t) { return kSuccess; }

/// A descriptor of a file that holds what another process must know.
FAKE_CUDA Result cuMemExportToShareableHandle(void* out, uint64_t handle, int type,
                                              unsigned long long) {
  const std::lock_guard lock(g_lock);
  const auto at = g_handles.find(handle);
  if (at == g_handles.end() || type != 1) return kInvalidValue;
  const int fd = memfd_create("fake-cuda", 0);
  const uint64_t words[2] = {uint64_t(at->second.device), at->second.bytes};
  if (fd < 0 || pwrite(fd, words, sizeof(words), 0) != sizeof(words)) return kNotSupported;
  std::memcpy(out, &fd, sizeof(fd));
  return kSuccess;
}
FAKE_CUDA Result cuMemImportFromShareableHandle(uint64_t* handle, void* from, int type) {
  const std::lock_guard lock(g_lock);
  uint64_t words[2] = {};
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(from));
  if (type != 1 || pread(fd, words, sizeof(words), 0) != sizeof(words)) return kInvalidValue;
  *handle = new_handle({int(words[0]), words[1], 1, 0, true});
  return kSuccess;
}
