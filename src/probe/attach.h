// Hooks in a process that was not started with them: gpumemprof_attach().
//
//   already preloaded ──────────────────────────────────────────────▶ nothing to do
//   else  1. the library becomes visible to all: what is loaded from now on finds our hooks first
//         2. the tables of what is loaded already are changed (got.h)
//         3. PyTorch is asked for a block, which must arrive; it is not counted
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// A function of PyTorch that we stand in for. hooks/torch.cc has the list.
struct TorchHook {
  const char* name;
  void* hook;
  void* (*find_real)();  // looks the real one up and remembers it; null where there is none
};
inline constexpr uint32_t kTorchHookCount = 8;
extern const TorchHook kTorchHooks[kTorchHookCount];  // alloc_cpu is the first

/// True where the program's allocations come to us: preloaded, or attached.
bool hooks_are_in_place();

/// The API's function of that name.
bool attach(const char* folder, int flags);

/// "" where the last attach succeeded, or nobody has tried.
const char* attach_error();

}  // namespace gpumemprof::probe
