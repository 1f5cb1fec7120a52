// cuGetProcAddress: names without a suffix, and the version of the interface that the caller was
// built for.
#include <cstring>

#include "driver.h"

using namespace fake_cuda;

// The functions that are looked up here, without their parameters: they are handed out, not called.
#define FAKE_ENTRIES(E)                                                       \
  E(cuInit, 2000, cuInit, 0)                                                  \
  E(cuDriverGetVersion, 2020, cuDriverGetVersion, 0)                          \
  E(cuDeviceGet, 2000, cuDeviceGet, 0)                                        \
  E(cuDeviceGetCount, 2000, cuDeviceGetCount, 0)                              \
  E(cuDeviceGetName, 2000, cuDeviceGetName, 0)                                \
  E(cuDeviceGetUuid, 9020, cuDeviceGetUuid, 0)                                \
  E(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2, 0)                            \
  E(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2, 0)                           \
  E(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute, 0)                      \
  E(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain, 0)              \
  E(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2, 0)        \
  E(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2, 0)            \
  E(cuCtxCreate, 3020, cuCtxCreate_v2, 0)                                     \
  E(cuCtxCreate, 11040, cuCtxCreate_v3, 0)                                    \
  E(cuCtxDestroy, 4000, cuCtxDestroy_v2, 0)                                   \
  E(cuCtxSetCurrent, 4000, cuCtxSetCurrent, 0)                                \
  E(cuCtxGetCurrent, 4000, cuCtxGetCurrent, 0)                                \
  E(cuCtxGetDevice, 2000, cuCtxGetDevice, 0)                                  \
  E(cuCtxSetLimit, 3010, cuCtxSetLimit, 0)                                    \
  E(cuCtxSynchronize, 2000, cuCtxSynchronize, 0)                              \
  E(cuMemGetInfo, 3020, cuMemGetInfo_v2, 0)                                   \
  E(cuMemAlloc, 3020, cuMemAlloc_v2, 0)                                       \
  E(cuMemAllocPitch, 3020, cuMemAllocPitch_v2, 0)                             \
  E(cuMemFree, 3020, cuMemFree_v2, 0)                                         \
  E(cuMemAllocManaged, 6000, cuMemAllocManaged, 0)                            \
  E(cuMemAllocHost, 3020, cuMemAllocHost_v2, 0)                               \
  E(cuMemHostAlloc, 2020, cuMemHostAlloc, 0)                                  \
  E(cuMemFreeHost, 2000, cuMemFreeHost, 0)                                    \
  E(cuMemHostRegister, 6050, cuMemHostRegister_v2, 0)                         \
  E(cuMemHostUnregister, 4000, cuMemHostUnregister, 0)                        \
  E(cuMemAllocAsync, 11020, cuMemAllocAsync, 1)                               \
  E(cuMemAllocAsync, 11020, cuMemAllocAsync_ptsz, 2)                          \
  E(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync, 1)               \
  E(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync_ptsz, 2)          \
  E(cuMemFreeAsync, 11020, cuMemFreeAsync, 1)                                 \
  E(cuMemFreeAsync, 11020, cuMemFreeAsync_ptsz, 2)                            \
  E(cuEventSynchronize, 2000, cuEventSynchronize, 0)                          \
  E(cuStreamGetCtx, 9020, cuStreamGetCtx, 0)                                  \
  E(cuGraphAddNode, 12020, cuGraphAddNode, 0)                                 \
  E(cuGraphAddNode_v2, 12030, cuGraphAddNode_v2, 0)                           \
  E(cuMemPoolCreate, 11020, cuMemPoolCreate, 0)                               \
  E(cuMemPoolDestroy, 11020, cuMemPoolDestroy, 0)                             \
  E(cuMemPoolTrimTo, 11020, cuMemPoolTrimTo, 0)                               \
  E(cuMemPoolGetAttribute, 11020, cuMemPoolGetAttribute, 0)                   \
  E(cuMemPoolSetAttribute, 11020, cuMemPoolSetAttribute, 0)                   \
  E(cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool, 0)           \
  E(cuDeviceGetMemPool, 11020, cuDeviceGetMemPool, 0)                         \
  E(cuDeviceSetMemPool, 11020, cuDeviceSetMemPool, 0)                         \
  E(cuStreamSynchronize, 2000, cuStreamSynchronize, 1)                        \
  E(cuStreamSynchronize, 7000, cuStreamSynchronize_ptsz, 2)                   \
  E(cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity, 0)   \
  E(cuMemCreate, 10020, cuMemCreate, 0)                                       \
  E(cuMemRelease, 10020, cuMemRelease, 0)                                     \
  E(cuMemMap, 10020, cuMemMap, 0)                                             \
  E(cuMemUnmap, 10020, cuMemUnmap, 0)                                         \
  E(cuMemSetAccess, 10020, cuMemSetAccess, 0)                                 \
  E(cuMemAddressReserve, 10020, cuMemAddressReserve, 0)                       \
  E(cuMemAddressFree, 10020, cuMemAddressFree, 0)                             \
  E(cuMemRetainAllocationHandle, 11000, cuMemRetainAllocationHandle, 0)       \
  E(cuMemExportToShareableHandle, 10020, cuMemExportToShareableHandle, 0)     \
  E(cuMemImportFromShareableHandle, 10020, cuMemImportFromShareableHandle, 0) \
  E(cuIpcGetMemHandle, 4010, cuIpcGetMemHandle, 0)                            \
  E(cuIpcOpenMemHandle, 11000, cuIpcOpenMemHandle_v2, 0)                      \
  E(cuIpcCloseMemHandle, 4010, cuIpcCloseMemHandle, 0)                        \
  E(cuArrayCreate, 3020, cuArrayCreate_v2, 0)                                 \
  E(cuArray3DCreate, 3020, cuArray3DCreate_v2, 0)                             \
  E(cuArrayDestroy, 2000, cuArrayDestroy, 0)                                  \
  E(cuMipmappedArrayCreate, 5000, cuMipmappedArrayCreate, 0)                  \
  E(cuMipmappedArrayDestroy, 5000, cuMipmappedArrayDestroy, 0)                \
  E(cuModuleLoadData, 2000, cuModuleLoadData, 0)                              \
  E(cuModuleUnload, 2000, cuModuleUnload, 0)                                  \
  E(cuLibraryLoadData, 12000, cuLibraryLoadData, 0)                           \
  E(cuLibraryUnload, 12000, cuLibraryUnload, 0)                               \
  E(cuGraphCreate, 10000, cuGraphCreate, 0)                                   \
  E(cuGraphAddMemAllocNode, 11040, cuGraphAddMemAllocNode, 0)                 \
  E(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags, 0)       \
  E(cuGraphLaunch, 10000, cuGraphLaunch, 1)                                   \
  E(cuGraphLaunch, 10000, cuGraphLaunch_ptsz, 2)                              \
  E(cuGraphExecDestroy, 10000, cuGraphExecDestroy, 0)                         \
  E(cuDeviceGraphMemTrim, 11040, cuDeviceGraphMemTrim, 0)                     \
  E(cuDeviceGetGraphMemAttribute, 11040, cuDeviceGetGraphMemAttribute, 0)     \
  E(cuLaunchKernel, 4000, cuLaunchKernel, 0)                                  \
  E(cuGetErrorName, 6000, cuGetErrorName, 0)                                  \
  E(cuGetErrorString, 6000, cuGetErrorString, 0)                              \
  E(cuGetExportTable, 3000, cuGetExportTable, 0)                              \
  E(cuNewInThisDriver, 13000, fake_new_function, 0)

