// Memory of this process, read without the costs of Python's files.
#pragma once

#include <cstdint>

namespace gpumemprof::python {

/// In bytes; 0 where the system does not say.
struct ProcessBytes {
  uint64_t resident, highest, virtual_size;
};

/// Resident and virtual bytes now (/proc/self/statm), and the highest resident ones that getrusage
/// knows of. The file is opened each time: a descriptor kept open would outlive a fork, and the
/// program could close and reuse it.
ProcessBytes process_bytes();

}  // namespace gpumemprof::python
