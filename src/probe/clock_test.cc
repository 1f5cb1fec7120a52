#include "probe/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "probe/sys.h"

namespace gpumemprof::probe {
namespace {

constexpr uint64_t kASecond = 1'000'000'000;

TEST(EventTime, IsTheKernelsBeforeAndAfterTheCounterIsLearnt) {
  const int writer = 0;
  const uint64_t end =
      monotonic_ns() + 2 * kASecond + kASecond / 2;  // lines are replaced meanwhile
  uint64_t last = 0, out = 0, events = 0;
  while (last < end) {
    const uint64_t before = monotonic_ns(), time = event_time_ns(&writer), after = monotonic_ns();
    ASSERT_GE(time + 50, last);
    last = time;
    events += 1;
    out += time + 50'000 < before || time > after + 50'000;
  }
  EXPECT_EQ(out, 0u) << "of " << events;
}

TEST(EventTime, IsReadOffTheCounterWhereTheKernelDoesThat) {
  std::string source;
  std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource") >> source;
  if (source != "tsc") GTEST_SKIP() << "the kernel's clock source is " << source;
  const int writer = 0;
  for (const uint64_t end = monotonic_ns() + 5 * kASecond;
       !is_read_off_the_counter() && monotonic_ns() < end;) {
    event_time_ns(&writer);
  }
  EXPECT_TRUE(is_read_off_the_counter());
}

TEST(EventTime, IsNotBeforeThatOfAnEventThatItsThreadLearntOf) {
  // The other thread's time comes in a cell that is in no cache of this one, which takes its own at
  // once, without looking. What does not wait for the cell is early by what a miss takes.
  struct alignas(64) Cell {
    std::atomic<uint64_t> time_ns = 0;
  };
  constexpr int kCells = 50'000;
  auto cells = std::make_unique<Cell[]>(kCells);
  const int one = 0, two = 0;
  std::atomic<int> turn = -1;
  std::thread other([&] {
    for (int i = 0; i < kCells; ++i) {
      while (turn.load() < i) std::this_thread::yield();
      cells[i].time_ns.store(event_time_ns(&two), std::memory_order_release);
    }
  });
  int early = 0, learnt_of = 0;
  const uint64_t end = monotonic_ns() + 2 * kASecond;
  for (int i = 0; i < kCells; ++i) {
    turn.store(i);
    for (uint64_t learnt = 0; learnt == 0;) {
      learnt = cells[i].time_ns.load(std::memory_order_acquire);
      const uint64_t own = event_time_ns(&one);
      learnt_of += learnt != 0;
      early += learnt && own < learnt;
    }
    if (monotonic_ns() > end)
      turn.store(kCells), i = kCells;  // a busy machine: what there is will do
  }
  other.join();
  EXPECT_GT(learnt_of, 0);
  EXPECT_EQ(early, 0) << "of " << learnt_of;
}

}  // namespace
}  // namespace gpumemprof::probe
