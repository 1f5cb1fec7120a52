// Strings, frames and stacks of a Perfetto trace, each written once, before its first use.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <string>

#include "trace/tables.h"

namespace gpumemprof {

/// Ids are ours + 1: 0 means "none" there. Not thread-safe.
class PerfettoInterned {
 public:
  explicit PerfettoInterned(const Tables& tables) : tables_(tables) {}

  /// The callstack_iid of a stack; of an unknown stack that of a single frame that says so. What
  /// the trace does not know yet is appended to pending().
  uint64_t stack(uint32_t stack);
  /// The message InternedData that must come with the next packet; emptied by take().
  bool has_pending() const { return !pending_.empty(); }
  std::string take() { return std::exchange(pending_, {}); }

 private:
  uint64_t frame(uint32_t frame_id);
  uint64_t text(absl::flat_hash_map<std::string, uint64_t>& known, uint32_t field,
                const std::string& text);
  uint64_t mapping(const std::string& file);

  const Tables& tables_;
  std::string pending_;
  absl::flat_hash_map<uint32_t, bool> stacks_;
  absl::flat_hash_map<uint32_t, bool> frames_;
  absl::flat_hash_map<std::string, uint64_t> functions_, sources_, paths_, mappings_;
};

}  // namespace gpumemprof
