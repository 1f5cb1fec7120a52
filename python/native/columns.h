// All events of a source as columns that Python's libraries can look at without a copy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "trace/event_source.h"

namespace gpumemprof::python {

/// One vector a column, all of one length, the empty `stream` apart; filled once, then only read.
/// Every value of `action`, `device` and `stream` is an index of its list of names, whatever the
/// file held.
struct Columns {
  std::vector<int64_t> time_ns;      ///< as the source has it; 0 where has_times is false
  std::vector<uint8_t> action;       ///< index of `actions`
  std::vector<uint64_t> address;     ///< 0 in oom and snapshot
  std::vector<uint64_t> size_bytes;  ///< of a free: of the block that it ends; 0 where unknown
  std::vector<uint32_t> stack;       ///< StackTable id; 0: no stack known
  std::vector<uint16_t> device;      ///< index of `devices` and of Tables::devices
  std::vector<uint32_t> thread;      ///< index of Tables::threads; UINT32_MAX: unknown
  std::vector<uint16_t> stream;      ///< index of `streams`; empty where no_streams says why

  std::vector<std::string> actions;  ///< by number; [0] is never used
  std::vector<std::string> devices;  ///< device_labels()
  std::vector<int64_t> streams;      ///< cudaStream_t as numbers, in order of appearance
  bool has_times = false;
  bool has_threads = false;  ///< some event names its thread
  std::string no_streams;    ///< the reason; empty where they are known

  size_t size() const { return action.size(); }
};

/// Reads `source` to its end. Memory 37 bytes an event beside the live blocks, whose sizes are
/// those of their frees. `expected` events (0: unknown) are made room for. Errors are the source's.
Result<Columns> read_columns(EventSource& source, uint64_t expected);

/// device_name() of every device; "PID/cpu" where several processes have one of that name, as the
/// command's --device takes it; "…#2" should even those be the same.
std::vector<std::string> device_labels(const Tables& tables);

}  // namespace gpumemprof::python
