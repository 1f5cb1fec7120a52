#include "page/key_levels.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace gpumemprof {

KeyLevels::KeyLevels(const BlockTable& table, BlockKeys keys, const std::vector<uint8_t>* taken)
    : table_(table), takes_all_(taken == nullptr) {
  const std::vector<uint32_t> shown = find_keys(&keys, taken);
  if (takes_all_ && shown.size() == 1 && kind_changes_.empty() && table_.blocks() != 0)
    fill_from_table();
  else
    fill(shown.size());
  sort_keys(keys, shown);
}

struct KeyLevels::RawChange {
  uint32_t moment, block, from, to;
};

/// The key of each block, and which are shown: those with the highest peaks.
std::vector<uint32_t> KeyLevels::find_keys(BlockKeys* keys, const std::vector<uint8_t>* taken) {
  const uint32_t blocks = table_.blocks();
  if (taken == nullptr && blocks != 0 && keys->is_of_all()) {
    const uint32_t key = keys->first_key(0);
    keys_.push_back({keys->id(key), keys->labels(std::span(&key, 1)).front(), 0});
    key_.resize(blocks, 0);
    return {key};
  }
  GrowingColumn<uint32_t> raw;
  raw.resize(blocks, kNone);
  for (uint32_t b = 0; b < blocks; ++b) {
    if (taken == nullptr || (*taken)[b]) raw[b] = keys->first_key(b);
  }
  std::vector<RawChange> changes;
  for (size_t i = 0; keys->is_by_kind() && i < table_.earlier_kinds.size(); ++i) {
    const EarlierKind& part = table_.earlier_kinds[i];
    if (raw[part.block] == kNone || part.until >= table_.end[part.block]) continue;
    const uint32_t from = keys->key(part.block, part.kind);
    const uint32_t to = keys->key_at(part.block, part.until);
    if (from != to) changes.push_back({part.until, part.block, from, to});
  }
  std::ranges::stable_sort(changes, {}, &RawChange::moment);
  // A block is freed with the key of its last change.
  absl::flat_hash_map<uint32_t, uint32_t> last_of;
  for (const RawChange& change : changes) last_of[change.block] = change.to;

  std::vector<uint32_t> shown(keys->count());
  std::iota(shown.begin(), shown.end(), 0u);
  has_other_ = shown.size() > kMostKeys;
  others_ = has_other_ ? static_cast<uint32_t>(shown.size()) - kMostKeys : 0;
  if (has_other_) {
    const std::vector<uint64_t> most = peaks(raw, changes, last_of, shown.size());
    std::ranges::stable_sort(shown, {}, [&](uint32_t key) { return ~most[key]; });
    shown.resize(kMostKeys);
  }
  std::vector<uint8_t> place(keys->count(), kMostKeys);
  std::vector<std::string> labels = keys->labels(shown);
  for (size_t i = 0; i < shown.size(); ++i) {
    place[shown[i]] = static_cast<uint8_t>(i);
    keys_.push_back({keys->id(shown[i]), std::move(labels[i]), 0});
  }
  if (has_other_) keys_.push_back({"", "other", 0});
  key_.resize(blocks, kNoKey);
  for (uint32_t b = 0; b < blocks; ++b) {
    if (raw[b] != kNone) key_[b] = place[raw[b]];
  }
  for (const RawChange& change : changes)
    kind_changes_.push_back({change.moment, change.block, place[change.from], place[change.to]});
  for (const auto& [block, key] : last_of) changing_.push_back(block);
  std::ranges::sort(changing_);
  for (const uint32_t block : changing_) last_key_.push_back(place[last_of[block]]);
  return shown;
}

/// The most that each key ever held.
std::vector<uint64_t> KeyLevels::peaks(const GrowingColumn<uint32_t>& raw,
                                       const std::vector<RawChange>& changes,
                                       const absl::flat_hash_map<uint32_t, uint32_t>& last_of,
                                       size_t keys) const {
  std::vector<uint64_t> held(keys), most(keys);
  const auto add = [&](uint32_t key, uint64_t bytes) {
    held[key] += bytes;
    most[key] = std::max(most[key], held[key]);
  };
  for (uint32_t b = 0; b < table_.earlier_blocks; ++b) {
    if (raw[b] != kNone && table_.end[b] != 0) add(raw[b], table_.size_bytes[b]);
  }
  const auto end = [&](uint32_t block) {
    if (raw[block] == kNone) return;
    const auto changed = last_of.find(block);
    held[changed == last_of.end() ? raw[block] : changed->second] -= table_.size_bytes[block];
  };
  size_t next = 0;
  for (uint32_t m = 1; m < table_.moments(); ++m) {
    for (; next < changes.size() && changes[next].moment <= m; ++next) {
      const RawChange& change = changes[next];
      held[change.from] -= table_.size_bytes[change.block];
      add(change.to, table_.size_bytes[change.block]);
    }
    const uint32_t block = table_.changed(m);
    if (table_.change(m) == BlockChange::kAlloc) {
      if (const uint32_t replaced = table_.replaced_at(m); replaced != kNone) end(replaced);
      if (raw[block] != kNone) add(raw[block], table_.size_bytes[block]);
    } else if (table_.change(m) == BlockChange::kFree) {
      end(block);
    }
  }
  return most;
}

