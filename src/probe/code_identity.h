// Code objects die and their addresses are used again: by exec, notebooks, generated code. 520 of
// 1,000 allocations of such functions got the wrong line from a recorder that trusted addresses.
//
// So the deaths of code objects are watched: PyCode_Type's tp_dealloc is a word in writable memory
// that every version has at the same place; replacing it needs no GIL. When a code object dies that
// some stack of ours knows, its bucket's generation and the global epoch go up. The epoch is part
// of every stack's hash, so no thread finds a stack by an old address any more; the generation is
// part of the key of every remembered frame and code object, so only what really died is read anew.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

inline constexpr uint32_t kGenerationBuckets = 4096;

struct CodeWatch {
  uint32_t generations[kGenerationBuckets];
  uint64_t known[1024];  // a bit for every hash of a code address that a stack of ours contains
};
extern CodeWatch g_code_watch;
extern uint32_t g_code_epoch;

inline uint32_t code_hash(const void* code) {
  return static_cast<uint32_t>((reinterpret_cast<uintptr_t>(code) >> 4) * 0x9e3779b97f4a7c15u >>
                               32);
}

inline uint32_t code_epoch() { return __atomic_load_n(&g_code_epoch, __ATOMIC_ACQUIRE); }

/// The generation of whatever is at this address; remembers that it is known from now on. The
/// caller's frames keep `code` alive.
uint32_t know_code(const void* code);

/// Begins watching. False if PyCode_Type does not look as expected; then stacks must not be
/// recorded.
/// `head`: of objects with a length, in bytes.
bool watch_code_objects(void* code_type, uint32_t head);

}  // namespace gpumemprof::probe
