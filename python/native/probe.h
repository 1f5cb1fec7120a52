// The probe's C API in this process, found at run time: the module is loaded with and without it.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "gpumemprof/gpumemprof.h"

namespace gpumemprof::python {

/// The functions of include/gpumemprof/gpumemprof.h; null where no probe, or an older one, is
/// loaded.
struct Probe {
  int (*counting_begin)(void) = nullptr;
  int (*read_counters)(int, int, struct gpumemprof_counters*) = nullptr;
  uint64_t (*scope_begin)(int, int, const void*) = nullptr;
  int (*scope_end)(uint64_t, struct gpumemprof_scope_result*) = nullptr;
  void (*scope_switch_out)(uint64_t) = nullptr;
  void (*scope_switch_in)(uint64_t) = nullptr;
  int (*attach)(const char*, int) = nullptr;
  const char* (*attach_error)(void) = nullptr;
  std::string library;  ///< the file that they come from; empty without a probe

  bool counts() const { return counting_begin && read_counters && scope_begin && scope_end; }
};

/// What is loaded now. Looked up again until a probe is found: one may be attached at any time.
const Probe& probe();

/// Loads `library` and attaches it to what this process has loaded. `folder` may be null.
Status attach_probe(const char* library, const char* folder, int flags);

}  // namespace gpumemprof::python
