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
  Untraced() : state_(PyThreadState_Get()), was_used_(uses_tracing()) {
    state_->tracing += 1;
    uses_tracing() = 0;
  }
  ~Untraced() {
    uses_tracing() = was_used_;
    state_->tracing -= 1;
  }
#endif
  Untraced(const Untraced&) = delete;
  Untraced& operator=(const Untraced&) = delete;

#if PY_VERSION_HEX < 0x030B0000
 private:
#if PY_VERSION_HEX >= 0x030A0000
  int& uses_tracing() { return state_->cframe->use_tracing; }
#else
  int& uses_tracing() { return state_->use_tracing; }
#endif
  PyThreadState* state_;
  int was_used_;
#endif
};

}  // namespace gpumemprof::python
