// The driver that we stand in front of.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gpumemprof::driver_proxy {

using Result = int;
using Pointer = unsigned long long;  // CUdeviceptr

enum Code : int {
  kSuccess = 0,
  kOutOfMemory = 2,
  kNotFound = 500,  // what calling a function answers that the real driver does not have
};

/// The definition of `name` in the real driver, which is opened on the first call; null where there
/// is none.
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

/// Calls the real function of this name, as one expression; kNotFound where there is none.
#define CALL_REAL(name, ...)                                                              \
  ({                                                                                      \
    static constinit gpumemprof::driver_proxy::Real<decltype(name)> real{#name, nullptr}; \
    auto* function = real.get();                                                          \
    function ? function(__VA_ARGS__) : int{gpumemprof::driver_proxy::kNotFound};          \
  })

/// As above for functions that we do not define: `type` is its type.
#define ASK_REAL(type, name, ...)                                                \
  ({                                                                             \
    static constinit gpumemprof::driver_proxy::Real<type> real{#name, nullptr};  \
    auto* function = real.get();                                                 \
    function ? function(__VA_ARGS__) : int{gpumemprof::driver_proxy::kNotFound}; \
  })
