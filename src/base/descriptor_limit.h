// How many files this process may have open. Reading a recording of thousands of processes takes
// more than the usual soft limit; what this process starts gets the limit that it had itself.
#pragma once

#include <cstddef>

namespace gpumemprof {

/// Raises the soft limit to the hard one.
void raise_descriptor_limit();
/// Puts it back, where it was raised: before a program is started. One system call, so also between
/// fork and exec.
void restore_descriptor_limit();
/// The soft limit now.
size_t descriptor_limit();

}  // namespace gpumemprof
