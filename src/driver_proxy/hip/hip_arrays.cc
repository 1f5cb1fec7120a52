// HIP's run time: memory of three dimensions, arrays by the description of their channels. Those by
// the format of their elements are in arrays.cc.
#include "driver_proxy/arrays.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

/// hipExtent, handed over by value: of arrays in elements, of memory in bytes.
struct HipExtent {
  size_t width, height, depth;
};
/// hipPitchedPtr
struct HipPitched {
  void* address;
  size_t pitch, width, height;
};
/// hipChannelFormatDesc: bits of each channel, and what they are.
struct HipChannels {
  int bits[4];
  int kind;
};
constexpr int kSigned = 0, kFloat = 2;  // hipChannelFormatKind…; unsigned ones between them

/// 0 where they are not known: a kind that came later, or numbers that no format has.
unsigned bits_of(const HipChannels& channels) {
  if (channels.kind < kSigned || channels.kind > kFloat) return 0;
  unsigned bits = 0;
  for (const int one : channels.bits) {
    if (one < 0 || one > 64) return 0;
    bits += static_cast<unsigned>(one);
  }
  return bits;
}

void took_channels(Watch& watch, Result code, const Pointer* out, const HipChannels* channels,
                   const HipExtent& extent, unsigned levels, unsigned flags) {
  if (!watch.is_on() || !channels) return;
  took_array(watch, code, out,
             {extent.width, extent.height, extent.depth, flags, levels, bits_of(*channels)});
}

}  // namespace

/// What lies between rows is the block's, as with hipMallocPitch.
DRIVER_EXPORT Result hipMalloc3D(HipPitched* out, HipExtent extent) {
  WATCH();
  const Result code = CALL_REAL(hipMalloc3D, out, extent);
  if (!watch.is_on() || (code == kSuccess && !out->address)) return code;  // 0 bytes are no block
  const size_t pitch = code == kSuccess ? out->pitch : extent.width;
  const size_t bytes = pitch * extent.height * extent.depth;
  watch.took(code, kDriverMemory, reinterpret_cast<const Pointer*>(out), bytes);
  return code;
}

DRIVER_CALL(hipMallocArray,
            (Pointer* out, const HipChannels* channels, size_t width, size_t height,
             unsigned flags),
            (out, channels, width, height, flags),
            took_channels(watch, code, out, channels, {width, height, 0}, 1, flags))

DRIVER_CALL(hipMalloc3DArray,
            (Pointer* out, const HipChannels* channels, HipExtent extent, unsigned flags),
            (out, channels, extent, flags),
            took_channels(watch, code, out, channels, extent, 1, flags))

DRIVER_CALL(hipMallocMipmappedArray,
            (Pointer* out, const HipChannels* channels, HipExtent extent, unsigned levels,
             unsigned flags),
            (out, channels, extent, levels, flags),
            took_channels(watch, code, out, channels, extent, levels, flags))
