// What TensorFlow and XLA print. Wordings: bfc_allocator.cc (1.0 to 2.21), the kernels' allocation
// of tensors (op_kernel.cc), and XLA's buffer allocation, which JAX shows as well.
#include <algorithm>
#include <array>
#include <charconv>

#include "readers/oom_message.h"
#include "readers/tensorflow_device.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kPoolKey = "an out of memory trying to allocate ";  // "Ran" or "ran"
constexpr std::string_view kTensorKey = "OOM when allocating tensor with shape";
constexpr std::string_view kXlaKey = "Out of memory ";
constexpr size_t kMostWord = 1024;

/// What stands between `from` and the next of `ends`; empty where either is missing.
std::string_view between(std::string_view text, std::string_view from, std::string_view ends) {
  const size_t at = text.find(from);
  if (at == text.npos) return {};
  text.remove_prefix(at + from.size());
  const size_t end = text.find_first_of(ends);
  return end == text.npos || end > kMostWord ? std::string_view() : text.substr(0, end);
}

/// Empty where the text ends within the word: then its end may be missing.
std::string_view word_after(std::string_view text, std::string_view from) {
  const size_t at = text.find(from);
  if (at == text.npos) return {};
  text.remove_prefix(at + from.size());
  const size_t end = text.find(' ');
  return end == text.npos ? std::string_view() : text.substr(0, std::min(end, kMostWord));
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

/// Bytes of an element, by DataTypeString; 0 where they are not fixed or not known.
uint64_t element_bytes(std::string_view type) {
  struct Type {
    std::string_view name;
    uint64_t bytes;
  };
  constexpr std::array<Type, 19> kTypes = {{{"float", 4},
                                            {"double", 8},
                                            {"half", 2},
                                            {"bfloat16", 2},
                                            {"int8", 1},
                                            {"int16", 2},
                                            {"int32", 4},
                                            {"int64", 8},
                                            {"uint8", 1},
                                            {"uint16", 2},
                                            {"uint32", 4},
                                            {"uint64", 8},
                                            {"bool", 1},
                                            {"complex64", 8},
                                            {"complex128", 16},
                                            {"qint8", 1},
                                            {"quint8", 1},
                                            {"qint32", 4},
                                            {"float8_e4m3fn", 1}}};
  const auto known = std::ranges::find(kTypes, type, &Type::name);
  return known == kTypes.end() ? 0 : known->bytes;
}

std::optional<uint64_t> tensor_bytes(std::string_view shape, std::string_view type) {
  uint64_t bytes = element_bytes(type);
  if (bytes == 0) return std::nullopt;
  while (!shape.empty()) {
    const auto size = number_of(shape);
    if (!size || __builtin_mul_overflow(bytes, *size, &bytes)) return std::nullopt;
    const size_t comma = shape.find(',');
    shape = comma == shape.npos ? std::string_view() : shape.substr(comma + 1);
  }
  return bytes;
}

void place_on_device(OomMessage* message) {
  const Device device = tensorflow_device(message->allocator);
  const bool is_gpu = device.type == kTensorflowGpu;
  message->backend = is_gpu ? "GPU" : device.type == kTensorflowCpu ? "CPU" : "unknown device";
  if (is_gpu) message->device = static_cast<uint64_t>(device.index);
}

/// "Allocator (GPU_0_bfc) r" in front of the key.
std::optional<OomMessage> parse_pool(std::string_view before, std::string_view text) {
  OomMessage message{.framework = "tensorflow", .wording = OomWording::kTensorflowPool};
  if (before.empty() || (before.back() != 'r' && before.back() != 'R')) return std::nullopt;
  const size_t name = before.rfind("Allocator (");
  if (name != before.npos) message.allocator = between(before.substr(name), "Allocator (", ")");
  message.requested = parse_printed_size(text.substr(kPoolKey.size()));
  // Only the message's own words: names of operations have neither spaces nor brackets.
  const std::string_view own = text.substr(0, text.find("Current allocation summary"));
  message.rounded_bytes = number_of(between(own, "(rounded to ", ")"));
  message.operation = word_after(own, "requested by op ");
  message.is_no_failure = own.find("The caller indicates that this is not a failure") != own.npos;
  place_on_device(&message);
  return message.requested ? std::optional(std::move(message)) : std::nullopt;
}

std::optional<OomMessage> parse_tensor(std::string_view text) {
  OomMessage message{.framework = "tensorflow", .wording = OomWording::kTensorflowTensor};
  message.shape = between(text, kTensorKey, "]");
  if (!message.shape.starts_with('[')) return std::nullopt;  // prose
  message.shape.erase(0, 1);
  if (message.shape.find_first_not_of("0123456789,") != std::string::npos) return std::nullopt;
  message.type = word_after(text, "] and type ");
  message.allocator = word_after(text, " by allocator ");
  // Up to the next message's own words; the node stands right behind.
  const std::string_view node = text.substr(0, text.find("Hint: "));
  message.operation = between(node, "[[{{node ", "}");
  if (message.operation.empty()) message.operation = between(node, "[[node ", " ]");
  if (message.operation.empty()) message.operation = between(node, "[Op:", "]");
  if (const auto bytes = tensor_bytes(message.shape, message.type))
    message.requested = exact_size(*bytes);
  place_on_device(&message);
  return message;
}

/// "Out of memory while trying to allocate 1073741824 bytes", "Out of memory allocating 1024
/// bytes".
std::optional<OomMessage> parse_xla(std::string_view text) {
  OomMessage message{.framework = "xla", .backend = "XLA", .wording = OomWording::kXla};
  text.remove_prefix(kXlaKey.size());
  message.is_xla_of_cpu = text.starts_with("allocating ");
  for (std::string_view words :
       {"while trying to allocate ", "allocating ", "trying to allocate "}) {
    if (text.starts_with(words)) message.requested = parse_printed_size(text.substr(words.size()));
  }
  if (!message.requested) return std::nullopt;
  const PrintedSize& size = *message.requested;
  if (size.least_bytes == size.most_bytes) message.requested = exact_size(size.bytes);
  return message;
}

std::optional<OomMessage> parse_tensorflow(std::string_view before, std::string_view text) {
  if (text.starts_with(kPoolKey)) return parse_pool(before, text);
  if (text.starts_with(kTensorKey)) return parse_tensor(text);
  return text.starts_with(kXlaKey) ? parse_xla(text) : std::nullopt;
}

uint64_t rounded(uint64_t bytes) {
  const uint64_t up = bytes + (kBfcUnitBytes - 1);
  return up < bytes ? UINT64_MAX : up / kBfcUnitBytes * kBfcUnitBytes;
}

/// Whether `tensor` tells of the same refusal as `pool`, which TensorFlow prints right before it.
bool is_same_refusal(const OomMessage& pool, const OomMessage& tensor) {
  if (pool.wording != OomWording::kTensorflowPool || !tensor.requested || pool.is_no_failure ||
      tensor.wording != OomWording::kTensorflowTensor || pool.allocator != tensor.allocator) {
    return false;
  }
  const uint64_t bytes = rounded(tensor.requested->bytes);
  if (pool.rounded_bytes) return *pool.rounded_bytes == bytes;
  return pool.requested->least_bytes <= tensor.requested->bytes &&
         tensor.requested->bytes <= pool.requested->most_bytes;
}

}  // namespace

