// Who keeps every block of a run beside an analysis, so that any moment can be looked at
// afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/event.h"

namespace gpumemprof {

class LiveState;
struct AllocatorTrace;
struct CategoryHolder;
struct RuledBlock;
struct TraceStart;

/// What analyze() tells of blocks while it reads. Each kAlloc of a device makes one block, whatever
/// was live at its address: the device and the number of the allocation name it. A source may be
/// read twice, then all is told again.
class BlockKeeper {
 public:
  virtual ~BlockKeeper() = default;
  /// Before the first event of a source, which may be read again; `before`: what is live by then,
  /// may be null.
  virtual void begin(const LiveState* before) = 0;
  /// Before the first event of one device of a snapshot. Both outlive the device's events.
  virtual void begin_trace(uint16_t device, const AllocatorTrace& trace,
                           const TraceStart& start) = 0;
  /// After the events of a batch were looked at, which has the numbers of their blocks: its own, or
  /// LiveState's. What is in `batch` then is of no use.
  virtual void take(EventBatch& batch) = 0;

  /// The block that allocation `number` of a device makes, counted as DeviceFigures::actions are.
  virtual uint32_t made_by(uint16_t device, uint64_t number) const = 0;
  /// The block that had this number before the batch that is being looked at.
  virtual uint32_t block_of(uint16_t device, uint32_t number) const = 0;
  /// `block` was `what` until right before event number `until` of the source; kToItsEnd: then on.
  virtual void tell(uint16_t device, uint32_t block, const CategoryHolder& what,
                    uint64_t until) = 0;
  static constexpr uint64_t kToItsEnd = UINT64_MAX;
  /// What rules make of a device's blocks where the program told nothing: of those that it
  /// allocates, in this order, and of those that were live before, as TraceStart::blocks. Both
  /// are empty where nothing is known.
  virtual void tell_rules(uint16_t device, const std::vector<RuledBlock>& allocated,
                          const std::vector<RuledBlock>& earlier) = 0;
};

}  // namespace gpumemprof
