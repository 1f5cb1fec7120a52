// The fake Level Zero's images: rows begin at multiples of 64 bytes. FAKE_ZE_IMAGES is how it tells
// of them: "element" as older drivers, which answer with an element's size, "silent" as those that
// lack the extension.
#include <cstdlib>
#include <string_view>

#include "as_ze.h"

using namespace fake_ze;

/// ze_image_format_t, ze_image_desc_t, ze_image_memory_properties_exp_t
struct Format {
  uint32_t layout, type, x, y, z, w;
};
struct ImageDesc {
  uint32_t stype;
  const void* pNext;
  uint32_t flags, type;
  Format format;
  uint64_t width;
  uint32_t height, depth, arraylevels, miplevels;
};
struct MemoryProperties {
  uint32_t stype;
  const void* pNext;
  uint64_t size, rowPitch, slicePitch;
};
static_assert(sizeof(ImageDesc) == 72 && sizeof(MemoryProperties) == 40);

struct Image {
  uint64_t element, row, slice, size;
  bool is_own;
};
static std::map<Pointer, Image> g_images;
static constexpr uint32_t kPitchedImage = 0x0002001f;

/// Layouts of one to four channels of 8, 16 and 32 bits; 0 for what is not drawn here.
static uint64_t element_of(uint32_t layout) {
  constexpr uint64_t kBytes[] = {1, 2, 4, 2, 4, 4, 8, 8, 16};
  return layout < 9 ? kBytes[layout] : 0;
}

FAKE_ZE int zeImageCreate(void*, void* device, const ImageDesc* desc, Pointer* out) {
  Image image = {element_of(desc->format.layout), 0, 0, 0, true};
  if (!on(device) || image.element == 0 || desc->width == 0) return kInvalidArgument;
  const bool is_flat = desc->type < 2;
  image.row = round_up(desc->width * image.element, 64);
  image.slice = image.row * (is_flat ? 1 : desc->height);
  image.size = image.slice * (desc->type == 4   ? desc->depth
                              : desc->type == 3 ? desc->arraylevels
                                                : 1);
  image.is_own = !has_next(desc, kImportFd) && !has_next(desc, kPitchedImage);
  const std::lock_guard lock(g_lock);
  int current = 0;
  if (const Result code = current_device(&current)) return in_ze(code);
  if (!image.is_own)
    *out = take_addresses(image.size);
  else if (const Result code = take_pages(current, fake_gpu::kArrays, image.size, out))
    return in_ze(code);
  g_images[*out] = image;
  return 0;
}

FAKE_ZE int zeImageDestroy(Pointer handle) {
  const std::lock_guard lock(g_lock);
  const auto at = g_images.find(handle);
  if (at == g_images.end()) return kInvalidArgument;
  if (at->second.is_own) give_back_pages(handle);
  g_images.erase(at);
  return 0;
}

FAKE_ZE int zeImageGetMemoryPropertiesExp(Pointer handle, MemoryProperties* out) {
  const char* how = std::getenv("FAKE_ZE_IMAGES");
  if (how && how == std::string_view("silent")) return kUnsupportedFeature;
  const std::lock_guard lock(g_lock);
  const auto at = g_images.find(handle);
  if (at == g_images.end() || out->stype != 0x00020007) return kInvalidArgument;
  const bool is_old = how && how == std::string_view("element");
  out->size = is_old ? at->second.element : at->second.size;
  out->rowPitch = at->second.row;
  out->slicePitch = at->second.slice;
  return 0;
}
