// What the rest of the probe knows of a framework: the functions that we stand in for, and how to
// find out whether its memory comes to us. Each has one file in hooks/, which enters it here;
// nothing else in the probe names a framework.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// A function of the framework, and ours of the same name.
struct Hook {
  const char* name;
  void* hook;
  void* (*find_real)();  // looks the real one up and remembers it; null where nobody defines it
  bool is_alloc;         // frees are put in place first: see attach.cc
};

struct Framework {
  const Hook* hooks;
  uint32_t hook_count;
  /// hooks[0] is always called through a table: where it is not, this says why in one line.
  const char* not_called;
  /// Asks for a block of kTestBytes (scopes.h) on the calling thread. 1: it came to us, 0: it did
  /// not, -1: nobody can be asked (the framework is not ready, no interpreter).
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
