// The fake HIP's memory of three dimensions, arrays and graphs.
#include "as_cuda.h"

using namespace fake_hip;

/// HIP_ARRAY_DESCRIPTOR, HIP_ARRAY3D_DESCRIPTOR
struct Flat {
  size_t width, height;
  int format;
  unsigned channels;
};
struct Deep {
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};
struct Extent {
  size_t width, height, depth;
};
struct PitchedPtr {
  Pointer ptr;
  size_t pitch, xsize, ysize;
};
struct ChannelDesc {
  int x, y, z, w, kind;
};
struct Graph;
struct AllocNode;
extern "C" {
Result cuMemAllocPitch_v2(Pointer*, size_t*, size_t, size_t, unsigned);
Result cuArrayCreate_v2(Pointer*, const Flat*);
Result cuArray3DCreate_v2(Pointer*, const Deep*);
Result cuArrayDestroy(Pointer);
Result cuMipmappedArrayCreate(Pointer*, const Deep*, unsigned);
Result cuMipmappedArrayDestroy(Pointer);
Result cuGraphCreate(Graph**, unsigned);
Result cuGraphAddMemAllocNode(void**, Graph*, const void*, size_t, AllocNode*);
Result cuGraphAddNode(void**, Graph*, const void*, size_t, int*);
Result cuGraphInstantiateWithFlags(Graph**, Graph*, unsigned long long);
Result cuGraphLaunch(Graph*, void*);
Result cuGraphExecDestroy(Graph*);
Result cuDeviceGraphMemTrim(int);
Result cuDeviceGetGraphMemAttribute(int, int, void*);
}

/// The descriptor with the format that has these channels; without channels where none has.
static Deep deep_of(const ChannelDesc& desc, Extent extent, unsigned flags) {
  Deep deep = {extent.width, extent.height, extent.depth, 0, 0, flags};
  for (const int bits : {desc.x, desc.y, desc.z, desc.w}) deep.channels += bits != 0;
  const int size = desc.x == 8 ? 0 : desc.x == 16 ? 1 : desc.x == 32 ? 2 : -1;
  constexpr int kFormats[3][3] = {{0x08, 0x09, 0x0a}, {0x01, 0x02, 0x03}, {0, 0x10, 0x20}};
  if (size >= 0 && desc.kind >= 0 && desc.kind < 3) deep.format = kFormats[desc.kind][size];
  return deep;
}

FAKE_HIP int hipMalloc3D(PitchedPtr* out, Extent extent) {
  *out = {0, 0, extent.width, extent.height};
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return kSuccess;
  return as_cuda(cuMemAllocPitch_v2, &out->ptr, &out->pitch, extent.width,
                 extent.height * extent.depth, 4u);
}

FAKE_HIP int hipArrayCreate(Pointer* out, const Flat* d) {
  return as_cuda(cuArrayCreate_v2, out, d);
}
FAKE_HIP int hipArray3DCreate(Pointer* out, const Deep* d) {
  return as_cuda(cuArray3DCreate_v2, out, d);
}
FAKE_HIP int hipMalloc3DArray(Pointer* out, const ChannelDesc* desc, Extent extent,
                              unsigned flags) {
  if (extent.width == 0) return kInvalidValue;
  const Deep deep = deep_of(*desc, extent, flags);
  return as_cuda(cuArray3DCreate_v2, out, &deep);
}
FAKE_HIP int hipMallocArray(Pointer* out, const ChannelDesc* desc, size_t width, size_t height,
                            unsigned flags) {
  return hipMalloc3DArray(out, desc, {width, height, 0}, flags);
}
FAKE_HIP int hipMipmappedArrayCreate(Pointer* out, const Deep* d, unsigned levels) {
  return as_cuda(cuMipmappedArrayCreate, out, d, levels);
}
FAKE_HIP int hipMallocMipmappedArray(Pointer* out, const ChannelDesc* desc, Extent extent,
                                     unsigned levels, unsigned flags) {
  const Deep deep = deep_of(*desc, extent, flags);
  return hipMipmappedArrayCreate(out, &deep, levels);
}
FAKE_HIP int hipArrayDestroy(Pointer array) { return as_cuda(cuArrayDestroy, array); }
FAKE_HIP int hipFreeArray(Pointer array) { return hipArrayDestroy(array); }
FAKE_HIP int hipMipmappedArrayDestroy(Pointer array) {
  return as_cuda(cuMipmappedArrayDestroy, array);
}
FAKE_HIP int hipFreeMipmappedArray(Pointer array) { return hipMipmappedArrayDestroy(array); }

FAKE_HIP int hipGraphCreate(Graph** graph, unsigned flags) {
  return as_cuda(cuGraphCreate, graph, flags);
}
FAKE_HIP int hipGraphAddMemAllocNode(void** node, Graph* graph, const void* needs, size_t count,
                                     AllocNode* params) {
  return as_cuda(cuGraphAddMemAllocNode, node, graph, needs, count, params);
}
FAKE_HIP int hipGraphAddNode(void** node, Graph* graph, const void* needs, size_t count,
                             int* params) {
  return as_cuda(cuGraphAddNode, node, graph, needs, count, params);
}
FAKE_HIP int hipGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long flags) {
  return as_cuda(cuGraphInstantiateWithFlags, exec, graph, flags);
}
FAKE_HIP int hipGraphLaunch(Graph* exec, void* stream) {
  return as_cuda(cuGraphLaunch, exec, stream);
}
FAKE_HIP int hipGraphLaunch_spt(Graph* exec, void* stream) { return hipGraphLaunch(exec, stream); }
FAKE_HIP int hipGraphExecDestroy(Graph* exec) { return as_cuda(cuGraphExecDestroy, exec); }
FAKE_HIP int hipDeviceGraphMemTrim(int device) { return as_cuda(cuDeviceGraphMemTrim, device); }
FAKE_HIP int hipDeviceGetGraphMemAttribute(int device, int attribute, void* value) {
  return as_cuda(cuDeviceGetGraphMemAttribute, device, attribute, value);
}
