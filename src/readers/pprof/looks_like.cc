// Whether a file is a profile, from its first bytes.
#include "readers/pprof/gunzip.h"
#include "readers/pprof/read.h"

namespace gpumemprof {
namespace {

constexpr size_t kEnoughBytes = 64;
constexpr char kSampleType = 0x0a, kTypeTag = 0x08, kUnitTag = 0x10;  // tags: field << 3 | wire type

/// Skips a varint of at most three bytes: numbers of strings. False where there is none.
bool skip_small(std::string_view* bytes) {
  for (size_t i = 0; i < 3 && i < bytes->size(); ++i) {
    if (((*bytes)[i] & 0x80) != 0) continue;
    bytes->remove_prefix(i + 1);
    return true;
  }
  return false;
}

bool take(std::string_view* bytes, char tag) {
  if (!bytes->starts_with(tag)) return false;
  bytes->remove_prefix(1);
  return true;
}

}  // namespace

bool looks_like_pprof(std::string_view bytes) {
  std::string text;
  if (pprof::is_gzip(bytes)) {
    text = pprof::gunzip_beginning(bytes, kEnoughBytes);
    bytes = text;
  }
  // The first type of sample: a message of two numbers, {type, unit}.
  if (!take(&bytes, kSampleType) || bytes.empty() || bytes[0] < 4 || bytes[0] > 8) return false;
  bytes.remove_prefix(1);
  return take(&bytes, kTypeTag) && skip_small(&bytes) && take(&bytes, kUnitTag) && skip_small(&bytes);
}

}  // namespace gpumemprof
