// A call of the fake HIP that the fake CUDA answers.
#pragma once

#include "../cuda/driver.h"

#define FAKE_HIP extern "C" __attribute__((visibility("default")))

extern "C" {
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(fake_cuda::Context**, int);
int cuCtxSetCurrent(fake_cuda::Context*);
}

namespace fake_hip {

using namespace fake_cuda;

/// As HIP, which has a device from the first call on.
inline bool begin(int device = 0) {
  if (current_context()) return true;
  Context* context = nullptr;
  return cuInit(0) == kSuccess && cuDevicePrimaryCtxRetain(&context, device) == kSuccess &&
         cuCtxSetCurrent(context) == kSuccess;
}

template <class... Wanted, class... Given>
Result as_cuda(Result (*function)(Wanted...), Given... given) {
  return begin() ? function(given...) : int{kNoDevice};
}

}  // namespace fake_hip
