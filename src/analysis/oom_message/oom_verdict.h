// What the numbers of an out-of-memory message mean together: want of memory or fragmentation, who
// else holds the device, what to do first. Nothing is concluded that rounding could overturn: each
// printed size stands for a range, and where ranges overlap the answer is "cannot tell".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/oom_message/byte_range.h"
#include "readers/oom_message.h"

namespace gpumemprof {

enum class OomCause : uint8_t {
  kWantOfMemory,   ///< all that is free, in one piece or not, is less than was asked for
  kFragmentation,  ///< enough is free in sum, but not in one piece
  kOwnLimit,       ///< the process's own limit, not the device
  kCannotTell,
};
const char* cause_name(OomCause cause);  ///< "want_of_memory", "fragmentation", …

/// A figure of the message with its meaning. `key` is the member's name in OomMessage.
struct OomFigure {
  std::string key;
  PrintedSize size;
  std::string meaning;
};

/// Something to do; `command` is a line to type or to put into the environment, or empty.
struct OomAdvice {
  std::string text;
  std::string command;
};

struct OomVerdict {
  OomCause cause = OomCause::kCannotTell;
  std::string summary;                      ///< one sentence
  std::vector<std::string> reasons;         ///< the arithmetic, one sentence each
  std::vector<std::string> elsewhere;       ///< what on the device is not in PyTorch's tensors
  std::vector<OomAdvice> advice;            ///< in the order to try it
  std::optional<ByteRange> usable_bytes;    ///< free and reserved but unallocated, within the limit
  std::optional<ByteRange> shortage_bytes;  ///< what want of memory lacks
  std::optional<ByteRange> non_pytorch_bytes;  ///< of this process: context, libraries
  std::optional<ByteRange> others_bytes;       ///< of other processes
};

std::vector<OomFigure> oom_figures(const OomMessage& message);

inline constexpr char kRecordCommand[] = "gpumemprof run -- python YOUR_PROGRAM.py";
inline constexpr char kRecordHostCommand[] = "gpumemprof run --host -- python YOUR_PROGRAM.py";

/// `expandable_segments_on`: the log says so. Never fails.
OomVerdict explain_oom(const OomMessage& message, bool expandable_segments_on);
/// The same of a message of `log`: where the program was recorded, that recording is advised.
OomVerdict explain_oom(const OomMessage& message, const OomLog& log);

}  // namespace gpumemprof
