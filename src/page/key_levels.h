// Live bytes over time by a dimension and a filter, for any window, within milliseconds.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "page/block_keys.h"
#include "page/level_forest.h"

namespace gpumemprof {

/// Built in one pass over a table's changes, with more than kMostKeys keys in two. Of every 128
/// moments the one with the highest level is kept with each key's bytes at it, so that any moment
/// is replayed from at most 255 changes before it. Memory: with all keys 204 bytes per 128 moments,
/// and with a filter about 27 per 32.
class KeyLevels {
 public:
  static constexpr uint32_t kMostKeys = 24;  ///< those that ever held the most; the rest is summed
  static constexpr uint32_t kStride = 128;

  struct Key {
    std::string id, label;
    uint64_t most_bytes = 0;  ///< that it ever held
  };
  /// `taken`: by block, 1 if it matches the filter; null: all. The table must outlive this.
  KeyLevels(const BlockTable& table, BlockKeys keys, const std::vector<uint8_t>* taken);
  /// To be read from an index, by archive().
  explicit KeyLevels(const BlockTable& table) : table_(table) {}

  /// Largest first; the last one is "other" if there are more.
  const std::vector<Key>& keys() const { return keys_; }
  bool has_other() const { return has_other_; }
  uint32_t others() const { return others_; }  ///< how many keys "other" sums

  struct Column {
    uint32_t from = 0, to = 0;  ///< the moments that it stands for
    LevelForest::Range range;
    uint64_t last = 0;
  };
  /// At most `columns` columns over [from, to), which is not empty. A column of 64 moments or more
  /// begins at a multiple of 32, of 512 or more at one of 256.
  std::vector<Column> columns(uint32_t from, uint32_t to, uint32_t columns) const;
  /// Each key's bytes at the moments, which ascend: one row per key.
  std::vector<std::vector<uint64_t>> values(std::span<const uint32_t> moments) const;
  uint64_t at(uint32_t moment) const;

  /// Writes it, or reads it (index_archive.h).
  template <class Archive>
  void archive(Archive& archive);
  /// After archive() has read it: false if it names something that the table lacks.
  bool read();

 private:
  struct KindChange {
    uint32_t moment, block;
    uint8_t from, to;
  };
  static constexpr uint8_t kNoKey = 255;

  struct RawChange;
  std::vector<uint32_t> find_keys(BlockKeys* keys, const std::vector<uint8_t>* taken);
  std::vector<uint64_t> peaks(const GrowingColumn<uint32_t>& raw,
                              const std::vector<RawChange>& changes,
                              const absl::flat_hash_map<uint32_t, uint32_t>& last_of,
                              size_t keys) const;
  void fill(size_t shown);
  void fill_from_table();
  void sort_keys(const BlockKeys& of, const std::vector<uint32_t>& shown);
  uint8_t key_of_end(uint32_t block) const;
  /// The change of the matching bytes at the step to a moment.
  uint64_t step(uint32_t moment) const;
  template <class Gain, class Lose>
  void apply(uint32_t moment, const Gain& gain, const Lose& lose) const;
  const LevelForest& forest() const { return takes_all_ ? table_.levels : forest_; }

  const BlockTable& table_;
  bool takes_all_ = true;
  std::vector<Key> keys_;
  bool has_other_ = false;
  uint32_t others_ = 0;
  std::vector<uint8_t> key_;              // of each block when it is made; kNoKey: not taken
  std::vector<uint8_t> last_key_;         // of those that change theirs, as in changing_
  std::vector<uint32_t> changing_;        // blocks, ascending
  std::vector<KindChange> kind_changes_;  // by moment
  LevelForest forest_;  // of what the filter takes; the table has that of all
  std::vector<uint32_t> kept_;  // moments
  std::vector<uint64_t> held_;  // by kept moment, then key
};

template <class Archive>
void KeyLevels::archive(Archive& archive) {
  archive.each(keys_, [&](Key& key) {
    archive.text(key.id), archive.text(key.label), archive.number(key.most_bytes);
  });
  archive.flag(has_other_), archive.number(others_);
  archive.array(key_), archive.array(last_key_), archive.array(changing_);
  archive.each(kind_changes_, [&](KindChange& change) {
    archive.number(change.moment), archive.number(change.block);
    archive.number(change.from), archive.number(change.to);
  });
  archive.array(kept_), archive.array(held_);
}

}  // namespace gpumemprof
