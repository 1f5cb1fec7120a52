// The text of an out-of-memory error, wherever it stands in a log. What the numbers mean together
// is analysis/oom_message/oom_verdict.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "readers/bfc_log.h"
#include "readers/bfc_pool.h"
#include "readers/printed_size.h"
#include "readers/traceback_line.h"

namespace gpumemprof {

/// Which generation of wordings a message belongs to.
enum class OomWording : uint8_t {
  kPyTorch1,      ///< "(GPU 0; 7.80 GiB total capacity; …)", up to PyTorch 2.0
  kPyTorch2,      ///< "GPU 0 has a total capacity of …", from 2.1 on
  kPyTorchAsync,  ///< backend:cudaMallocAsync
  kPyTorchMps,
  kPyTorchCpu,
  kNumpy,             ///< "Unable to allocate … for an array with shape …"
  kTensorflowPool,    ///< "Allocator (…) ran out of memory trying to allocate …"
  kTensorflowTensor,  ///< "OOM when allocating tensor with shape[…] and type …"
  kTensorflowDump,    ///< not a text: a memory dump
  kXla,               ///< "Out of memory while trying to allocate … bytes"
  kKernel,            ///< the kernel's "Killed process …"
  kKilled,            ///< "Killed", "OOMKilled": that a process was killed, and no more
  kSharedMemory,      ///< "unable to write to file </torch_…>: No space left on device"
  kWithoutNumbers,    ///< "CUDA error: out of memory" and its like
};
const char* wording_name(OomWording wording);  ///< "pytorch 1", "pytorch 2", …

struct ProcessUse {
  uint64_t pid = 0;
  PrintedSize in_use;
};

/// One message. Every figure that it does not give is absent.
struct OomMessage {
  std::string framework;  ///< "pytorch", "tensorflow", "xla", "numpy", "kernel"
  std::string backend;    ///< "CUDA", "HIP", "XPU", "NPU", "MPS", "CPU", …
  OomWording wording = OomWording::kWithoutNumbers;
  uint64_t offset = 0;           ///< byte in the input where its key words begin
  uint64_t line = 1;             ///< of the same place, from 1
  std::optional<uint64_t> rank;  ///< from a prefix such as "[rank3]:"
  uint64_t times = 1;            ///< how often it stands there, word for word
  std::optional<uint64_t> device;
  TracebackLine asked_at;  ///< by a traceback right above it

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

  /// TensorFlow's; the shape and type NumPy's, too. Texts are as printed: nothing says that they are harmless.
  std::string allocator;                  ///< "GPU_0_bfc"
  std::string operation;                  ///< the node or the operation that asked
  std::string shape;                      ///< of the tensor, "3072,1024"
  std::string type;                       ///< of its elements, "float"
  std::optional<uint64_t> rounded_bytes;  ///< what the pool looked for
  /// The words of XLA's client for CPUs; older TensorFlow's XLA used them for GPUs as well.
  bool is_xla_of_cpu = false;
  bool is_no_failure = false;     ///< whoever asked can do without it, and the message says so
  bool is_pool_left_out = false;  ///< its state may be one beyond kMostPlacedPools
  std::shared_ptr<const BfcPool> pool;  ///< what was printed of the pool behind the message
};

struct OomLog {
  std::vector<OomMessage> messages;  ///< distinct ones, in order of first appearance
  uint64_t more_messages = 0;        ///< beyond kMaxOomMessages: counted, not kept
  uint64_t bytes_read = 0;
  /// The text says, other than as advice, that expandable segments are on: around the messages or
  /// in one of them.
  bool expandable_segments_on = false;
  /// "gpumemprof analyze FOLDER", where the summary of `run` is in the text; empty: it is not.
  std::string analyze_command;
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
  void look_for_summary(size_t ready);
  void join_tensorflow_messages();

  std::string buffer_;
  uint64_t buffer_offset_ = 0;  ///< of buffer_[0] in the input
  size_t done_ = 0;             ///< of the buffer: before this no message begins that is not taken
  uint64_t lines_before_ = 0;   ///< line breaks in front of buffer_[0]
  OomLog log_;
  BfcLogScanner pools_;
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
OomDialect tensorflow_oom_dialect();
OomDialect kernel_oom_dialect();
OomDialect numpy_oom_dialect();
OomDialect shared_memory_oom_dialect();

/// The state of a pool alone, as a message without words.
OomMessage message_of_dump(BfcPool pool);

}  // namespace gpumemprof
