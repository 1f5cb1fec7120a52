// Arrays. CUDA's driver and HIP have the same functions under two beginnings, and descriptors that
// are laid out alike.
#include "driver_proxy/arrays.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

/// CUDA_ARRAY3D_DESCRIPTOR, HIP_ARRAY3D_DESCRIPTOR; those of two dimensions have no depth and no
/// flags.
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
constexpr unsigned kIsLayered = 1, kIsCubemap = 4;
/// Arrays that memory is mapped into: sparse ones and deferred ones, which HIP does not have.
#ifdef GPUMEMPROF_HIP
constexpr unsigned kIsMapped = 0;
#else
constexpr unsigned kIsMapped = 0x40 | 0x80;
#endif

/// Bits of an element of one channel; 0 for formats that are laid out in blocks or planes.
unsigned bits_of(int format) {
  switch (format) {
    case 0x01:
    case 0x08:
      return 8;
    case 0x02:
    case 0x09:
    case 0x10:
      return 16;
    case 0x03:
    case 0x0a:
    case 0x20:
      return 32;
    default:
      return 0;
  }
}

uint64_t bytes_of(const ArrayShape& shape) {
  if (shape.flags & kIsMapped) return 0;
  uint64_t elements = 0;
  for (unsigned level = 0; level < shape.levels && level < 32; ++level) {
    const uint64_t width = shape.width >> level ? shape.width >> level : 1;
    const uint64_t height = shape.height ? (shape.height >> level ? shape.height >> level : 1) : 1;
    // The layers of an array of arrays do not get fewer.
    const bool is_layered = shape.flags & (kIsLayered | kIsCubemap);
    const uint64_t deep = is_layered ? shape.depth : shape.depth >> level;
    elements += width * height * (deep ? deep : 1);
  }
  return elements * shape.element_bits / 8;
}

ArrayShape shape_of(const Array3d& d, unsigned levels) {
  return {d.width, d.height, d.depth, d.flags, levels, d.channels * bits_of(d.format)};
}

}  // namespace

void gpumemprof::driver_proxy::took_array(Watch& watch, Result code, const Pointer* out,
                                          const ArrayShape& shape) {
  if (!watch.is_on() || (code == kSuccess && (!out || !*out))) return;
  watch.took(code, kDriverArrays, out, bytes_of(shape));
  if (code == kSuccess && shape.element_bits == 0 && !(shape.flags & kIsMapped)) watch->lost();
}

DRIVER_CALL(DRIVER_FUNCTION_V2(ArrayCreate), (Pointer* out, const Array2d* d), (out, d),
            if (watch.is_on() && d)
                took_array(watch, code, out,
                           shape_of({d->width, d->height, 0, d->format, d->channels, 0}, 1)))

DRIVER_CALL(DRIVER_FUNCTION_V2(Array3DCreate), (Pointer* out, const Array3d* d), (out, d),
            if (watch.is_on() && d) took_array(watch, code, out, shape_of(*d, 1)))

DRIVER_FREE(DRIVER_FUNCTION(ArrayDestroy), (Pointer array), (array), 1u << kDriverArrays, array)

DRIVER_CALL(DRIVER_FUNCTION(MipmappedArrayCreate),
            (Pointer* out, const Array3d* d, unsigned levels), (out, d, levels),
            if (watch.is_on() && d) took_array(watch, code, out, shape_of(*d, levels)))

DRIVER_FREE(DRIVER_FUNCTION(MipmappedArrayDestroy), (Pointer array), (array),
            1u << kDriverArrays, array)
