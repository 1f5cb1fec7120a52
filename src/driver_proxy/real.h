// The real driver behind the stand-in.
#pragma once

#include <stdint.h>

namespace gpumemprof::driver_proxy {

using Result = int;
using Pointer = unsigned long long;  // CUdeviceptr

enum Code : int {
  kSuccess = 0,
  kOutOfMemory = 2,
  kNotFound = 500,  // what calling a function answers that the real driver does not have
};

/// The definition of `name` in the real driver, which is opened at the first call; null if there is
/// none.
void* real_function(const char* name);

/// A function of the real driver, looked up once.
template <class Function>
struct Real {
  const char* name;
  Function* pointer;

  Function* get() {
    Function* known = __atomic_load_n(&pointer, __ATOMIC_RELAXED);
    if (known) return known;
    known = reinterpret_cast<Function*>(real_function(name));
    __atomic_store_n(&pointer, known, __ATOMIC_RELAXED);
    return known;
  }
};

}  // namespace gpumemprof::driver_proxy

/// The same function of CUDA's driver or of HIP, depending on which the file is compiled for.
#ifdef GPUMEMPROF_HIP
#define DRIVER_FUNCTION(name) hip##name
#define DRIVER_FUNCTION_V2(name) hip##name
#else
#define DRIVER_FUNCTION(name) cu##name
#define DRIVER_FUNCTION_V2(name) cu##name##_v2
#endif

/// Calls the real function of this name, as one expression; kNotFound if there is none. In two
/// steps, so that a name may come from DRIVER_FUNCTION.
#define CALL_REAL(name, ...) CALL_REAL_NAMED(name, __VA_ARGS__)
#define CALL_REAL_NAMED(name, ...)                                                        \
  ({                                                                                      \
    static constinit gpumemprof::driver_proxy::Real<decltype(name)> real{#name, nullptr}; \
    auto* function = real.get();                                                          \
    function ? function(__VA_ARGS__) : int{gpumemprof::driver_proxy::kNotFound};          \
  })

/// The same for functions that are not defined here: `type` is the function's type.
#define ASK_REAL(type, name, ...) ASK_REAL_NAMED(type, name, __VA_ARGS__)
#define ASK_REAL_NAMED(type, name, ...)                                          \
  ({                                                                             \
    static constinit gpumemprof::driver_proxy::Real<type> real{#name, nullptr};  \
    auto* function = real.get();                                                 \
    function ? function(__VA_ARGS__) : int{gpumemprof::driver_proxy::kNotFound}; \
  })
