#include "recording/sealed_events.h"

#include <gtest/gtest.h>

#include <random>

namespace gpumemprof {
namespace {

void add(EventBatch* batch, uint64_t time, Action action, uint64_t address, uint64_t size,
         uint32_t stack = 0, uint32_t thread = 0, uint16_t device = 0) {
  batch->time_ns.push_back(time), batch->action.push_back(action);
  batch->address.push_back(address), batch->size_bytes.push_back(size);
  batch->stack.push_back(stack), batch->thread.push_back(thread), batch->device.push_back(device);
}

void expect_same(const EventBatch& a, const EventBatch& b) {
  EXPECT_EQ(a.time_ns, b.time_ns);
  EXPECT_EQ(a.action, b.action);
  EXPECT_EQ(a.address, b.address);
  EXPECT_EQ(a.size_bytes, b.size_bytes);
  EXPECT_EQ(a.stack, b.stack);
  EXPECT_EQ(a.thread, b.thread);
  EXPECT_EQ(a.device, b.device);
  ASSERT_EQ(a.totals.size(), b.totals.size());
  for (size_t i = 0; i < a.totals.size(); ++i) {
    EXPECT_EQ(a.totals[i].event, b.totals[i].event);
    EXPECT_EQ(a.totals[i].allocated_bytes, b.totals[i].allocated_bytes);
    EXPECT_EQ(a.totals[i].reserved_bytes, b.totals[i].reserved_bytes);
  }
}

void expect_round_trip(const EventBatch& batch) {
  EventEncoder encoder;
  std::string bytes;
  encoder.encode(batch, &bytes);
  EventDecoder decoder;
  EventBatch back;
  auto done = decoder.decode(bytes, static_cast<uint32_t>(batch.size()), &back);
  ASSERT_TRUE(done) << done.error().message;
  expect_same(back, batch);
}

/// Anything that the columns can hold, without sense.
EventBatch nonsense(uint32_t seed, size_t events) {
  std::mt19937_64 random(seed);
  auto some = [&](std::initializer_list<uint64_t> list) {
    return list.begin()[random() % list.size()];
  };
  EventBatch batch;
  uint64_t time = random() >> 20;
  for (size_t i = 0; i < events; ++i) {
    time += some({0, 1, 200, 70'000, random() >> 30, random() >> 12});
    Action action = static_cast<Action>(1 + random() % (kActionCount - 1));
    add(&batch, time, action, some({0, 64 * (random() % 50), random() >> 7, 1}),
        some({0, 512 * (random() % 10), random()}),
        static_cast<uint32_t>(some({0, random() % 9, random() >> 32})),
        static_cast<uint32_t>(some({0, 7, random() % 400, random() >> 32})),
        static_cast<uint16_t>(some({0, 1, random() % 65536})));
    if (random() % 3 == 0)
      batch.totals.push_back({static_cast<uint32_t>(i), random(), some({0, 512, random()})});
  }
  return batch;
}

TEST(SealedEvents, OneEventComesBack) {
  EventBatch batch;
  add(&batch, 123'456'789, Action::kAlloc, 0x7f0000000040, 4096, 3, 2, 1);
  expect_round_trip(batch);
}

TEST(SealedEvents, AnythingThatColumnsCanHoldComesBack) {
  for (uint32_t seed = 0; seed < 40; ++seed) expect_round_trip(nonsense(seed, 1 + seed * 97));
}

TEST(SealedEvents, FreesOfOtherThreadsAndOfBlocksFromBeforeComeBack) {
  EventBatch batch;
  for (uint64_t i = 0; i < 3000; ++i) {
    add(&batch, 1000 * i, Action::kAlloc, 0x1000 + 64 * (i % 100), 256 + i % 5, 1 + i % 7, i % 3);
    add(&batch, 1000 * i + 5, Action::kFreeRequested, 0x1000 + 64 * (i % 100), 256 + i % 5, 0,
        (i + 1) % 3);
    add(&batch, 1000 * i + 9, Action::kFreeCompleted, 0x1000 + 64 * (i % 100), 0, 0, (i + 2) % 3);
    if (i % 10 == 0) add(&batch, 1000 * i + 9, Action::kFreeCompleted, 0x900000 + i, 77);
  }
  expect_round_trip(batch);
}

TEST(SealedEvents, ARegularLoopTakesLessThanTwoBytesAnEvent) {
  EventBatch batch;
  for (uint64_t i = 0; i < 32'000;
       ++i) {  // 320 steps of 50 blocks, 1 us apart, with 100 ns of jitter
    uint64_t which = i % 50;
    add(&batch, 2000 * i + i * 2654435761u % 100, Action::kAlloc, 0x1000 + 4096 * which,
        512 * which, 1 + which);
    add(&batch, 2000 * i + 1000, Action::kFreeCompleted, 0x1000 + 4096 * which, 0);
  }
  EventEncoder encoder;
  std::string bytes;
  encoder.encode(batch, &bytes);
  EXPECT_LT(bytes.size(), 2 * batch.size());
  expect_round_trip(batch);
}

TEST(SealedEvents, DamagedColumnsAreAnErrorOrTheRightNumberOfEvents) {
  EventBatch batch = nonsense(5, 60);
  EventEncoder encoder;
  std::string bytes;
  encoder.encode(batch, &bytes);
  EventDecoder decoder;
  EventBatch back;
  std::mt19937 random(1);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 + random() % 255));
    if (decoder.decode(damaged, 60, &back)) {
      ASSERT_EQ(back.size(), 60u);
      ASSERT_EQ(back.address.size(), 60u);
    } else {
      ASSERT_EQ(back.size(), 0u);
    }
    ASSERT_FALSE(decoder.decode(std::string_view(bytes).substr(0, at), 60, &back));
  }
  EXPECT_FALSE(decoder.decode(bytes, 59, &back));
  EXPECT_FALSE(decoder.decode(bytes, 0, &back));
  EXPECT_FALSE(decoder.decode(bytes, UINT32_MAX, &back));
  EXPECT_TRUE(decoder.decode(bytes, 60, &back));
}

}  // namespace
}  // namespace gpumemprof
