#include "run/housekeeper.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace gpumemprof {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kHousekeepingPeriod = milliseconds(500);
constexpr auto kKeepUpPeriod = milliseconds(100);
constexpr auto kFirstLook = milliseconds(100);
constexpr auto kLookPeriod = milliseconds(1000);
// On a machine with thousands of processes a look costs more; it stays below 2 % of one CPU.
constexpr int kLookCostShare = 50;

/// Of this thread. What it waits for a CPU on a busy machine costs nobody anything.
milliseconds cpu_time() {
  timespec t = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) +
         std::chrono::duration_cast<milliseconds>(std::chrono::nanoseconds(t.tv_nsec));
}

}  // namespace

Housekeeper::Housekeeper(FolderSealer* sealer, DescendantWatcher* watcher,
                         WatchedProcesses* processes, bool keep_up)
    : sealer_(sealer), watcher_(watcher), processes_(processes), keep_up_(keep_up), thread_([this] {
        work();
      }) {}

void Housekeeper::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    // Where all CPUs are taken, the step it is in would end late. Refused without privileges.
    sched_param normal = {};
    if (thread_id_ != 0) sched_setscheduler(thread_id_, SCHED_OTHER, &normal);
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Housekeeper::work() {
  if (!keep_up_) {
    sched_param idle = {};
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 19);
    sched_setscheduler(0, SCHED_IDLE, &idle);
  }
  const auto period = keep_up_ ? kKeepUpPeriod : kHousekeepingPeriod;
  auto next_seal = Clock::now() + period;
  auto next_look = Clock::now() + kFirstLook;
  auto look_period =
      kFirstLook;  // doubles: what lives shortly is seen too, what lives long costs little
  std::unique_lock lock(mutex_);
  thread_id_ = static_cast<pid_t>(syscall(SYS_gettid));
  while (!wake_.wait_until(lock, std::min(next_seal, next_look), [this] { return stopping_; })) {
    lock.unlock();
    auto now = Clock::now();
    if (now >= next_seal) {
      (void)sealer_->step();  // finish() says what is wrong, if it still is
      next_seal = Clock::now() + period;
    }
    if (now >= next_look) {
      const auto before = cpu_time();
      watcher_->look();
      processes_->set(watcher_->running(), watcher_->gpu_seen());
      const auto cost = cpu_time() - before;
      look_period = std::min(look_period * 2, kLookPeriod);
      next_look = Clock::now() + std::max(look_period, cost * kLookCostShare);
    }
    lock.lock();
  }
}

}  // namespace gpumemprof