/// Into the chart's order. `shown`: the number of each key in `of`; "other" stays the last.
void KeyLevels::sort_keys(const BlockKeys& of, const std::vector<uint32_t>& shown) {
  std::vector<uint8_t> order(shown.size());
  std::iota(order.begin(), order.end(), uint8_t{0});
  std::ranges::stable_sort(order, {}, [&](uint8_t key) {
    return std::pair(of.layer(shown[key]), ~keys_[key].most_bytes);
  });
  if (std::ranges::is_sorted(order)) return;
  std::array<uint8_t, 256> place;
  std::iota(place.begin(), place.end(), uint8_t{0});
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<uint8_t>(i);
  const auto sorted = [&](auto values) {
    auto out = std::vector(values.begin(), values.end());
    for (size_t k = 0; k < out.size(); ++k) out[place[k]] = values[k];
    return out;
  };
  keys_ = sorted(keys_);
  for (uint8_t& key : key_) key = place[key];
  for (uint8_t& key : last_key_) key = place[key];
  for (KindChange& change : kind_changes_)
    change.from = place[change.from], change.to = place[change.to];
  for (auto row = held_.begin(); row != held_.end(); row += static_cast<ptrdiff_t>(keys_.size()))
    std::ranges::copy(sorted(std::span(row, keys_.size())), row);
}

uint8_t KeyLevels::key_of_end(uint32_t block) const {
  if (changing_.empty() || !table_.changes_kind(block)) return key_[block];
  const auto found = std::ranges::lower_bound(changing_, block);
  if (found == changing_.end() || *found != block) return key_[block];
  return last_key_[static_cast<size_t>(found - changing_.begin())];
}

/// As BlockTable::added_bytes(), of what is taken.
uint64_t KeyLevels::step(uint32_t moment) const {
  if (takes_all_) return table_.added_bytes(moment);
  const auto bytes = [&](uint32_t block) -> uint64_t {
    return block == kNone || key_[block] == kNoKey ? 0 : table_.size_bytes[block];
  };
  switch (table_.change(moment)) {
    case BlockChange::kAlloc:
      return bytes(table_.changed(moment)) - bytes(table_.replaced_at(moment));
    case BlockChange::kFree:
      return 0 - bytes(table_.changed(moment));
    default:
      break;
  }
  if (moment != 0) return 0;
  uint64_t sum = 0;
  for (uint32_t b = 0; b < table_.earlier_blocks; ++b) {
    if (table_.end[b] != 0) sum += bytes(b);
  }
  return sum;
}

/// The step to a moment: gain(key, bytes) and lose(key, bytes) of what begins and ends with it.
template <class Gain, class Lose>
void KeyLevels::apply(uint32_t moment, const Gain& gain, const Lose& lose) const {
  for (uint32_t b = 0; moment == 0 && b < table_.earlier_blocks; ++b) {
    if (key_[b] != kNoKey && table_.end[b] != 0) gain(key_[b], table_.size_bytes[b]);
  }
  if (!kind_changes_.empty()) {
    auto change = std::ranges::lower_bound(kind_changes_, moment, {}, &KindChange::moment);
    for (; change != kind_changes_.end() && change->moment == moment; ++change) {
      const uint64_t bytes = table_.size_bytes[change->block];
      lose(change->from, bytes), gain(change->to, bytes);
    }
  }
  const auto end = [&](uint32_t block) {
    if (key_[block] != kNoKey) lose(key_of_end(block), table_.size_bytes[block]);
  };
  const uint32_t block = table_.changed(moment);
  switch (table_.change(moment)) {
    case BlockChange::kAlloc:
      if (const uint32_t replaced = table_.replaced_at(moment); replaced != kNone) end(replaced);
      if (key_[block] != kNoKey) gain(key_[block], table_.size_bytes[block]);
      return;
    case BlockChange::kFree:
      return end(block);
    default:
      return;
  }
}

/// The only key has what the table has, of which the highest levels are known.
void KeyLevels::fill_from_table() {
  const auto steps = [this](uint32_t m) { return table_.added_bytes(m); };
  for (uint32_t m = 0; m < table_.moments(); m += kStride) {
    const uint32_t end = std::min(table_.moments(), m + kStride);
    const LevelForest::Range range = table_.levels.range(m, end, steps);
    kept_.push_back(range.most_at), held_.push_back(range.most);
    keys_[0].most_bytes = std::max(keys_[0].most_bytes, range.most);
  }
}

