// HIP's functions that are recorded by their arguments alone; hip_memory.cc, hip_arrays.cc,
// hip_pools.cc, arrays.cc, graphs.cc and virtual.cc have the rest. All others reach the real run
// time without us. Arguments are counted from 0.
//
// TAKES(name, kind, out, size): `*out` names the block of `size` bytes that was made.
// GIVES(name, kinds, which): the block that argument `which` names is given back.
// LOADS(name): `*0` is a module, of which only what the device has in use tells the size.
#pragma once

#define HIP_RECORDED(TAKES, GIVES, LOADS)               \
  TAKES(hipMalloc, kDriverMemory, 0, 1)                 \
  TAKES(hipExtMallocWithFlags, kDriverMemory, 0, 1)     \
  TAKES(hipMallocManaged, kDriverManaged, 0, 1)         \
  TAKES(hipHostMalloc, kDriverPinned, 0, 1)             \
  TAKES(hipHostAlloc, kDriverPinned, 0, 1)              \
  TAKES(hipMallocHost, kDriverPinned, 0, 1)             \
  TAKES(hipMemAllocHost, kDriverPinned, 0, 1)           \
  GIVES(hipFree, kHipMemory, 0)                         \
  GIVES(hipHostFree, 1u << kDriverPinned, 0)            \
  GIVES(hipFreeHost, 1u << kDriverPinned, 0)            \
  GIVES(hipHostUnregister, 1u << kDriverRegistered, 0)  \
  GIVES(hipIpcCloseMemHandle, 1u << kDriverImported, 0) \
  GIVES(hipFreeArray, 1u << kDriverArrays, 0)           \
  GIVES(hipFreeMipmappedArray, 1u << kDriverArrays, 0)  \
  LOADS(hipModuleLoad)                                  \
  LOADS(hipModuleLoadData)                              \
  LOADS(hipModuleLoadDataEx)                            \
  GIVES(hipModuleUnload, 1u << kDriverModules, 0)
