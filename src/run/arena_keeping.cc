#include "run/arena_keeping.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace gpumemprof {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kKeepingPeriod = std::chrono::milliseconds(100);
constexpr auto kPatience = std::chrono::seconds(20);  // with who seals a file; then it is the keeper's
// With thousands of processes a round costs more; it stays below 2 % of one CPU.
constexpr int kCostShare = 50;

}  // namespace

Result<std::unique_ptr<ArenaKeeping>> ArenaKeeping::start(const std::string& folder,
                                                          const std::string& meta_path) {
  auto arena = Arena::make();
  if (!arena) return std::unexpected(arena.error());
  auto keeper = Keeper::start(*arena, folder, meta_path);
  if (!keeper) return std::unexpected(keeper.error());
  return std::unique_ptr<ArenaKeeping>(
      new ArenaKeeping(std::move(*arena), std::move(*keeper), folder));
}

std::string ArenaKeeping::address() const {
  const std::string fd = std::to_string(arena_->fd());
  return std::to_string(arena_->id()) + '.' + std::to_string(keeper_.pid()) + '.' + fd + '.' +
         std::to_string(getpid()) + '.' + fd;
}

void ArenaKeeping::begin(pid_t program) {
  keeper_.watch(program);
  thread_ = std::thread([this] { work(); });
}

void ArenaKeeping::work() {
  auto next = Clock::now() + kKeepingPeriod;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_until(lock, next, [this] { return stopping_; })) {
    lock.unlock();
    const auto begin = Clock::now();
    mirror_.round();
    const auto end = Clock::now();
    next = end + std::max<Clock::duration>(kKeepingPeriod, (end - begin) * kCostShare);
    lock.lock();
  }
}

void ArenaKeeping::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ArenaKeeping::finish() {
  stop();
  const auto end = Clock::now() + kPatience;
  for (mirror_.round(); mirror_.being_sealed() != 0 && Clock::now() < end; mirror_.round())
    std::this_thread::sleep_for(kKeepingPeriod / 5);
  if (mirror_.waiting() != 0) mirror_.round(true);
}

std::vector<NotRecorded> ArenaKeeping::take_not_recorded() {
  std::vector<UnrecordedProcess> all = mirror_.unrecorded().take();
  all.insert(all.end(), mirror_.given_up().begin(), mirror_.given_up().end());
  return not_recorded(all);
}

void ArenaKeeping::release() { keeper_.release(!mirror_.leave()); }

}  // namespace gpumemprof
