// The tables of all devices of a run, filled while analyze() reads it.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/categories/block_keeper.h"
#include "base/large_pages.h"
#include "base/prefetch.h"
#include "page/block_table.h"

namespace gpumemprof {

/// One device's table, and what is needed only while it is filled.
class TableFiller {
 public:
  BlockTable table;
  bool is_told = false;  ///< of any block it is known what it is

  void adopt(const LiveState& before, uint16_t device);
  void adopt(const AllocatorTrace& trace, const TraceStart& start);
  /// What goes with an event; null where it has none.
  struct Beside {
    const AllocatorDetail* detail = nullptr;
    const DeviceTotals* totals = nullptr;
    const RequestedSize* requested = nullptr;
  };
  void take(const EventBatch& batch, size_t i, const Beside& beside);
  /// An event will be taken soon: `near` sooner than `far`.
  void expect(const EventBatch& batch, size_t near, size_t far) const {
    if (const Live* live = live_of(batch, near)) prefetch_line(&table.end[live->block]);
    if (batch.block[far] < live_.size()) prefetch_line(&live_[batch.block[far]]);
  }
  void end_batch(const EventBatch& batch);
  uint32_t made_by(uint64_t number) const {
    return static_cast<uint32_t>(table.earlier_blocks + (number - allocations_before_));
  }
  uint32_t block_of(uint32_t number) const;
  void tell(uint32_t block, const CategoryHolder& what, uint64_t until);
  void tell_rules(const std::vector<RuledBlock>& allocated, const std::vector<RuledBlock>& earlier);
  void finish();

 private:
  struct Told {
    uint64_t until;
    uint32_t block, kind;
  };
  struct Requested {
    uint32_t block, moment;
  };
  struct Live {
    uint64_t size_bytes = 0;
    uint32_t block = kNone;  // kNone: none has the number
  };
  void add_rounding(uint32_t block, uint64_t requested_bytes, uint32_t moment);
  void end_rounding(uint32_t block, uint32_t moment);
  void open();
  uint32_t add_block(uint64_t address, uint64_t size_bytes, uint32_t start, uint32_t stack,
                     uint32_t thread);
  /// Of the block that an event ends or asks to end; null: none.
  const Live* live_of(const EventBatch& batch, size_t i) const {
    const uint32_t number = batch.block[i];
    if (number >= live_.size() || live_[number].block == kNone) return nullptr;
    return &live_[number];
  }
  Live& live_at(uint32_t number);
  void allocate(const EventBatch& batch, size_t i, uint32_t moment, const AllocatorDetail* detail);
  void free(const EventBatch& batch, size_t i, uint32_t moment);
  void take_other(const EventBatch& batch, size_t i, uint32_t moment,
                  const AllocatorDetail* detail);
  void set_stream(uint32_t block, int64_t stream);
  void end_requested();
  void end_waiting(uint32_t block, uint32_t moment);
  void take_end();
  uint32_t kind_of(const CategoryHolder& what);
  void take_told(const EventBatch* batch);

  const AllocatorTrace* trace_ = nullptr;  // of a snapshot
  uint64_t allocations_before_ = 0;
  uint64_t live_bytes_ = 0, reserved_bytes_ = 0;
  bool has_totals_ = false;
  std::vector<Live, LargePages<Live>> live_;  // by number
  std::vector<uint32_t> own_events_;  // of the batch: those of the device, by index in it
  uint32_t moments_before_batch_ = 1;
  std::vector<Told> told_;  // within the batch
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, uint32_t> kinds_;
  absl::flat_hash_map<uint32_t, uint32_t> waiting_;  // by block: since when its free waits
  uint64_t waiting_bytes_ = 0;
  absl::flat_hash_map<uint32_t, uint64_t> rounding_;  // by live block: what was added to its size
  uint64_t rounding_bytes_ = 0;
  std::optional<Requested> just_requested_;
};

class Keeper final : public BlockKeeper {
 public:
  void begin(const LiveState* before) override;
  void begin_trace(uint16_t device, const AllocatorTrace& trace, const TraceStart& start) override;
  void take(EventBatch& batch) override;
  uint32_t made_by(uint16_t device, uint64_t number) const override;
  uint32_t block_of(uint16_t device, uint32_t number) const override;
  void tell(uint16_t device, uint32_t block, const CategoryHolder& what, uint64_t until) override;
  void tell_rules(uint16_t device, const std::vector<RuledBlock>& allocated,
                  const std::vector<RuledBlock>& earlier) override;

  /// Once, after the analysis: by index of the device; null if it had neither events nor blocks.
  std::vector<std::unique_ptr<BlockTable>> finish();

 private:
  TableFiller& filler(uint16_t device);

  std::vector<std::unique_ptr<TableFiller>> devices_;
};

}  // namespace gpumemprof
