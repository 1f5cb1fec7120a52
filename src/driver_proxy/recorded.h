// The driver's functions that are recorded: our definitions of them are in memory.cc, arrays.cc,
// pools.cc, graphs.cc, virtual.cc and contexts.cc. All others are forwarded as they are
// (functions.txt, trampolines.cc).
//
// ENTRY(base, version, symbol, streams): cuGetProcAddress(base, version) stands for the exported
// `symbol`, from this version of the interface on. streams: 0 where the default stream is of no
// matter, 1 for the symbol of the default stream that all threads share, 2 for that of one stream a
// thread.
#pragma once

#define DRIVER_RECORDED(ENTRY)                                                    \
  ENTRY(cuMemAlloc, 3020, cuMemAlloc_v2, 0)                                       \
  ENTRY(cuMemAllocPitch, 3020, cuMemAllocPitch_v2, 0)                             \
  ENTRY(cuMemFree, 3020, cuMemFree_v2, 0)                                         \
  ENTRY(cuMemAllocManaged, 6000, cuMemAllocManaged, 0)                            \
  ENTRY(cuMemAllocHost, 3020, cuMemAllocHost_v2, 0)                               \
  ENTRY(cuMemHostAlloc, 2020, cuMemHostAlloc, 0)                                  \
  ENTRY(cuMemFreeHost, 2000, cuMemFreeHost, 0)                                    \
  ENTRY(cuMemHostRegister, 6050, cuMemHostRegister_v2, 0)                         \
  ENTRY(cuMemHostUnregister, 4000, cuMemHostUnregister, 0)                        \
  ENTRY(cuMemGetInfo, 3020, cuMemGetInfo_v2, 0)                                   \
  ENTRY(cuIpcOpenMemHandle, 11000, cuIpcOpenMemHandle_v2, 0)                      \
  ENTRY(cuIpcCloseMemHandle, 4010, cuIpcCloseMemHandle, 0)                        \
  ENTRY(cuArrayCreate, 3020, cuArrayCreate_v2, 0)                                 \
  ENTRY(cuArray3DCreate, 3020, cuArray3DCreate_v2, 0)                             \
  ENTRY(cuArrayDestroy, 2000, cuArrayDestroy, 0)                                  \
  ENTRY(cuMipmappedArrayCreate, 5000, cuMipmappedArrayCreate, 0)                  \
  ENTRY(cuMipmappedArrayDestroy, 5000, cuMipmappedArrayDestroy, 0)                \
  ENTRY(cuMemAllocAsync, 11020, cuMemAllocAsync, 1)                               \
  ENTRY(cuMemAllocAsync, 11020, cuMemAllocAsync_ptsz, 2)                          \
  ENTRY(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync, 1)               \
  ENTRY(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync_ptsz, 2)          \
  ENTRY(cuMemFreeAsync, 11020, cuMemFreeAsync, 1)                                 \
  ENTRY(cuMemFreeAsync, 11020, cuMemFreeAsync_ptsz, 2)                            \
  ENTRY(cuMemPoolCreate, 11020, cuMemPoolCreate, 0)                               \
  ENTRY(cuMemPoolDestroy, 11020, cuMemPoolDestroy, 0)                             \
  ENTRY(cuMemPoolTrimTo, 11020, cuMemPoolTrimTo, 0)                               \
  ENTRY(cuStreamSynchronize, 2000, cuStreamSynchronize, 1)                        \
  ENTRY(cuStreamSynchronize, 7000, cuStreamSynchronize_ptsz, 2)                   \
  ENTRY(cuCtxSynchronize, 2000, cuCtxSynchronize, 0)                              \
  ENTRY(cuCtxSynchronize, 13000, cuCtxSynchronize_v2, 0)                          \
  ENTRY(cuEventSynchronize, 2000, cuEventSynchronize, 0)                          \
  ENTRY(cuGraphAddNode, 12020, cuGraphAddNode, 0)                                 \
  ENTRY(cuGraphAddNode, 12030, cuGraphAddNode_v2, 0)                              \
  ENTRY(cuGraphAddNode_v2, 12030, cuGraphAddNode_v2, 0)                           \
  ENTRY(cuGraphAddMemAllocNode, 11040, cuGraphAddMemAllocNode, 0)                 \
  ENTRY(cuGraphLaunch, 10000, cuGraphLaunch, 1)                                   \
  ENTRY(cuGraphLaunch, 10000, cuGraphLaunch_ptsz, 2)                              \
  ENTRY(cuDeviceGraphMemTrim, 11040, cuDeviceGraphMemTrim, 0)                     \
  ENTRY(cuMemAddressReserve, 10020, cuMemAddressReserve, 0)                       \
  ENTRY(cuMemAddressFree, 10020, cuMemAddressFree, 0)                             \
  ENTRY(cuMemCreate, 10020, cuMemCreate, 0)                                       \
  ENTRY(cuMemRelease, 10020, cuMemRelease, 0)                                     \
  ENTRY(cuMemRetainAllocationHandle, 11000, cuMemRetainAllocationHandle, 0)       \
  ENTRY(cuMemImportFromShareableHandle, 10020, cuMemImportFromShareableHandle, 0) \
  ENTRY(cuMemMap, 10020, cuMemMap, 0)                                             \
  ENTRY(cuMemUnmap, 10020, cuMemUnmap, 0)                                         \
  ENTRY(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain, 0)              \
  ENTRY(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2, 0)        \
  ENTRY(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2, 0)            \
  ENTRY(cuCtxCreate, 3020, cuCtxCreate_v2, 0)                                     \
  ENTRY(cuCtxCreate, 11040, cuCtxCreate_v3, 0)                                    \
  ENTRY(cuCtxCreate, 12050, cuCtxCreate_v4, 0)                                    \
  ENTRY(cuCtxDestroy, 4000, cuCtxDestroy_v2, 0)                                   \
  ENTRY(cuCtxSetLimit, 3010, cuCtxSetLimit, 0)                                    \
  ENTRY(cuModuleLoad, 2000, cuModuleLoad, 0)                                      \
  ENTRY(cuModuleLoadData, 2000, cuModuleLoadData, 0)                              \
  ENTRY(cuModuleLoadDataEx, 2010, cuModuleLoadDataEx, 0)                          \
  ENTRY(cuModuleLoadFatBinary, 2000, cuModuleLoadFatBinary, 0)                    \
  ENTRY(cuModuleUnload, 2000, cuModuleUnload, 0)                                  \
  ENTRY(cuLibraryLoadData, 12000, cuLibraryLoadData, 0)                           \
  ENTRY(cuLibraryLoadFromFile, 12000, cuLibraryLoadFromFile, 0)                   \
  ENTRY(cuLibraryUnload, 12000, cuLibraryUnload, 0)                               \
  ENTRY(cuGetProcAddress, 11030, cuGetProcAddress, 0)                             \
  ENTRY(cuGetProcAddress, 12000, cuGetProcAddress_v2, 0)

/// The newest interface whose versions are all in the table: CUDA 13.0.
inline constexpr int kNewestKnownInterface = 13000;