void KeyLevels::fill(size_t shown) {
  const size_t width = keys_.size();
  std::vector<uint64_t> held(width), most_of(width), best(width);
  uint64_t level = 0, most = 0;
  const auto gain = [&](uint8_t key, uint64_t bytes) {
    level += bytes, held[key] += bytes;
    most_of[key] = std::max(most_of[key], held[key]);
  };
  const auto lose = [&](uint8_t key, uint64_t bytes) { level -= bytes, held[key] -= bytes; };
  for (uint32_t m = 0; m < table_.moments(); ++m) {
    apply(m, gain, lose);
    if (!takes_all_) forest_.add(level);
    if (m % kStride == 0 || level > most) {
      most = level, best = held;
      if (m % kStride == 0) kept_.push_back(m);
      kept_.back() = m;
    }
    if (m % kStride == kStride - 1 || m + 1 == table_.moments())
      held_.insert(held_.end(), best.begin(), best.end());
  }
  for (size_t key = 0; key < shown; ++key) keys_[key].most_bytes = most_of[key];
  forest_.finish();
}

bool KeyLevels::read() {
  const size_t blocks = table_.blocks(), keys = keys_.size();
  const auto is_key = [keys](uint8_t key) { return key < keys || key == kNoKey; };
  const auto is_block = [blocks](uint32_t block) { return block < blocks; };
  // A table without blocks has one key that no block has.
  return
      keys <= kMostKeys + 1 && (!has_other_ || keys == kMostKeys + 1) && takes_all_ &&
         key_.size() == blocks && std::ranges::all_of(key_, is_key) &&
         last_key_.size() == changing_.size() && std::ranges::all_of(last_key_, is_key) &&
         std::ranges::is_sorted(changing_) && std::ranges::all_of(changing_, is_block) &&
         std::ranges::is_sorted(kind_changes_, {}, &KindChange::moment) &&
         std::ranges::all_of(kind_changes_,
                             [&](const KindChange& change) {
                               return is_block(change.block) && change.from < keys &&
                                      change.to < keys;
                             }) &&
         kept_.size() == (table_.moments() + kStride - 1) / kStride &&
         std::ranges::is_sorted(kept_) && kept_.back() < table_.moments() &&
         held_.size() == kept_.size() * keys;
}

std::vector<KeyLevels::Column> KeyLevels::columns(uint32_t from, uint32_t to,
                                                  uint32_t count) const {
  const auto steps = [this](uint32_t m) { return step(m); };
  const uint64_t width = (to - from) / count;
  const uint32_t multiple = width >= 2 * kStride              ? kStride
                            : width >= 2 * LevelForest::kLeaf ? LevelForest::kLeaf
                                                              : 1;
  std::vector<Column> out;
  uint32_t begin = from;
  for (uint32_t i = 1; i <= count; ++i) {
    auto end = static_cast<uint32_t>(from + (uint64_t{to} - from) * i / count);
    if (i == count)
      end = to;
    else
      end = end / multiple * multiple;
    if (end <= begin) continue;
    out.push_back({begin, end, forest().range(begin, end, steps), forest().at(end - 1, steps)});
    begin = end;
  }
  return out;
}

uint64_t KeyLevels::at(uint32_t moment) const {
  return forest().at(moment, [this](uint32_t m) { return step(m); });
}

std::vector<std::vector<uint64_t>> KeyLevels::values(std::span<const uint32_t> moments) const {
  const size_t width = keys_.size();
  std::vector<std::vector<uint64_t>> rows(width, std::vector<uint64_t>(moments.size()));
  std::vector<uint64_t> held(width);
  const auto gain = [&](uint8_t key, uint64_t bytes) { held[key] += bytes; };
  const auto lose = [&](uint8_t key, uint64_t bytes) { held[key] -= bytes; };
  uint32_t at = kNone;  // the moment of `held`
  for (size_t i = 0; i < moments.size(); ++i) {
    const uint32_t moment = moments[i];
    auto kept = std::ranges::upper_bound(kept_, moment);
    const uint32_t nearest = kept == kept_.begin() ? kNone : *(kept - 1);
    if (at == kNone || at > moment || (nearest != kNone && nearest > at)) {
      if (nearest == kNone) {
        std::ranges::fill(held, 0);
        apply(0, gain, lose);
        at = 0;
      } else {
        const size_t index = static_cast<size_t>(kept - kept_.begin()) - 1;
        std::copy_n(held_.begin() + static_cast<ptrdiff_t>(index * width), width, held.begin());
        at = nearest;
      }
    }
    while (at < moment) apply(++at, gain, lose);
    for (size_t k = 0; k < width; ++k) rows[k][i] = held[k];
  }
  return rows;
}

}  // namespace gpumemprof
