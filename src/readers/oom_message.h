// The text of an out-of-memory error, wherever it stands in a log. What the numbers mean together
// is analysis/oom_verdict.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// A size as a message prints it, "1.95 GiB". What was printed was rounded, so the true size lies
/// from `least_bytes` to `most_bytes`, both included; plain bytes are exact.
struct PrintedSize {
  std::string text;
  uint64_t bytes = 0;  ///< the printed number itself, rounded down
  uint64_t least_bytes = 0;
  uint64_t most_bytes = 0;
};

/// The size that `text` begins with, after one space at most; absent where there is none or it does
/// not fit 64 bits. Reads "bytes", "B", "KiB" to "EiB" and "KB" to "EB" (decimal).
std::optional<PrintedSize> parse_printed_size(std::string_view text);

/// Which generation of wordings a message belongs to.
enum class OomWording : uint8_t {
  kPyTorch1,      ///< "(GPU 0; 7.80 GiB total capacity; …)", up to PyTorch 2.0
  kPyTorch2,      ///< "GPU 0 has a total capacity of …", from 2.1 on
  kPyTorchAsync,  ///< backend:cudaMallocAsync
  kPyTorchMps,
  kPyTorchCpu,
  kWithoutNumbers,  ///< "CUDA error: out of memory" and its like
};
const char* wording_name(OomWording wording);  ///< "pytorch 1", "pytorch 2", …

struct ProcessUse {
  uint64_t pid = 0;
  PrintedSize in_use;
};

/// One message. Every figure that it does not give is absent.
struct OomMessage {
  std::string framework;  ///< "pytorch"
  std::string backend;    ///< "CUDA", "HIP", "XPU", "NPU", "MPS", "CPU", …
  OomWording wording = OomWording::kWithoutNumbers;
  uint64_t offset = 0;           ///< byte in the input where its key words begin
  uint64_t line = 1;             ///< of the same place, from 1
  std::optional<uint64_t> rank;  ///< from a prefix such as "[rank3]:"
  uint64_t times = 1;            ///< how often it stands there, word for word
  std::optional<uint64_t> device;

  std::optional<PrintedSize> requested;
  std::optional<PrintedSize> capacity;
  std::optional<PrintedSize> free;
  std::optional<PrintedSize> allocated;       ///< in tensors; from 2.1 on with `private_pools`
  std::optional<PrintedSize> unallocated;     ///< reserved, and in no tensor
  std::optional<PrintedSize> reserved;        ///< PyTorch 1 alone prints it
  std::optional<PrintedSize> private_pools;   ///< free blocks of private pools, part of `allocated`
  std::optional<PrintedSize> allowed;         ///< the process's own limit
  std::optional<PrintedSize> process_in_use;  ///< of this process, what is not PyTorch's included
  std::optional<PrintedSize> other_in_use;    ///< MPS: "other allocations"
  std::vector<ProcessUse> processes;          ///< "Process N has …", in order

  /// The environment variable that the message itself recommends to set; empty without advice.
  std::string hint_variable;
  bool hints_expandable_segments = false;
  bool expandable_segments_on = false;  ///< the message itself says so (2.15)
  bool is_own_limit = false;            ///< it says that the process's own limit refused (2.15)
  bool exceeds_reserve = false;         ///< more than an expandable segment reserves (2.15)
  bool is_custom_pool = false;          ///< the allocator behind a MemPool refused
};

struct OomLog {
  std::vector<OomMessage> messages;  ///< distinct ones, in order of first appearance
  uint64_t more_messages = 0;        ///< beyond kMaxOomMessages: counted, not kept
  uint64_t bytes_read = 0;
  /// The text says, other than as advice, that expandable segments are on: around the messages or
  /// in one of them.
  bool expandable_segments_on = false;
};
inline constexpr size_t kMaxOomMessages = 256;

/// Finds messages in a text that comes in pieces of any size. Memory is bounded whatever comes.
class OomScanner {
 public:
  void feed(std::string_view piece);
  /// Everything found; call once, last.
  OomLog finish();

 private:
  void scan(bool is_end);
  void take(OomMessage message);

  std::string buffer_;
  uint64_t buffer_offset_ = 0;  ///< of buffer_[0] in the input
  size_t done_ = 0;             ///< of the buffer: before this no message begins that is not taken
  uint64_t lines_before_ = 0;   ///< line breaks in front of buffer_[0]
  OomLog log_;
};

/// A framework's messages. A new framework is one more of these in the table of oom_message.cc.
struct OomDialect {
  /// Words that every message of it holds; a place where one of them stands is offered to parse().
  std::vector<std::string_view> keys;
  /// How such a place reads when nothing is wrapped; one that begins otherwise is passed over.
  std::vector<std::string_view> beginnings;
  /// `text` is the place and what follows it, `before` what stands in front (a few dozen bytes),
  /// both with line breaks, borders and colours taken out. Absent where it is no message after all.
  std::optional<OomMessage> (*parse)(std::string_view before, std::string_view text);
};
OomDialect pytorch_oom_dialect();

}  // namespace gpumemprof
