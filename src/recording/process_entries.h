// The entries of one process in Tables, found by a look-up: a file may define very many, and may
// name one that does not fit with every event.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <tuple>

#include "trace/tables.h"

namespace gpumemprof {

/// Others may add to the tables too. Not thread-safe; `tables` must outlive it.
class ProcessEntries {
 public:
  ProcessEntries(Tables* tables, uint32_t process);
  /// The index of `wanted`, one of this process, added if it is new; -1 if no more devices fit.
  int32_t device(const Device& wanted);
  /// Like add_allocator(), for one of this process.
  void add_allocator(const FollowedAllocator& said);
  /// The table entries examined so far.
  uint64_t steps() const { return steps_; }

 private:
  using DeviceKey = std::tuple<int8_t, int8_t, uint8_t, bool, std::string>;
  void learn_devices();
  void learn_allocators();
  Tables* tables_;
  uint32_t process_;
  size_t devices_seen_, allocators_seen_;
  absl::flat_hash_map<DeviceKey, int32_t> devices_;
  absl::flat_hash_map<std::pair<int8_t, int8_t>, size_t> allocators_;
  uint64_t steps_ = 0;
};

}  // namespace gpumemprof
