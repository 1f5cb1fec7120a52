// NumPy's refused array, as numpy/_core/_exceptions.py writes it since 1.18:
// "Unable to allocate 1.00 GiB for an array with shape (134217728,) and data type float64".
#include <string>

#include "readers/oom_message.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kUnable = "Unable to allocate ";
constexpr std::string_view kShape = " for an array with shape (";
constexpr std::string_view kType = ") and data type ";
constexpr size_t kMostSize = 32, kMostShape = 512, kMostType = 64;  // bytes

std::optional<OomMessage> parse_numpy(std::string_view, std::string_view text) {
  if (!text.starts_with(kUnable)) return std::nullopt;
  const size_t shape = text.find(kShape);
  if (shape == text.npos || shape > kUnable.size() + kMostSize) return std::nullopt;
  OomMessage message{.framework = "numpy", .backend = "CPU", .wording = OomWording::kNumpy};
  std::string size(text.substr(kUnable.size(), shape - kUnable.size()));
  if (const size_t dot = size.find(". "); dot != size.npos) size.erase(dot, 1);  // "512. MiB"
  message.requested = parse_printed_size(size);
  if (!message.requested) return std::nullopt;
  const size_t begin = shape + kShape.size(), end = text.find(kType, begin);
  if (end == text.npos || end - begin > kMostShape) return message;
  message.shape = text.substr(begin, end - begin);
  const std::string_view type = text.substr(end + kType.size(), kMostType);
  message.type = type.substr(0, type.find_first_of(" \"'"));
  return message;
}

}  // namespace

OomDialect numpy_oom_dialect() {
  return {.keys = {"Unable to"}, .beginnings = {kUnable}, .parse = parse_numpy};
}

}  // namespace gpumemprof
