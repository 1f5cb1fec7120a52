// Autograd's state at the moment of an allocation; see torch_autograd.cc.
#pragma once

#include "probe/framework.h"

namespace gpumemprof::probe {

extern const Hook kAutogradHooks[1];
extern const Hook kSavedHooks[1];  // torch_saved.cc
extern const Hook kCopyHooks[1];   // torch_copied.cc
extern const Hook kCollectiveHooks[4];  // torch_collectives.cc

/// Looks up the functions that tell whether gradients are on; once, at the first call through
/// libc10.
void prepare_torch_modes();

}  // namespace gpumemprof::probe
