#include <gtest/gtest.h>

#include <random>

#include "recording/fake_probe.h"
#include "recording/seal.h"
#include "recording/sealed_payload.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

using namespace for_tests;

EventBatch batch_of(const std::vector<uint32_t>& threads, const std::vector<int64_t>& steps) {
  EventBatch batch;
  batch.thread = threads, batch.step = steps;
  batch.time_ns.resize(threads.size());
  batch.action.resize(threads.size(), Action::kAlloc);
  return batch;
}

TEST(Steps, OfEveryThreadComeBackAsTheyWere) {
  std::mt19937_64 random(1);
  std::vector<uint32_t> threads;
  std::vector<int64_t> steps;
  int64_t current[4] = {kNoStep, kNoStep, kNoStep, kNoStep};
  for (int i = 0; i < 5000; ++i) {
    const uint32_t thread = random() % 4;
    if (random() % 9 == 0) current[thread] = static_cast<int64_t>(random());
    if (random() % 31 == 0) current[thread] = kNoStep;
    threads.push_back(thread), steps.push_back(current[thread]);
  }
  EventBatch batch = batch_of(threads, steps);
  const std::string payload = encode_steps(batch);
  batch.step.clear();
  ASSERT_TRUE(parse_steps(payload, &batch));
  EXPECT_EQ(batch.step, steps);
}

TEST(Steps, ThatDoNotChangeCostNothing) {
  std::vector<int64_t> one(60'000, 5);
  EXPECT_LT(encode_steps(batch_of(std::vector<uint32_t>(60'000, 0), one)).size(), 32u);
}

TEST(Steps, CutAtAnyByteOrWithAnyFlippedOneAreRefusedOrHaveOneForEachEvent) {
  EventBatch batch = batch_of({0, 1, 0, 1, 1}, {7, -7, 9, -7, kNoStep});
  const std::string payload = encode_steps(batch);
  const auto expect_sound = [&](const std::string& text) {
    EventBatch read = batch_of(batch.thread, {});
    const bool done = parse_steps(text, &read).has_value();
    EXPECT_TRUE(read.step.empty() || (done && read.step.size() == read.size()));
  };
  for (size_t size = 0; size < payload.size(); ++size) {
    EventBatch read = batch_of(batch.thread, {});
    EXPECT_FALSE(parse_steps(payload.substr(0, size), &read)) << size;
  }
  for (size_t at = 0; at < payload.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = payload;
      text[at] = static_cast<char>(text[at] ^ 1 << bit);
      expect_sound(text);
    }
  }
}

TEST(Steps, AreToldAnewInEveryHalfAndEndWhereTheThreadWorksOnNone) {
  FakeProbe probe(1, 100, 8);
  auto& thread = probe.start_thread(11, "t");
  std::vector<int64_t> expected;
  for (uint64_t i = 0; i < 40; ++i) {
    const int64_t step = i < 3 || i > 30 ? kNoStep : static_cast<int64_t>(i / 10);
    probe.begin_step(&thread, step);
    probe.alloc(&thread, 5000 + i, 64 * (i + 1), 8, 0);
    expected.push_back(step);
  }
  TempFolder folder;
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  const EverythingRead all = read_all({folder.path()});
  EXPECT_EQ(all.steps, expected);
  EXPECT_EQ(all.loss.events, 0u);
  for (const ExpectedEvent& event : all.events) EXPECT_EQ(event.size_bytes, 8u);
  EXPECT_TRUE(all.requested.empty());
}

TEST(Steps, FreesHaveNone) {
  FakeProbe probe;
  auto& thread = probe.start_thread(11, "t");
  probe.begin_step(&thread, 5);
  probe.alloc(&thread, 5000, 64, 8, 0);
  probe.free(&thread, 5001, 64);
  probe.alloc(&thread, 5002, 64, 8, 0);
  EXPECT_EQ(thread.events.size(), 5u) << "and do not end the thread's";
  probe.write_as_dead_process();
  TempFolder folder;
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  EXPECT_EQ(read_all({folder.path()}).steps, (std::vector<int64_t>{5, kNoStep, 5}));
  ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
  EXPECT_EQ(read_all({folder.path()}).steps, (std::vector<int64_t>{5, kNoStep, 5}));
}

TEST(Steps, AfterADamagedRecordAreUnknownUntilTheNextOneIsTold) {
  FakeProbe probe;
  auto& thread = probe.start_thread(11, "t");
  const auto alloc = [&](uint64_t i, int64_t step) {
    probe.begin_step(&thread, step);
    probe.alloc(&thread, 5000 + i, 64 * (i + 1), 8, 0);
  };
  alloc(0, 5), alloc(1, 5), alloc(2, 6), alloc(3, 6), alloc(4, 7);
  // Records: step, wide, 0, 1, step, wide, 2, …
  thread.events[4].address_device ^= 1;
  TempFolder folder;
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  const EverythingRead all = read_all({folder.path()});
  EXPECT_EQ(all.steps, (std::vector<int64_t>{5, 5, kNoStep, kNoStep, 7}));
  EXPECT_EQ(all.loss.events, 1u);
}

}  // namespace
}  // namespace gpumemprof