OomDialect tensorflow_oom_dialect() {
  return {.keys = {"an out of memory", "OOM when", "Out of memory "},
          .beginnings = {kPoolKey, kTensorKey, kXlaKey},
          .parse = parse_tensorflow};
}

OomMessage message_of_dump(BfcPool pool) {
  OomMessage message{.framework = "tensorflow", .wording = OomWording::kTensorflowDump};
  message.allocator = pool.allocator;
  place_on_device(&message);
  message.pool = std::make_shared<const BfcPool>(std::move(pool));
  return message;
}

void OomScanner::join_tensorflow_messages() {
  std::vector<OomMessage>& messages = log_.messages;
  std::vector<PlacedPool> pools = pools_.finish();
  for (PlacedPool& placed : pools) {
    // It is printed right behind its message; other threads' may be in between.
    OomMessage* owner = nullptr;
    for (OomMessage& message : messages) {
      const bool is_its = message.wording == OomWording::kTensorflowPool &&
                          !message.is_no_failure && message.offset < placed.offset &&
                          (placed.pool.allocator.empty() || message.allocator.empty() ||
                           placed.pool.allocator == message.allocator);
      if (is_its) owner = &message;
    }
    if (owner != nullptr && !owner->pool)
      owner->pool = std::make_shared<const BfcPool>(std::move(placed.pool));
  }
  for (OomMessage& message : messages) {
    message.is_pool_left_out = !message.pool && !pools.empty() &&
                               message.offset > pools.back().offset &&
                               pools_.first_left_out() != UINT64_MAX;
  }
  // Where both streams of a program went into one text, either may stand first.
  for (size_t i = 0; i < messages.size();) {
    OomMessage& tensor = messages[i];
    const auto pool = std::ranges::find_if(messages, [&](const OomMessage& message) {
      return is_same_refusal(message, tensor) &&
             (message.shape.empty() || message.shape == tensor.shape);
    });
    if (pool == messages.end()) {
      ++i;
      continue;
    }
    pool->shape = tensor.shape;
    pool->type = tensor.type;
    const std::string printed = pool->requested->text;
    pool->requested = tensor.requested;  // to the byte
    pool->requested->text = printed;
    if (pool->operation.empty()) pool->operation = tensor.operation;
    messages.erase(messages.begin() + static_cast<ptrdiff_t>(i));
  }
}

}  // namespace gpumemprof
