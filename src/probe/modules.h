// Modules: the Python objects of a model whose call memory is put down to, told apart by address
// and class. One table of the process, of fixed size, in which an entry is made once and stays: so
// a short number stands for a module in the notes of the backward pass, where the object itself may
// be gone.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gpumemprof::probe {

inline constexpr uint32_t kModules = 8192;
inline constexpr uint32_t kMostClassName = 99;                        // bytes; longer names are cut
inline constexpr uint32_t kMostModuleText = kMostClassName + 1 + 16;  // "Linear@7f21c0a3d010"

/// The number of a module, from 1; 0 where there is no room, or another thread enters it just now.
/// The object is alive: its class's name is read at the first call.
uint32_t module_number(const void* object, const void* type);

/// "Linear@7f21c0a3d010". The length; 0 for an unknown number.
uint32_t module_text(uint32_t number, char out[kMostModuleText]);
uint32_t module_text(const void* object, const void* type, char out[kMostModuleText]);

/// Marks the path of a module in the recording, and that it is not new any more; "" takes the path
/// away again.
void name_module(const void* object, const char* path);

/// Sets or, with null, takes away what is to be called, once, when a module turns up that this
/// recording has no name of.
void when_module_is_new(int (*call)(void*), void* argument);

/// A stack of this module was met for the first time, or may_be_new(); asks for the call where it
/// has no name.
void saw_module(const void* object, const void* type);

/// Whether a name was taken away from the address, so that another object may lie at it whose
/// stacks are known: for every event, so a bit by hash. Where two addresses share it the answer is
/// seldom wrong, and then a path comes late.
inline constexpr uint32_t kForgottenBits = 4096;
extern uint64_t g_forgotten[kForgottenBits / 64];
extern uint32_t g_has_forgotten;  // 0 until the first name is taken away
inline bool may_be_new(const void* object) {
  if (!__atomic_load_n(&g_has_forgotten, __ATOMIC_RELAXED)) return false;
  const uint64_t hash = reinterpret_cast<uintptr_t>(object) * 0x9e3779b97f4a7c15u >> 52;
  return __atomic_load_n(&g_forgotten[hash >> 6], __ATOMIC_RELAXED) >> (hash & 63) & 1;
}

}  // namespace gpumemprof::probe