namespace lookup {
/// In no header and no list of ours: callers find it by asking.
extern "C" __attribute__((visibility("hidden"))) int fake_new_function() { return 4242; }
}  // namespace lookup

namespace {
struct Entry {
  const char* base;
  int version;
  const char* symbol;
  int streams;  // 0: has none. 1: the legacy default stream. 2: one a thread
};
constexpr Entry kEntries[] = {
#define FAKE_ENTRY(base, version, symbol, streams) {#base, version, #symbol, streams},
    FAKE_ENTRIES(FAKE_ENTRY)};

}  // namespace

// The addresses come from an assembler's table: their types are of no matter here.
#define FAKE_WORD(base, version, symbol, streams) ".quad " #symbol "\n"
__asm__(".pushsection .data.rel.ro,\"aw\"\n.balign 8\nfake_cuda_addresses:\n" FAKE_ENTRIES(
    FAKE_WORD) ".popsection\n");
extern "C" __attribute__((visibility("hidden"))) void* const fake_cuda_addresses[];

FAKE_CUDA Result cuGetProcAddress_v2(const char* name, void** out, int version, uint64_t flags,
                                     int* status) {
  *out = nullptr;
  if (status) *status = 1;
  if (std::strcmp(name, "") == 0) return kNotFound;
  const bool is_self = std::strcmp(name, "cuGetProcAddress") == 0;
  if (is_self) {
    *out = reinterpret_cast<void*>(&cuGetProcAddress_v2);
    if (status) *status = 0;
    return kSuccess;
  }
  const int wanted = flags & 2 ? 2 : 1;
  int best = -1;
  for (size_t i = 0; i < std::size(kEntries); ++i) {
    const Entry& entry = kEntries[i];
    if (std::strcmp(entry.base, name) != 0) continue;
    if (entry.streams != 0 && entry.streams != wanted) continue;
    if (entry.version > version) {
      if (status && best < 0) *status = 2;
      continue;
    }
    if (best < 0 || entry.version > kEntries[best].version) best = static_cast<int>(i);
  }
  if (best < 0) return kNotFound;
  if (status) *status = 0;
  *out = fake_cuda_addresses[best];
  return kSuccess;
}

FAKE_CUDA Result cuGetProcAddress(const char* name, void** out, int version, uint64_t flags) {
  const bool is_old_self = version < 12000 && std::strcmp(name, "cuGetProcAddress") == 0;
  if (!is_old_self) return cuGetProcAddress_v2(name, out, version, flags, nullptr);
  *out = reinterpret_cast<void*>(&cuGetProcAddress);
  return kSuccess;
}
