#include "picture/picture_follower.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "analysis/categories/categories.h"
#include "analysis/driver/driver_memories.h"
#include "picture/growth.h"
#include "trace/followed_allocator.h"
#include "trace/live_state_apply.h"

namespace gpumemprof {
namespace {

/// How what is live grows, by device.
class Growths {
 public:
  explicit Growths(const Tables& tables) : tables_(tables) {}
  /// Of the recording read anew: a device may have another id.
  Growths anew() const {
    Growths growths(tables_);
    growths.before_ = all_;
    return growths;
  }
  LiveGrowth& of(uint16_t device) {
    while (all_.size() <= device) {
      const Device& next = tables_.devices[all_.size()];
      const auto known = std::ranges::find(before_, next, &OfDevice::first);
      all_.emplace_back(next, known == before_.end() ? LiveGrowth{} : known->second);
    }
    return all_[device].second;
  }
  void end_step(double seconds) {
    for (auto& [device, growth] : all_) growth.end_step(seconds);
  }

 private:
  using OfDevice = std::pair<Device, LiveGrowth>;
  const Tables& tables_;
  std::vector<OfDevice> all_, before_;
};

/// Passes the events of a batch on.
struct Tee : LiveObserver {
  void on_alloc(size_t index, uint16_t device, const DeviceState& state) {
    if (categories) categories->on_alloc(index, device, state);
    grow(index, device, state);
  }
  void on_free(size_t index, uint16_t device, const DeviceState& state, const LiveBlock&) {
    if (categories) categories->on_free(index, device, state);
    grow(index, device, state);
  }
  void grow(size_t index, uint16_t device, const DeviceState& state) {
    end_steps(index);
    growths->of(device).add(static_cast<double>(batch->time_ns[index]) * 1e-9, state.live_bytes);
  }
  void end_steps(size_t before_event) {
    for (; mark < batch->marks.size() && batch->marks[mark].before_event <= before_event; ++mark) {
      if (batch->marks[mark].kind == MarkKind::kStep)
        growths->end_step(static_cast<double>(batch->marks[mark].time_ns) * 1e-9);
    }
  }
  const EventBatch* batch;
  size_t mark = 0;
  Categories* categories;  // null: the recording tells none
  Growths* growths;
};

class PictureFollower final : public FollowObserver {
 public:
  explicit PictureFollower(const Tables& tables) : PictureFollower(tables, Growths(tables)) {}
  PictureFollower(const Tables& tables, Growths growths)
      : tables_(tables), categories_(tables), growths_(std::move(growths)) {}

  std::unique_ptr<FollowObserver> copy() const override {
    return std::make_unique<PictureFollower>(*this);
  }
  std::unique_ptr<FollowObserver> anew() const override {
    return std::make_unique<PictureFollower>(tables_, growths_.anew());
  }
  void begin(const LiveState& before) override {
    driver_.seed(before, tables_);
    // On which stream they were made went with their events.
    for (size_t device = 0; device < before.devices().size(); ++device) {
      before.devices()[device].blocks.each_number([&](uint64_t address, uint32_t) {
        streams_[{static_cast<uint16_t>(device), address}] = std::nullopt;
      });
    }
  }
  void apply(const EventBatch& batch, LiveState* state) override {
    take_streams(batch);
    categories_.begin_batch(batch, *state);
    Tee tee;
    tee.batch = &batch, tee.growths = &growths_;
    tee.categories = categories_.is_active() ? &categories_ : nullptr;
    state->apply_observed(batch, tee);
    tee.end_steps(batch.size());
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
  std::vector<FollowedHeld> held_now(uint16_t device, const LiveState& state) override {
    using Key = std::tuple<uint32_t, std::string_view, std::optional<int64_t>>;
    const FollowedAllocator* allocator = allocator_of(tables_, tables_.devices[device]);
    const bool has_streams = allocator != nullptr && allocator->is_followed;
    std::map<Key, std::pair<uint64_t, uint64_t>> sums;
    const auto add = [&](uint64_t address, uint32_t stack, std::string_view category,
                         uint64_t bytes) {
      auto& [sum, count] = sums[{stack, category, has_streams ? stream_of(device, address)
                                                              : std::nullopt}];
      sum += bytes, ++count;
    };
    if (categories_.is_active()) {
      categories_.each_live(device, [&](uint64_t address, const CategoryHolder& block) {
        add(address, block.stack, category_name(block.category), block.bytes);
      });
    } else {
      state.devices()[device].blocks.each([&](uint64_t address, const LiveBlock& block) {
        add(address, block.stack, {}, block.size_bytes);
      });
    }
    std::vector<FollowedHeld> held;
    for (const auto& [key, sum] : sums) {
      const auto& [stack, category, stream] = key;
      held.push_back({stack, category, stream, sum.first, sum.second});
    }
    std::ranges::stable_sort(held, std::ranges::greater{}, &FollowedHeld::bytes);
    return held;
  }
  FollowedGrowth growth_now(uint16_t device, const LiveState& state, int64_t now_ns) override {
    LiveGrowth& growth = growths_.of(device);
    growth.add(static_cast<double>(now_ns) * 1e-9, state.devices()[device].live_bytes);
    return growth.judge();
  }
  std::shared_ptr<const DriverMemories> driver_now() override { return driver_.finish(tables_); }

 private:
  /// Blocks of the default stream, which most are, have no entry.
  void take_streams(const EventBatch& batch) {
    size_t detail = 0;
    for (size_t i = 0; i < batch.size() && !(streams_.empty() && batch.details.empty()); ++i) {
      while (detail < batch.details.size() && batch.details[detail].event < i) ++detail;
      const bool has_detail = detail < batch.details.size() && batch.details[detail].event == i;
      const Block block{batch.device[i], batch.address[i]};
      if (is_free(batch.action[i])) streams_.erase(block);
      if (batch.action[i] != Action::kAlloc) continue;
      if (has_detail && batch.details[detail].stream != 0)
        streams_[block] = batch.details[detail].stream;
      else
        streams_.erase(block);
    }
  }
  std::optional<int64_t> stream_of(uint16_t device, uint64_t address) const {
    const auto known = streams_.find(Block{device, address});
    return known == streams_.end() ? std::optional<int64_t>(0) : known->second;
  }

  using Block = std::pair<uint16_t, uint64_t>;  // device and address
  const Tables& tables_;
  absl::flat_hash_map<Block, std::optional<int64_t>> streams_;
  Categories categories_;
  Growths growths_;
  DriverGatherer driver_;
};

}  // namespace

std::unique_ptr<FollowObserver> follow_for_pictures(const Tables& tables) {
  return std::make_unique<PictureFollower>(tables);
}

}  // namespace gpumemprof
