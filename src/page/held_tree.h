// Held bytes summed by stack and kind, and as a tree: of calls, of modules, of categories.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "page/block_keys.h"
#include "page/columns.h"

namespace gpumemprof {

/// "user", "label" (no code, what stands in "<>" without a line: a module, operation, layer,
/// variable, mode or phase), "library" or "native".
const char* frame_kind(std::string_view file, uint32_t line);

/// Bytes and blocks by stack and kind.
class HeldSums {
 public:
  struct Sum {
    uint64_t bytes = 0, blocks = 0;
  };
  explicit HeldSums(const BlockTable& table) : table_(table) {}
  void add(uint32_t block, uint32_t kind) {
    Sum& sum = sums_[uint64_t{table_.stack[block]} << 32 | kind];
    sum.bytes += table_.size_bytes[block], ++sum.blocks;
  }
  /// see(stack, kind, sum), always in the same order.
  template <class See>
  void each(const See& see) const {
    std::vector<std::pair<uint64_t, Sum>> sorted(sums_.begin(), sums_.end());
    std::ranges::sort(sorted, {}, &std::pair<uint64_t, Sum>::first);
    for (const auto& [key, sum] : sorted)
      see(static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key), sum);
  }

 private:
  const BlockTable& table_;
  absl::flat_hash_map<uint64_t, Sum> sums_;
};

/// Node 0 is the root; parents come before their children.
struct HeldTree {
  struct Label {
    std::string text;
    const char* kind = "other";  ///< of a frame: frame_kind()
    std::string file;            ///< of a frame; else empty
    uint32_t line = 0;
  };
  std::vector<uint32_t> parent, label;
  std::vector<uint64_t> bytes, self_bytes, blocks;
  std::vector<uint32_t> frame;  ///< of calls: what `stack` is asked for; else kNone
  std::vector<Label> labels;
  uint64_t left_out_nodes = 0,
           left_out_bytes = 0;  ///< the smallest; their bytes stay in those above
};

/// `by`: kStack, kModule or kCategory. Beyond `most_nodes` the smallest are left out.
HeldTree held_tree(const HeldSums& sums, const BlockTable& table, const Tables& tables,
                   Dimension by, size_t most_nodes);

/// Members of the header for the numbers of labels.
void add_labels(const std::vector<HeldTree::Label>& labels, nlohmann::ordered_json* header);
/// The columns and the header of a tree's answer.
void add_tree(const HeldTree& tree, Columns* out, nlohmann::ordered_json* header);

}  // namespace gpumemprof
