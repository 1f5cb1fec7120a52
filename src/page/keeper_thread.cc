#include "page/keeper_thread.h"

#include <algorithm>
#include <utility>

#include "trace/live_state.h"

namespace gpumemprof {

KeeperThread::~KeeperThread() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void KeeperThread::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_over_ || done_ < put_; });
    if (is_over_) return;
    Work& work = slots_[done_ % kSlots];
    lock.unlock();
    for (const Told& told : work.told) keeper_.tell(told.device, told.block, told.what, told.until);
    keeper_.take(work.batch);
    lock.lock();
    ++done_;
    changed_.notify_all();
  }
}

/// Until everything passed on is done: then this thread may use the keeper.
void KeeperThread::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_ == put_; });
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
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return put_ - done_ < kSlots; });
  Work& work = slots_[put_ % kSlots];
  lock.unlock();
  std::swap(work.batch, batch);
  work.told.swap(told_);
  told_.clear();
  lock.lock();
  ++put_;
  changed_.notify_all();
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
