// What a machine is called in the names of files and in their headers.
#pragma once

#include <stddef.h>

namespace gpumemprof {

/// Copies `name` into `out` (of `size` bytes, cut there): all but ASCII's letters, digits and marks
/// becomes "_", and so does "/", for a machine may be called anything. "unknown" where it is empty.
inline void copy_host_name(const char* name, char* out, size_t size) {
  if (name[0] == 0) name = "unknown";
  size_t n = 0;
  for (; name[n] != 0 && n + 1 < size; ++n)
    out[n] = name[n] > ' ' && name[n] < 0x7f && name[n] != '/' ? name[n] : '_';
  out[n] = 0;
}

}  // namespace gpumemprof
