// Modules: Python objects of a model to whose calls memory is attributed, identified by address and
// class. A table per process, of fixed size, in which entries are added once and stay, so that a
// short number can represent a module in the notes of the backward pass, when the object itself may
// be gone.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gpumemprof::probe {

inline constexpr uint32_t kModules = 8192;
inline constexpr uint32_t kMostClassName = 99;                        // bytes; longer names are cut
inline constexpr uint32_t kMostModuleText = kMostClassName + 1 + 16;  // "Linear@7f21c0a3d010"

/// The number of a module, from 1; 0 if there is no room, or another thread is adding it. The
/// object is alive: its class's name is read at the first call.
uint32_t module_number(const void* object, const void* type);

/// "Linear@7f21c0a3d010". The length; 0 for an unknown number.
uint32_t module_text(uint32_t number, char out[kMostModuleText]);
uint32_t module_text(const void* object, const void* type, char out[kMostModuleText]);

/// Records the path of a module, and that it is no longer new; "" removes the path.
void name_module(const void* object, const char* path);

/// Sets, or with null removes, the function to call once when a module appears that has no name in
/// this recording.
void when_module_is_new(int (*call)(void*), void* argument);

/// A stack of this module was met for the first time, or may_be_new(); requests the call if it has
/// no name.
void saw_module(const void* object, const void* type);

/// Whether a name was removed from the address, so that another object with known stacks may be at
/// it. Checked for every event, so a bit by hash; if two addresses share it a path may come late.
inline constexpr uint32_t kForgottenBits = 4096;
extern uint64_t g_forgotten[kForgottenBits / 64];
extern uint32_t g_has_forgotten;  // 0 until the first name is taken away
inline bool may_be_new(const void* object) {
  if (!__atomic_load_n(&g_has_forgotten, __ATOMIC_RELAXED)) return false;
  const uint64_t hash = reinterpret_cast<uintptr_t>(object) * 0x9e3779b97f4a7c15u >> 52;
  return __atomic_load_n(&g_forgotten[hash >> 6], __ATOMIC_RELAXED) >> (hash & 63) & 1;
}

}  // namespace gpumemprof::probe
