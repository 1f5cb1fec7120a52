#include "analysis/oom_message/byte_range.h"

namespace gpumemprof {

bool is_wrong_size(const PrintedSize& requested) {
  constexpr uint64_t kMostOrdinary = 1ull << 40;
  return requested.least_bytes >= kMostOrdinary;
}

bool is_wrong_size(const OomMessage& message) {
  return message.requested && is_wrong_size(*message.requested);
}

RefusedBy refused_by(const OomMessage& message) {
  const bool is_of_libraries =
      message.wording == OomWording::kPyTorchCpu || message.wording == OomWording::kNumpy;
  // TensorFlow's other allocators of host memory have limits of their own.
  const bool is_of_tensorflow = message.framework == "tensorflow" &&
                                (message.allocator == "cpu" || message.allocator == "mklcpu");
  if (is_of_libraries || is_of_tensorflow) return RefusedBy::kHost;
  return message.is_xla_of_cpu ? RefusedBy::kProbablyHost : RefusedBy::kUnknown;
}

std::string wrong_size_summary(const OomMessage& message) {
  const bool is_host = refused_by(message) != RefusedBy::kUnknown;
  return std::string("More than an ordinary ") + (is_host ? "host" : "device") + " has, " +
         message.requested->text + ", was asked for at once: a shape or a size is probably wrong.";
}

std::string wrong_size_advice(const OomMessage& message) {
  return std::string("Check the shapes and sizes that the request is made of") +
         (message.asked_at.file.empty() ? "." : ", at the line that asked for it.");
}

}  // namespace gpumemprof
