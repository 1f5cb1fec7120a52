// A thread that works through what it is given, in order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace gpumemprof {

/// At most kWorks are given and not taken back. A Work is reused, with what its last use left in
/// it. All calls are for one thread, the giver's; `work` runs in the thread, for one after another.
template <class Work, size_t kWorks>
class WorkingThread {
 public:
  /// Throws std::system_error where the system has no thread left.
  explicit WorkingThread(std::function<void(Work&)> work)
      : work_(std::move(work)), thread_([this] { run(); }) {}
  /// What was given and is not begun is left out.
  ~WorkingThread() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  WorkingThread(const WorkingThread&) = delete;

  size_t size() const { return given_ - taken_; }
  bool has_room() const { return size() < kWorks; }
  /// What give() gives. Only where there is room.
  Work& next() { return slots_[given_ % kWorks].work; }
  void give() {
    {
      const std::lock_guard lock(mutex_);
      ++given_;
    }
    changed_.notify_all();
  }
  /// The oldest, done; waits for it. Valid until it is next() again. Throws what its work threw.
  Work& take() {
    Slot& slot = slots_[taken_ % kWorks];
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return done_ > taken_; });
    }
    ++taken_;
    if (slot.thrown) std::rethrow_exception(std::exchange(slot.thrown, nullptr));
    return slot.work;
  }

 private:
  struct Slot {
    Work work;
    std::exception_ptr thrown;
  };

  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_over_ || done_ < given_; });
      if (is_over_) return;
      Slot& slot = slots_[done_ % kWorks];
      lock.unlock();
      try {
        work_(slot.work);
      } catch (...) {
        slot.thrown = std::current_exception();
      }
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  const std::function<void(Work&)> work_;
  Slot slots_[kWorks];
  size_t given_ = 0, done_ = 0, taken_ = 0;  // so far
  bool is_over_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;  // last: all else is there when it begins
};

}  // namespace gpumemprof
