// Work that takes longer than an answer may, one task after the other in its own thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace gpumemprof {

/// Tasks that have not begun when it ends are dropped.
class Worker {
 public:
  Worker() = default;
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  template <class Work>
  auto begin(Work work) -> std::future<decltype(work())> {
    auto task = std::make_shared<std::packaged_task<decltype(work())()>>(std::move(work));
    auto done = task->get_future();
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    waiting_.push_back([task] { (*task)(); });
    changed_.notify_one();
    return done;
  }

 private:
  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
      if (is_stopping_) return;
      const std::function<void()> next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      next();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool is_stopping_ = false;
  std::thread thread_;
};

/// Of a std::future or std::shared_future.
template <class Future>
bool is_done(const Future& coming) {
  return coming.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace gpumemprof
