#include "readers/torch_snapshot/texts.h"

#include <algorithm>
#include <cstring>

#include "readers/torch_snapshot/keys.h"

namespace gpumemprof::torch_snapshot {
namespace {

constexpr size_t kPageBytes = 64 << 10;
// A view, its entry in the hash table at its usual load, and what growing them costs for a moment.
constexpr uint64_t kBytesPerText = 100;

}  // namespace

Texts::Texts() {
  for (std::string_view word : all_words()) intern_long(word);
}

std::string_view Texts::keep(std::string_view text) {
  if (text.size() > page_left_) {
    const size_t size = std::max(kPageBytes, text.size());
    page_at_ = pages_.emplace_back(std::make_unique_for_overwrite<char[]>(size)).get();
    page_left_ = size;
  }
  std::memcpy(page_at_, text.data(), text.size());
  const std::string_view kept(page_at_, text.size());
  page_at_ += text.size();
  page_left_ -= text.size();
  return kept;
}

uint32_t Texts::intern_long(std::string_view text) {
  if (auto known = ids_.find(text); known != ids_.end()) return known->second;
  const uint32_t id = static_cast<uint32_t>(texts_.size());
  texts_.push_back(text.empty() ? std::string_view() : keep(text));
  ids_.emplace(texts_.back(), id);
  bytes_ += text.size() + kBytesPerText;
  return id;
}

}  // namespace gpumemprof::torch_snapshot
