// Python of ours that the program's debuggers, profilers and tracers do not hear of.
#pragma once

#include <Python.h>

namespace gpumemprof::python {

/// While it lives no tracer or profiler of the program is told of what this thread runs.
class Untraced {
 public:
#if PY_VERSION_HEX >= 0x030B0000
  Untraced() { PyThreadState_EnterTracing(PyThreadState_Get()); }
  ~Untraced() { PyThreadState_LeaveTracing(PyThreadState_Get()); }
#else
  Untraced() = default;
#endif
  Untraced(const Untraced&) = delete;
  Untraced& operator=(const Untraced&) = delete;
};

}  // namespace gpumemprof::python
