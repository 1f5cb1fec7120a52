#include "probe/counters.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/sanitizers_for_tests.h"
#include "probe/recorder.h"

namespace gpumemprof::probe {
namespace {

/// A device that no other test uses.
Device fresh_device() {
  static int8_t index = 0;
  EXPECT_TRUE(begin_counting());
  return {40, index++};
}

const DeviceCounters& of(Device device) { return g_control->devices[device_slot(device, true)]; }

uint64_t fresh_addresses(uint64_t count) {
  static uint64_t next = 0x10000000000;
  next += count * 64;
  return next - count * 64;
}

TEST(Counters, LiveIsWhatWasAllocatedAndNotFreed) {
  Device device = fresh_device();
  uint64_t at = fresh_addresses(3);
  count_alloc(at, 100, device);
  count_alloc(at + 64, 1000, device);
  EXPECT_TRUE(count_free(at, device));
  count_alloc(at + 128, 10, device);
  const DeviceCounters& c = of(device);
  EXPECT_EQ(c.live.low, 1010u);
  EXPECT_EQ(c.alloc_count, 3u);
  EXPECT_EQ(c.free_count, 1u);
  EXPECT_EQ(c.alloc_bytes, 1110u);
  EXPECT_EQ(c.free_bytes, 100u);
  EXPECT_EQ(take_high_water(device_slot(device, false)).high, 1100u);
  EXPECT_EQ(take_high_water(device_slot(device, false)).high, 1010u);
}

TEST(Counters, AFreeOfAnUnknownBlockIsCountedApart) {
  Device device = fresh_device();
  uint64_t at = fresh_addresses(1);
  EXPECT_FALSE(count_free(at, device));
  EXPECT_EQ(of(device).unknown_free_count, 1u);
  EXPECT_EQ(of(device).free_count, 0u);
  EXPECT_EQ(of(device).live.low, 0u);
}

TEST(Counters, ABlockWithoutAnAddressIsUntrackedAndItsFreeUnknown) {
  Device device = fresh_device();
  count_alloc(0, 100, device);
  EXPECT_FALSE(count_free(0, device));
  EXPECT_EQ(of(device).untracked_count, 1u);
  EXPECT_EQ(of(device).unknown_free_count, 1u);
  EXPECT_EQ(of(device).alloc_count, 0u);
  EXPECT_EQ(of(device).free_count, 0u);
  EXPECT_EQ(of(device).live.low, 0u);
}

TEST(Counters, AnAddressHandedOutTwiceEndsTheFirstBlockAndSaysSo) {
  Device device = fresh_device();
  uint64_t at = fresh_addresses(1);
  count_alloc(at, 100, device);
  count_alloc(at, 30, device);
  EXPECT_EQ(of(device).live.low, 30u);
  EXPECT_EQ(of(device).untracked_count, 1u);
  count_free(at, device);
  EXPECT_EQ(of(device).live.low, 0u);
}

TEST(Counters, DevicesAreCountedApartAndTooManyAreLeftOut) {
  ASSERT_TRUE(begin_counting());
  EXPECT_EQ(device_slot({0, -1}, false), 0u);
  EXPECT_EQ(device_slot({0, 0}, false), 0u);
  EXPECT_EQ(device_slot({41, 3}, false), kNoDevice);
  pid_t child = fork();  // which may use up all slots
  if (child == 0) {
    uint32_t last = 0;
    for (int i = 0; i < 63; ++i) last = device_slot({42, static_cast<int8_t>(i)}, true);
    count_alloc(fresh_addresses(1), 5, {43, 0});  // not a crash
    bool is_good =
        last == 63 && device_slot({43, 0}, true) == kNoDevice && device_slot({42, 7}, false) == 8;
    _exit(is_good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Counters, EightThreadsAtOnceLoseNothingAndTheHighWaterIsTheSumsMaximum) {
  Device device = fresh_device();
  static constexpr uint64_t kEach = 100000;
  uint64_t at = fresh_addresses(8 * kEach);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([=] {
      for (uint64_t i = 0; i < kEach; ++i) {
        count_alloc(at + (i * 8 + t) * 64, 1 + t, device);
        if (i % 2) count_free(at + (i * 8 + t) * 64, device);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const DeviceCounters& c = of(device);
  EXPECT_EQ(c.alloc_count, 8 * kEach);
  EXPECT_EQ(c.free_count, 4 * kEach);
  EXPECT_EQ(c.alloc_bytes, kEach * 36);
  EXPECT_EQ(c.live.low, kEach * 18);
  EXPECT_EQ(c.untracked_count + c.unknown_free_count, 0u);
  // Live only rises but for the block that each thread has in its hand.
  uint64_t high = take_high_water(device_slot(device, false)).high;
  EXPECT_GE(high, kEach * 18);
  EXPECT_LE(high, kEach * 18 + 36);
}

TEST(Counters, TheHighWaterIsNeverMissedByAThreadThatTakesItMeanwhile) {
  // One thread makes and drops a block of 1000; another takes the high water all the time. Every
  // round trip must be in some taking: the takings' maxima are 1000 or 0, and each peak shows once.
  Device device = fresh_device();
  uint32_t slot = device_slot(device, true);
  uint64_t at = fresh_addresses(1), seen = 0;
  static constexpr uint64_t kRounds = 5000;
  uint32_t turn = 0;
  std::thread worker([&] {
    for (uint64_t i = 0; i < kRounds; ++i) {
      while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != 0) std::this_thread::yield();
      count_alloc(at, 1000, device);
      count_free(at, device);
      __atomic_store_n(&turn, 1, __ATOMIC_RELEASE);
    }
  });
  for (uint64_t i = 0; i < kRounds; ++i) {
    bool is_seen = false;
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != 1) {
      is_seen |= take_high_water(slot).high == 1000;  // also in the middle of the pair
    }
    is_seen |= take_high_water(slot).high == 1000;
    seen += is_seen;
    __atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
  }
  worker.join();
  EXPECT_EQ(seen, kRounds);
}

TEST(Counters, AForkedChildCountsFromZeroWhateverItsParentDoes) {
  Device device = fresh_device();
  uint64_t at = fresh_addresses(2);
  count_alloc(at, 100, device);
  uint32_t parent = counting_incarnation();
  pid_t child = fork();
  if (child == 0) {
    bool is_good = counting_incarnation() != parent && device_slot(device, false) == kNoDevice;
    count_alloc(at + 64, 7, device);
    is_good &= !count_free(at, device);  // the parent's block
    const DeviceCounters& c = of(device);
    is_good &= c.live.low == 7 && c.alloc_count == 1 && c.unknown_free_count == 1;
    _exit(is_good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(of(device).live.low, 100u);
  EXPECT_EQ(of(device).alloc_count, 1u);
}

TEST(Counters, WhereTheSystemGivesNoMemoryBlocksAreUntrackedAndCounted) {
  NOT_UNDER_THREAD_SANITIZER("it needs memory of its own for each thing it sees, and ends without");
  Device device = fresh_device();
  count_alloc(fresh_addresses(1), 1, device);
  pid_t child = fork();
  if (child == 0) {
    count_alloc(fresh_addresses(1), 1, device);
    rlimit none{0, 0};
    setrlimit(RLIMIT_AS, &none);
    // The levels that are mapped have room for less than this.
    uint64_t count = 80'000'000 / 64, before = of(device).alloc_count;
    uint64_t at = fresh_addresses(count);
    for (uint64_t i = 0; i < count; ++i) count_alloc(at + i * 64, 1, device);
    const DeviceCounters& c = of(device);
    bool is_good =
        c.untracked_count + c.alloc_count - before == count && c.live.low == c.alloc_count;
    _exit(is_good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Counters, InASandboxNothingIsMapped) {
  Device device = fresh_device();
  pid_t child = fork();
  if (child == 0) {
    g_sandboxed = true;
    _exit(map_emptied_by_fork(4096) == nullptr ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  (void)device;
}

}  // namespace
}  // namespace gpumemprof::probe
