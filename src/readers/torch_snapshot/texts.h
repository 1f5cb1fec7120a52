// The distinct texts of a file, kept once.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace gpumemprof::torch_snapshot {

/// Ids count up from 0, the words of keys.h first. Views stay valid as long as the table.
class Texts {
 public:
  Texts();

  /// The id of `text`. `text` must be followed by 8 readable bytes.
  uint32_t intern(std::string_view text) {
    if (text.size() > 8) return intern_long(text);
    uint64_t bytes;
    __builtin_memcpy(&bytes, text.data(), 8);
    bytes = text.empty() ? 0 : bytes << (64 - 8 * text.size());
    const uint64_t hash = (bytes + text.size()) * 0x9e3779b97f4a7c15u;
    Recent& recent = recent_[hash >> 56];
    if (recent.bytes == bytes && recent.size == text.size()) return recent.id;
    recent = {bytes, static_cast<uint32_t>(text.size()), intern_long(text)};
    return recent.id;
  }
  /// The same without the demand on what follows.
  uint32_t intern_long(std::string_view text);

  std::string_view get(uint32_t id) const { return texts_[id]; }
  uint32_t size() const { return static_cast<uint32_t>(texts_.size()); }
  /// Memory that the texts take, tables included.
  uint64_t bytes() const { return bytes_; }

 private:
  // "N/A", "" and other short texts are written anew for every event: found without a hash table.
  struct Recent {
    uint64_t bytes = 0;
    uint32_t size = UINT32_MAX;
    uint32_t id = 0;
  };

  std::string_view keep(std::string_view text);

  std::array<Recent, 256> recent_;
  std::vector<std::string_view> texts_;
  absl::flat_hash_map<std::string_view, uint32_t> ids_;
  std::vector<std::unique_ptr<char[]>> pages_;
  size_t page_left_ = 0;
  char* page_at_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace gpumemprof::torch_snapshot
