// The meaning of the ids in one stream's raw events: its definitions, as entries of Tables.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/format.h"
#include "recording/modules.h"
#include "recording/process_entries.h"
#include "trace/tables.h"

namespace gpumemprof {

/// A map from a file's ids. Dense while ids are dense; one damaged id costs one entry, not 2^24.
template <class T>
class IdTable {
 public:
  const T* find(uint32_t id) const {
    if (id < dense_.size()) return dense_[id].second ? &dense_[id].first : nullptr;
    auto it = sparse_.find(id);
    return it == sparse_.end() ? nullptr : &it->second;
  }
  /// False if the id already has a value; the first one stays.
  bool insert(uint32_t id, T value) {
    if (find(id)) return false;
    if (id >= dense_.size() && id < 2 * count_ + 64) dense_.resize(2 * count_ + 64);
    ++count_;
    if (id < dense_.size()) {
      if (!sparse_.empty()) sparse_.erase(id);
      dense_[id] = {std::move(value), true};
    } else {
      sparse_.emplace(id, std::move(value));
    }
    return true;
  }

 private:
  std::vector<std::pair<T, bool>> dense_;
  absl::flat_hash_map<uint32_t, T> sparse_;
  size_t count_ = 0;
};

/// Where an allocator places a request: blocks of one stream and pool serve no other.
struct Placement {
  int64_t stream = 0;
  std::pair<int64_t, int64_t> pool{0, 0};
};

/// Not thread-safe. All arguments must outlive it.
class StreamDefinitions {
 public:
  StreamDefinitions(Tables* tables, ProcessEntries* entries, ModuleList* modules,
                    uint32_t process);

  /// Reads a run of definition records that were written under `salt`. Damaged records are counted
  /// and skipped; a record with an impossible length ends the run. Reading a run twice changes
  /// nothing.
  void take(std::string_view records, uint8_t salt);

  /// The Tables' stack for a raw stack id; 0 if it was never defined.
  uint32_t stack(uint32_t raw_id);
  /// The Tables' device for a class; -1 if no more devices fit.
  int32_t device(uint32_t device_class);

  /// Null if it was never defined.
  const Placement* placement(uint32_t id) const {
    const auto known = placements_.find(id);
    return known == placements_.end() ? nullptr : &known->second;
  }

  /// The Tables' string for a raw id; 0 if it was never defined.
  uint32_t text(uint32_t raw_id) { return string_of(raw_id); }
  /// Whether stacks may name modules of a model.
  bool has_module_frames() const { return has_module_frames_; }

  /// Whether other streams, too, need what is defined here: modules, facts of an allocator.
  bool has_shared() const { return has_shared_; }
  uint32_t tid() const { return tid_; }
  const std::string& thread_name() const { return thread_name_; }
  bool has_thread() const { return has_thread_; }
  uint64_t damaged_records() const { return damaged_; }
  /// The number of look-ups of undefined stack, frame or string ids.
  uint64_t unknown_stacks() const { return unknown_stacks_; }

 private:
  struct RawFrame {
    bool native = false;
    uint32_t file = 0, function = 0, line = 0;
    uint64_t pc = 0;
  };
  /// Raw stacks are a tree too, so "keep of base" costs nothing.
  struct Node {
    uint32_t parent, frame, depth;
  };
  bool define(uint8_t type, std::string_view body);
  bool define_stack(std::string_view body);
  bool define_device(std::string_view body);
  bool define_allocator(std::string_view body);
  uint32_t resolve(uint32_t node);
  uint32_t string_of(uint32_t id);
  uint32_t frame_of(const RawFrame& frame);

  Tables* tables_;
  ProcessEntries* entries_;
  ModuleList* modules_;
  uint32_t process_;
  IdTable<uint32_t> strings_;  // -> StringTable id
  IdTable<RawFrame> frames_;
  IdTable<uint32_t> stacks_;    // -> node
  IdTable<uint32_t> resolved_;  // -> StackTable id
  std::vector<Node> nodes_;
  absl::flat_hash_map<uint32_t, Placement> placements_;
  std::array<Device, format::kDeviceClasses> device_kinds_;
  std::array<bool, format::kDeviceClasses> device_known_{};
  std::array<int32_t, format::kDeviceClasses> devices_;  // -> Tables::devices, or kNotLookedUp
  uint32_t tid_ = 0;
  std::string thread_name_;
  bool has_thread_ = false;
  bool has_module_frames_ = false, has_shared_ = false;
  uint64_t damaged_ = 0;
  uint64_t unknown_stacks_ = 0;
};

}  // namespace gpumemprof
