#include "probe/work_notes.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace gpumemprof::probe {
namespace {

TEST(WorkNotes, EachThreadHasItsOwnNumbers) {
  auto notes = std::make_unique<WorkNotes>();
  for (uint64_t thread = 1; thread <= 8; ++thread) notes->put(4711, thread, thread * 10);
  for (uint64_t thread = 1; thread <= 8; ++thread) EXPECT_EQ(notes->get(4711, thread), thread * 10);
  EXPECT_EQ(notes->get(4711, 9), 0u);
  EXPECT_EQ(notes->get(4712, 1), 0u);
}

TEST(WorkNotes, WhatFellOutIsUnknownAndNotAnother) {
  auto notes = std::make_unique<WorkNotes>();
  constexpr uint64_t kPlaces = 1 << 16;
  for (uint64_t number = 0; number < 3 * kPlaces; ++number)
    notes->put(number, 1, number % 8192 + 1);
  for (uint64_t number = 0; number < 2 * kPlaces; ++number) ASSERT_EQ(notes->get(number, 1), 0u);
  for (uint64_t number = 2 * kPlaces; number < 3 * kPlaces; ++number) {
    ASSERT_EQ(notes->get(number, 1), number % 8192 + 1);
  }
}

TEST(WorkNotes, TwoThreadsOnOnePlaceNeverAnswerForEachOther) {
  auto notes = std::make_unique<WorkNotes>();
  uint32_t known = 0;
  for (uint64_t thread = 0; thread < 1 << 16; ++thread) notes->put(1000, thread, 1 + thread % 8192);
  for (uint64_t thread = 0; thread < 1 << 16; ++thread) {
    const uint32_t found = notes->get(1000, thread);
    known += found != 0;
    ASSERT_TRUE(found == 0 || found == 1 + thread % 8192);
  }
  EXPECT_GT(known, 0u);
}

TEST(WorkNotes, NumbersThatDoNotFitAreNotNoted) {
  auto notes = std::make_unique<WorkNotes>();
  notes->put(~uint64_t{0}, 1, 5);  // of a node that has no number
  notes->put(uint64_t{1} << 50, 1, 5);
  notes->put(7, 1 << 16, 5);
  EXPECT_EQ(notes->get(~uint64_t{0}, 1), 0u);
  EXPECT_EQ(notes->get(uint64_t{1} << 50, 1), 0u);
  EXPECT_EQ(notes->get(0, 1), 0u);
  EXPECT_EQ(notes->get(7, 1 << 16), 0u);
  EXPECT_EQ(notes->get(7, 0), 0u);
  notes->put((uint64_t{1} << 50) - 1, 65535, 8192);
  EXPECT_EQ(notes->get((uint64_t{1} << 50) - 1, 65535), 8192u);
}

TEST(WorkNotes, ThreadsThatWriteAndReadSeeWholeNotes) {
  auto notes = std::make_unique<WorkNotes>();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 200000; ++i) {
        notes->put(i, t, static_cast<uint32_t>(1 + (i * 7 + t) % 8192));
        const uint64_t other = (t + 1) % 4;
        const uint32_t found = notes->get(i, other);
        wrong[t] += found != 0 && found != 1 + (i * 7 + other) % 8192;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
}  // namespace gpumemprof::probe
