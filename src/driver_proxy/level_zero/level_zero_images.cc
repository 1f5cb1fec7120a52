// Level Zero's images: what the driver says of their memory, where it can be asked.
#include "driver_proxy/level_zero/level_zero.h"

using namespace gpumemprof::driver_proxy;
using namespace gpumemprof::probe;

namespace {

/// ze_image_desc_t
struct ZeImageDesc {
  uint32_t type;
  const void* next;
  uint32_t flags, dimensions;
  struct {
    uint32_t layout, type, swizzle[4];
  } format;
  uint64_t width;
  uint32_t height, depth, layers, levels;
};
enum ZeDimensions : uint32_t { kFlatLayers = 1, kPlane = 2, kPlanes = 3, kVolume = 4, kBuffer = 5 };

/// ze_image_memory_properties_exp_t
struct ZeImageMemory {
  uint32_t type = 0x00020007;  // ZE_STRUCTURE_TYPE_IMAGE_MEMORY_EXP_PROPERTIES
  const void* next = nullptr;
  uint64_t size_bytes = 0, row_pitch_bytes = 0, slice_pitch_bytes = 0;
};

/// ZE_STRUCTURE_TYPE_PITCHED_IMAGE_EXP_DESC: the image lies in a block of zeMemAllocDevice.
constexpr uint32_t kIsInBlock = 0x0002001f;

uint64_t rows_of(const ZeImageDesc& desc) {
  const bool has_rows = desc.dimensions >= kPlane && desc.dimensions <= kVolume;
  return has_rows && desc.height ? desc.height : 1;
}

/// What the driver says it takes. Some releases answer with the size of an element instead, which
/// has no room for the image's rows: that is not taken for an answer.
bool ask_size(Pointer image, const ZeImageDesc& desc, uint64_t* bytes) {
  ZeImageMemory memory;
  if (ASK_REAL(Result(Pointer, ZeImageMemory*), zeImageGetMemoryPropertiesExp, image, &memory) !=
      kSuccess)
    return false;
  if (!memory.row_pitch_bytes || memory.size_bytes / memory.row_pitch_bytes < rows_of(desc))
    return false;
  *bytes = memory.size_bytes;
  return true;
}

/// What was asked for, by the descriptor, of an image that was refused; 0 where its format has
/// planes.
uint64_t asked_bytes(const ZeImageDesc& desc) {
  constexpr uint8_t kBits[] = {8, 16, 32, 16, 32, 32, 64, 64, 128, 32, 32, 16, 16, 16};
  if (desc.dimensions == kBuffer) return desc.width;
  const uint32_t layout = desc.format.layout;
  const uint64_t bits = layout < sizeof kBits ? kBits[layout] : 0;
  uint64_t elements = desc.width * rows_of(desc);
  if (desc.dimensions == kVolume && desc.depth) elements *= desc.depth;
  if ((desc.dimensions == kFlatLayers || desc.dimensions == kPlanes) && desc.layers)
    elements *= desc.layers;
  return elements * bits / 8;
}

}  // namespace

DRIVER_EXPORT Result zeImageCreate(ZeHandle context, ZeHandle device, const ZeImageDesc* desc,
                                   Pointer* out) {
  WATCH();
  const Result code = or_unsupported(CALL_REAL(zeImageCreate, context, device, desc, out));
  if (!watch.is_on() || !desc) return code;
  const bool is_refused = in_common(code) == kOutOfMemory;
  if (!is_refused && (code != kSuccess || is_followed_by(desc, kIsInBlock))) return code;
  const int number = device_of(watch, device);
  if (number < 0) return code;
  const KeepErrno keep;
  if (is_refused) {
    watch->refused(kDriverArrays, number, asked_bytes(*desc), watch.caller());
    return code;
  }
  uint64_t bytes = 0;
  if (!ask_size(*out, *desc, &bytes)) watch->lost();
  const bool is_other = is_followed_by(desc, kImportsFd);
  watch.took(code, is_other ? kDriverImported : kDriverArrays, out, bytes, number);
  return code;
}

/// Views of an image are destroyed by this, too: they have no memory, and nothing is known of them.
DRIVER_EXPORT Result zeImageDestroy(Pointer image) {
  WATCH();
  watch.gives(1u << kDriverArrays | 1u << kDriverImported, image);
  const Result code = or_unsupported(CALL_REAL(zeImageDestroy, image));
  watch.gave(in_common(code));
  return code;
}
