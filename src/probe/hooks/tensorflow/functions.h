// The functions of libtensorflow_framework that every tensor's memory passes through, under their
// mangled names. No header of TensorFlow is used; what is assumed of its classes stands beside the
// assumption.
//
//   BFCAllocator::AllocateRaw, DeallocateRaw    pools: of a GPU, of oneDNN's large blocks, of the
//                                               CPU where TF_CPU_ALLOCATOR_USE_BFC is set
//   GpuCudaMallocAsyncAllocator::…              the driver's own pool (TF_GPU_ALLOCATOR)
//   port::AlignedMalloc, AlignedFree, …         the CPU's default allocator, oneDNN's small blocks,
//                                               and the regions that a pool on the CPU is made of
//   SubAllocator::VisitAlloc, VisitFree         regions of any pool
//   ThreadPoolDevice::ComputeAsync              runs an operation without saying so in the thread's
//                                               annotation, among them what XLA compiled
//
// Virtual functions come to us because the tables of virtual functions hold symbols, which are
// looked up like calls. Other libraries may define the same names for classes of their own: the
// real function is that of the object in which the block's table, or the caller, lies, and what is
// not TensorFlow's is passed through.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "probe/clients.h"

#define BFC_ALLOCATE "_ZN3tsl12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE"
#define BFC_DEALLOCATE "_ZN3tsl12BFCAllocator13DeallocateRawEPv"
#define BFC_SIZE "_ZNK3tsl12BFCAllocator13AllocatedSizeEPKv"
#define OLD_BFC_ALLOCATE "_ZN10tensorflow12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE"
#define OLD_BFC_DEALLOCATE "_ZN10tensorflow12BFCAllocator13DeallocateRawEPv"
#define OLD_BFC_SIZE "_ZNK10tensorflow12BFCAllocator13AllocatedSizeEPKv"
#define ASYNC_ALLOCATE "_ZN15stream_executor27GpuCudaMallocAsyncAllocator11AllocateRawEmm"
#define ASYNC_DEALLOCATE "_ZN15stream_executor27GpuCudaMallocAsyncAllocator13DeallocateRawEPv"
#define MALLOC "_ZN3tsl4port13AlignedMallocEmSt11align_val_t"
#define INT_MALLOC "_ZN3tsl4port13AlignedMallocEmi"  // 2.16
#define OLD_MALLOC "_ZN10tensorflow4port13AlignedMallocEmi"
#define FREE "_ZN3tsl4port11AlignedFreeEPv"
#define OLD_FREE "_ZN10tensorflow4port11AlignedFreeEPv"
#define SIZED_FREE "_ZN3tsl4port16AlignedSizedFreeEPvmSt11align_val_t"
#define INT_SIZED_FREE "_ZN3tsl4port16AlignedSizedFreeEPvmm"
#define VISIT_ALLOC "_ZN3tsl12SubAllocator10VisitAllocEPvim"
#define VISIT_FREE "_ZN3tsl12SubAllocator9VisitFreeEPvim"
#define COMPUTE_ASYNC                                                                          \
  "_ZN10tensorflow16ThreadPoolDevice12ComputeAsyncEPNS_13AsyncOpKernelEPNS_15OpKernelContextE" \
  "St8functionIFvvEE"

namespace gpumemprof::probe::tensorflow {

inline constexpr char kLibrary[] = "libtensorflow_framework";

enum FunctionIndex : uint32_t {
  kBfcAllocate,
  kBfcDeallocate,
  kOldBfcAllocate,
  kOldBfcDeallocate,
  kAsyncAllocate,
  kAsyncDeallocate,
  kMalloc,
  kIntMalloc,
  kOldMalloc,
  kFree,
  kOldFree,
  kSizedFree,
  kIntSizedFree,
  kVisitAlloc,
  kVisitFree,
  kComputeAsync,
  kHooks,             // the ones before it are stood in for, those behind it only called
  kBfcSize = kHooks,  // AllocatedSize(const void*)
  kOldBfcSize,
  kKernelName,  // TF_GetOpKernelName(TF_OpKernelContext*), of TensorFlow's C API
  kFunctions
};

extern const SharedName kTable[kFunctions];  // hooks.cc
extern Clients g_clients;

using Allocate = void* (*)(void*, size_t, size_t, const void*);
using Deallocate = void (*)(void*, void*);
using Size = size_t (*)(const void*, const void*);
struct StringView {  // TF_StringView
  const char* text;
  size_t length;
};
using KernelName = StringView (*)(void*);

// In the table of tsl::Allocator, in all releases: two destructors, Name(), AllocateRaw(alignment,
// bytes), the same with attributes, DeallocateRaw(p).
inline constexpr int kSlotName = 2, kSlotAllocate = 3, kSlotAllocateWith = 4, kSlotDeallocate = 5;

inline const void* table_of(const void* object) { return *static_cast<const void* const*>(object); }

template <class F>
F virtual_function(void* object, int slot) {
  return reinterpret_cast<F>((*static_cast<void***>(object))[slot]);
}

}  // namespace gpumemprof::probe::tensorflow
