#include "analysis/categories/category_ledger.h"

#include <algorithm>
#include <tuple>

namespace gpumemprof {
namespace {

constexpr uint8_t kByRule = 15 << 4;
static_assert(kCategories <= 16 && kWhyUnknown <= 15);

}  // namespace

CategoryBytes DeviceCategories::bytes_at_peak() const {
  CategoryBytes sums{};
  for (const CategoryHolder& holder : at_peak) {
    sums[static_cast<size_t>(holder.category)] += static_cast<int64_t>(holder.bytes);
  }
  return sums;
}

KnownAs KnownAs::told(const Verdict& verdict, uint32_t name) {
  const auto category = static_cast<uint8_t>(verdict.category);
  return {verdict.category,
          static_cast<uint8_t>(category | static_cast<unsigned>(verdict.why) << 4), name};
}

KnownAs KnownAs::by_rule(SnapshotRule rule, WorkPhase phase) {
  return {facts_of(rule).category, kByRule,
          static_cast<uint32_t>(rule) | static_cast<uint32_t>(phase) << 8};
}

CategoryHolder KnownAs::holder_of(const Key& key) {
  CategoryHolder holder{.stack = static_cast<uint32_t>(key.first >> 8),
                        .category = static_cast<Category>(key.first & 15),
                        .why = static_cast<WhyUnknown>(key.first >> 4 & 15),
                        .name = key.second};
  if ((key.first & kByRule) == kByRule) {
    holder.rule = static_cast<uint8_t>(key.second);
    holder.phase = static_cast<WorkPhase>(key.second >> 8);
    holder.category = facts_of(static_cast<SnapshotRule>(holder.rule)).category;
    holder.why = WhyUnknown::kNone, holder.name = 0;
  }
  return holder;
}

std::vector<CategoryHolder> HolderSums::holders(uint64_t epoch) const {
  std::vector<CategoryHolder> list;
  for (const auto& [key, sum] : sums_) {
    if (sum.epoch != epoch || sum.count == 0) continue;
    CategoryHolder& holder = list.emplace_back(KnownAs::holder_of(key));
    holder.bytes = sum.bytes, holder.count = sum.count;
  }
  std::ranges::sort(list, [](const CategoryHolder& a, const CategoryHolder& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return std::tie(a.stack, a.rule, a.category, a.why, a.name, a.phase) <
           std::tie(b.stack, b.rule, b.category, b.why, b.name, b.phase);
  });
  return list;
}

uint64_t sum_of_bytes(const std::vector<CategoryHolder>& holders) {
  uint64_t sum = 0;
  for (const CategoryHolder& holder : holders) sum += holder.bytes;
  return sum;
}

}  // namespace gpumemprof
