// Memory of this process, read without the costs of Python's files.
#pragma once

#include <cstdint>

namespace gpumemprof::python {

/// In bytes; 0 where the system does not say.
struct ProcessBytes {
  uint64_t resident, highest, virtual_size;
  double cpu_seconds;  ///< used by all threads, user and system, in whole microseconds
};

/// Resident and virtual bytes now (/proc/self/statm), and the highest resident ones that getrusage
/// knows of.
///
/// `blocks`: 1 where a profiled block begins, -1 where it ends, else 0. While any is open the file
/// stays open, one descriptor for all of them, as opening it is most of the cost. It is read only
/// where it is still this process's own: not a forked child's, and not one that the program has
/// closed and reused. Not thread-safe: call it with Python's lock held.
ProcessBytes process_bytes(int blocks = 0);

}  // namespace gpumemprof::python
