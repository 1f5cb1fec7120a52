#include "picture/picture_follower.h"

#include <algorithm>
#include <array>

#include "analysis/categories/categories.h"
#include "analysis/driver/driver_memories.h"
#include "trace/live_state_apply.h"

namespace gpumemprof {
namespace {

/// Passes the events of a batch on.
struct CategoryTee : LiveObserver {
  explicit CategoryTee(Categories* to) : to(to) {}
  void on_alloc(size_t index, uint16_t device, const DeviceState& state) {
    to->on_alloc(index, device, state);
  }
  void on_free(size_t index, uint16_t device, const DeviceState& state, const LiveBlock&) {
    to->on_free(index, device, state);
  }
  Categories* to;
};

class PictureFollower final : public FollowObserver {
 public:
  explicit PictureFollower(const Tables& tables) : tables_(tables), categories_(tables) {}

  std::unique_ptr<FollowObserver> copy() const override {
    return std::make_unique<PictureFollower>(*this);
  }
  void begin(const LiveState& before) override { driver_.seed(before, tables_); }
  void apply(const EventBatch& batch, LiveState* state) override {
    categories_.begin_batch(batch, *state);
    if (categories_.is_active()) {
      CategoryTee tee(&categories_);
      state->apply_observed(batch, tee);
    } else {
      state->apply(batch);
    }
    categories_.end_batch();
    driver_.take(batch, tables_);
  }
  FollowedCategories live_now(uint16_t device, const LiveState& state) override {
    FollowedCategories out;
    if (!categories_.is_active()) {
      out.absent_because = "the recording has no modules, phases or tensor roles";
      return out;
    }
    std::array<FollowedCategory, kCategories> sums;
    const DeviceCategories now = categories_.finish(device, state.devices()[device]);
    for (const CategoryHolder& holder : now.at_end) {
      FollowedCategory& sum = sums[static_cast<size_t>(holder.category)];
      sum.bytes += holder.bytes, sum.count += holder.count;
    }
    std::vector<size_t> order;
    for (size_t i = 0; i < kCategories; ++i) {
      if (sums[i].count != 0) order.push_back(i);
    }
    std::ranges::stable_sort(order, std::ranges::greater{}, [&](size_t i) { return sums[i].bytes; });
    std::array<uint32_t, kCategories> place{};
    for (const size_t i : order) {
      place[i] = static_cast<uint32_t>(out.all.size());
      sums[i].name = category_name(static_cast<Category>(i));
      out.all.push_back(std::move(sums[i]));
    }
    for (const CategoryHolder& holder : now.at_end) {
      KindOfStack& kind = out.by_stack[holder.stack];
      if (holder.bytes > kind.bytes)
        kind = {place[static_cast<size_t>(holder.category)], holder.bytes};
    }
    return out;
  }
  std::shared_ptr<const DriverMemories> driver_now() override { return driver_.finish(tables_); }

 private:
  const Tables& tables_;
  Categories categories_;
  DriverGatherer driver_;
};

}  // namespace

std::unique_ptr<FollowObserver> follow_for_pictures(const Tables& tables) {
  return std::make_unique<PictureFollower>(tables);
}

}  // namespace gpumemprof
