#include "page/keeper_thread.h"

#include <algorithm>
#include <utility>

#include "trace/live_state.h"

namespace gpumemprof {

/// Until everything passed on is done: then this thread may use the keeper.
void KeeperThread::wait() const {
  while (thread_.size() != 0) thread_.take();
}

void KeeperThread::tell_rest() {
  wait();
  for (const Told& told : std::exchange(told_, {}))
    keeper_.tell(told.device, told.block, told.what, told.until);
}

/// Known before the first batch, and changed by none.
void KeeperThread::find_first(size_t devices) {
  first_.resize(std::max(first_.size(), devices));
  for (size_t d = 0; d < first_.size(); ++d)
    first_[d] = keeper_.made_by(static_cast<uint16_t>(d), 0);
}

void KeeperThread::begin(const LiveState* before) {
  wait();
  told_.clear();
  keeper_.begin(before);
  first_.clear();
  find_first(before ? before->devices().size() : 0);
}

void KeeperThread::begin_trace(uint16_t device, const AllocatorTrace& trace,
                               const TraceStart& start) {
  tell_rest();
  keeper_.begin_trace(device, trace, start);
  find_first(size_t{device} + 1);
}

void KeeperThread::take(EventBatch& batch) {
  if (!thread_.has_room()) thread_.take();
  Work& work = thread_.next();
  std::swap(work.batch, batch);
  work.told.swap(told_);
  told_.clear();
  thread_.give();
}

uint32_t KeeperThread::block_of(uint16_t device, uint32_t number) const {
  wait();
  return keeper_.block_of(device, number);
}

void KeeperThread::tell_rules(uint16_t device, const std::vector<RuledBlock>& allocated,
                              const std::vector<RuledBlock>& earlier) {
  tell_rest();
  keeper_.tell_rules(device, allocated, earlier);
}

std::vector<std::unique_ptr<BlockTable>> KeeperThread::finish() {
  tell_rest();
  return keeper_.finish();
}

}  // namespace gpumemprof
