// What the rest of the probe knows of a framework: the functions that are replaced, and how to
// verify that its memory reaches the probe. Each framework has one file in hooks/, which registers
// it here; nothing else in the probe names a framework.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// A function of the framework, and its replacement of the same name.
struct Hook {
  const char* name;
  void* hook;
  void* (*find_real)();  // looks the real one up and remembers it; null where nobody defines it
  bool is_alloc;         // frees are put in place first: see attach.cc
};

struct Framework {
  const Hook* hooks;
  uint32_t hook_count;
  /// hooks[0] is always called through a table; if it is not, this is the one-line reason.
  const char* not_called;
  /// Allocates a block of kTestBytes (scopes.h) on the calling thread. 1: it reached the probe, 0:
  /// it did not, -1: it cannot be tested (the framework is not ready, no interpreter).
  int (*ask)();
  const char* not_arrived;
  Framework* next;
};

/// The list of all; filled while the library is loaded, by one thread, and never changed later.
extern Framework* g_frameworks;
inline void enter_framework(Framework* framework) {
  framework->next = g_frameworks;
  g_frameworks = framework;
}

}  // namespace gpumemprof::probe
