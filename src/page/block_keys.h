// Keys that group blocks: what they are, why and where they were made, by whom.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "page/block_table.h"
#include "trace/tables.h"

namespace gpumemprof {

enum class Dimension : uint8_t {
  kNone,
  kCategory,
  kModule,
  kLine,  ///< of the user's own code, where the stack has one
  kStack,
  kStream,
  kProcess,
  kThread,
};
/// "none", "category", …; empty for another word.
std::optional<Dimension> dimension_of(std::string_view word);

/// The keys of one device's blocks in one dimension. A key is an index in labels().
class BlockKeys {
 public:
  /// `process`: of the device. All must outlive the keys.
  BlockKeys(const BlockTable& table, const Tables& tables, uint32_t process, Dimension by)
      : table_(table), tables_(tables), process_(process), by_(by) {}

  /// `kind`: in BlockTable::kinds, as at the moment in question.
  uint32_t key(uint32_t block, uint32_t kind);
  uint32_t key_at(uint32_t block, uint32_t moment) {
    return key(block, is_by_kind() ? table_.kind_at(block, moment) : 0);
  }
  /// When it is allocated.
  uint32_t first_key(uint32_t block) {
    if (is_by_kind() && table_.changes_kind(block)) return key_at(block, table_.start[block]);
    return key(block, is_by_kind() ? table_.kind_in_end(block) : 0);
  }
  /// Whether a block may have another key at another moment.
  bool is_by_kind() const { return by_ == Dimension::kCategory || by_ == Dimension::kModule; }
  /// Whether all blocks have the same key at all moments.
  bool is_of_all() const {
    return by_ == Dimension::kNone || (by_ == Dimension::kCategory && table_.kinds.size() == 1);
  }
  uint32_t count() const { return static_cast<uint32_t>(ids_.size()); }
  /// The name by which the page may refer to it in later requests.
  const std::string& id(uint32_t key) const { return ids_[key]; }
  /// Of keys that are shown side by side: no two are the same.
  std::vector<std::string> labels(std::span<const uint32_t> keys) const;
  /// Its order in the chart: what stays is below what comes and goes, so that bands do not jump.
  size_t layer(uint32_t key) const;

 private:
  std::string label(uint32_t key) const;
  uint32_t numbered(uint64_t value);
  uint32_t named(std::string name);
  /// The frame of its headline, the same for all callers of the line, as in the reports.
  uint32_t line_of(uint32_t stack);

  const BlockTable& table_;
  const Tables& tables_;
  const uint32_t process_;
  const Dimension by_;
  std::vector<std::string> ids_;
  std::vector<uint64_t> values_;  // of each key, where it is a number
  uint32_t latest_ = 0;           // the key that numbered() gave last: mostly it is wanted again
  absl::flat_hash_map<uint64_t, uint32_t> by_value_;
  absl::flat_hash_map<std::string, uint32_t> by_name_;
  absl::flat_hash_map<uint64_t, uint32_t> modules_;  // by stack and kind
  absl::flat_hash_map<uint32_t, uint32_t> node_of_line_;  // of kLine, by frame; kNone: no stack
  std::vector<uint32_t> by_stack_;                   // of kStack and kLine; kNone: not asked yet
};

/// The module of a block; empty if unknown.
std::string module_of(const CategoryHolder& kind, uint32_t stack, const Tables& tables);

}  // namespace gpumemprof
