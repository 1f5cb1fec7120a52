#include <algorithm>

#include "base/varint.h"
#include "readers/xplane/read.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kPlaneField = 0x0a, kIdField = 0x08, kNameField = 0x12;  // tags, not numbers

}  // namespace

bool looks_like_xplane(std::string_view bytes) {
  ByteReader reader(bytes);  // may end anywhere in the first plane
  if (reader.varint() != kPlaneField) return false;
  if (reader.varint() < 3) return false;
  uint64_t tag = reader.varint();
  if (tag == kIdField) {
    reader.varint();
    tag = reader.varint();
  }
  if (tag != kNameField) return false;
  const std::string_view name = reader.text();
  // "/host:CPU", "/device:GPU:0", "#Chip TPU…" and the plane that says when the profile was taken.
  const bool is_plane =
      name.starts_with('/') || name.starts_with('#') || name == "Task Environment";
  return reader.ok() && is_plane &&
         std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace gpumemprof
