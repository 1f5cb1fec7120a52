// A Keeper in its own thread, so that the analysis need not wait for it.
#pragma once

#include <memory>
#include <vector>

#include "base/working_thread.h"
#include "page/keeper.h"

namespace gpumemprof {

/// Batches are exchanged for old ones and passed on, with the facts about blocks given within them,
/// so everything arrives in a Keeper's order. A query waits until the Keeper has caught up. For one
/// thread, the analysis'.
class KeeperThread final : public BlockKeeper {
 public:
  KeeperThread()
      : thread_([this](Work& work) {
          for (const Told& told : work.told)
            keeper_.tell(told.device, told.block, told.what, told.until);
          keeper_.take(work.batch);
        }) {}

  void begin(const LiveState* before) override;
  void begin_trace(uint16_t device, const AllocatorTrace& trace, const TraceStart& start) override;
  void take(EventBatch& batch) override;
  uint32_t made_by(uint16_t device, uint64_t number) const override {
    return (device < first_.size() ? first_[device] : 0) + static_cast<uint32_t>(number);
  }
  uint32_t block_of(uint16_t device, uint32_t number) const override;
  void tell(uint16_t device, uint32_t block, const CategoryHolder& what, uint64_t until) override {
    told_.push_back({device, block, what, until});
  }
  void tell_rules(uint16_t device, const std::vector<RuledBlock>& allocated,
                  const std::vector<RuledBlock>& earlier) override;
  std::vector<std::unique_ptr<BlockTable>> finish();

 private:
  struct Told {
    uint16_t device;
    uint32_t block;
    CategoryHolder what;
    uint64_t until;
  };
  struct Work {
    EventBatch batch;
    std::vector<Told> told;
  };
  static constexpr size_t kBatches = 4;

  void wait() const;
  void find_first(size_t devices);
  void tell_rest();

  Keeper keeper_;
  std::vector<uint32_t> first_;  // by device: what made_by() its allocation 0 would be
  std::vector<Told> told_;       // since the last batch
  mutable WorkingThread<Work, kBatches> thread_;
};

}  // namespace gpumemprof
