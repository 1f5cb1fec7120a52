#include "readers/torch_snapshot/stacks.h"

#include <algorithm>
#include <bit>

namespace gpumemprof::torch_snapshot {
namespace {

// Two frames a step, in two chains that do not wait for each other.
uint64_t hash_of(std::span<const uint32_t> frames, uint64_t seed) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
  uint64_t a = frames.size() ^ seed, b = seed;
  size_t i = 0;
  for (; i + 4 <= frames.size(); i += 4) {
    a = (std::rotl(a, 23) ^ (uint64_t{frames[i]} << 32 | frames[i + 1])) * kOdd;
    b = (std::rotl(b, 29) ^ (uint64_t{frames[i + 2]} << 32 | frames[i + 3])) * kOdd;
  }
  for (; i < frames.size(); ++i) a = (std::rotl(a, 23) ^ frames[i]) * kOdd;
  return (a ^ std::rotl(b, 31)) * kOdd;  // its upper half is the better one
}

}  // namespace

Stacks::Stacks(StackTable& table)
    : table_(table), seed_(reinterpret_cast<uintptr_t>(this) * 0x9e3779b97f4a7c15u) {}

bool Stacks::is_stack_of(uint32_t stack, std::span<const uint32_t> frames) const {
  for (uint32_t frame : frames) {
    const StackTable::Node& node = table_.node(stack);
    if (stack == 0 || node.frame != frame) return false;
    stack = node.parent;
  }
  return stack == 0;
}

uint32_t Stacks::intern(std::span<const uint32_t> frames) {
  if (frames.empty()) return 0;
  if (is_near_last(frames)) return push(frames);
  const uint64_t hash = hash_of(frames, seed_);
  const auto is_it = [&](uint32_t stack) { return is_stack_of(stack, frames); };
  if (const auto known = known_.find(hash, is_it)) return *known;
  return known_.find_or_put(hash, push(frames), is_it);
}

/// Of few frames, all but the innermost those of the list before: then to push it is one look-up,
/// as to find it would be, and it need not be kept.
bool Stacks::is_near_last(std::span<const uint32_t> frames) const {
  constexpr size_t kFew = 8;
  if (frames.size() > kFew || last_.size() + 1 < frames.size()) return false;
  for (size_t i = 0; i + 1 < frames.size(); ++i) {
    if (last_[i].frame != frames[frames.size() - 1 - i]) return false;
  }
  return true;
}

/// Most of a deep stack is that of one of the last two.
uint32_t Stacks::push(std::span<const uint32_t> frames) {
  const auto same_as = [&](const std::vector<Pushed>& list) {
    size_t same = 0;
    while (same < std::min(list.size(), frames.size()) &&
           list[same].frame == frames[frames.size() - 1 - same]) {
      ++same;
    }
    return same;
  };
  last_.swap(before_last_);
  size_t same = same_as(last_);
  if (const size_t other = same_as(before_last_); other > same) {
    last_.swap(before_last_);
    same = other;
  }
  last_.resize(same);
  uint32_t stack = same == 0 ? 0 : last_.back().stack;
  for (size_t i = frames.size() - same; i-- > 0;) {
    stack = table_.push(stack, frames[i]);
    last_.push_back({frames[i], stack});
  }
  return stack;
}

void Stacks::frames_of(uint32_t stack, std::vector<uint32_t>* frames) const {
  for (; stack != 0; stack = table_.node(stack).parent) {
    frames->push_back(table_.node(stack).frame);
  }
}

}  // namespace gpumemprof::torch_snapshot
