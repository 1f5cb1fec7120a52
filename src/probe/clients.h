// Functions whose names several libraries may define, each for itself: which one is the real one
// depends on who is asking. A client is an object (library or program) that calls ours, or that has
// a class of whose table ours is a part; the real function is its own, else that of a library it
// needs, else the framework's.
//
// Looked up once a client and function, under the loader's lock; after that a few comparisons.
#pragma once

#include <stdint.h>

#include "probe/dynamic.h"

namespace gpumemprof::probe {

struct SharedName {
  const char* name;
  void* ours;      // null where we only call it
  void* fallback;  // where no loaded library has it; null where there is none
  bool is_alloc;   // for Hook
};

inline constexpr uint32_t kMostSharedNames = 20;

struct Client {
  ObjectRange range;  // `end` is stored last; 0: of all for which there was no room
  void* real[kMostSharedNames];
  uint32_t verdict;  // of its functions: 0 not asked yet, else a Verdict
};
enum Verdict : uint32_t { kOfFramework = 1, kForeign = 2 };

class Clients {
 public:
  /// `library`: the framework's, searched first. `part`: in the file name of every object that can
  /// be the framework's.
  constexpr Clients(const SharedName* names, const char* library, const char* part)
      : names_(names), library_(library), part_(part) {}

  /// `address`: in the client's code, or of its class's table. Never null.
  Client* of(const void* address) {
    uint32_t count = __atomic_load_n(&count_, __ATOMIC_RELAXED);
    if (count > kClients - 1) count = kClients - 1;
    uintptr_t at = reinterpret_cast<uintptr_t>(address);
    for (uint32_t i = 0; i < count; ++i) {
      uintptr_t end = __atomic_load_n(&clients_[i].range.end, __ATOMIC_ACQUIRE);
      if (at < end && at >= clients_[i].range.begin) return &clients_[i];
    }
    return add(address);
  }

  /// Null if no library has it and there is no fallback.
  template <class F>
  F real(Client* client, uint32_t which) {
    void* known = __atomic_load_n(&client->real[which], __ATOMIC_ACQUIRE);
    if (__builtin_expect(!known, 0)) known = find(client, which);
    return reinterpret_cast<F>(known);
  }

 private:
  static constexpr uint32_t kClients = 32;
  Client* add(const void* address);
  void* find(Client* client, uint32_t which);

  const SharedName* names_;
  const char* library_;
  const char* part_;
  Client clients_[kClients] = {};
  uint32_t count_ = 0;
};

}  // namespace gpumemprof::probe
