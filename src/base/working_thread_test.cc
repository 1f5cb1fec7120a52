#include "base/working_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace gpumemprof {
namespace {

TEST(WorkingThread, WorksAreDoneInOrderAndTakenBackInOrder) {
  int last = 0;
  WorkingThread<int, 3> thread([&](int& work) {
    EXPECT_EQ(work, last + 1);
    last = work, work *= 10;
  });
  int given = 0, taken = 0;
  while (taken < 1000) {
    while (thread.has_room() && given < 1000) thread.next() = ++given, thread.give();
    EXPECT_LE(thread.size(), 3u);
    EXPECT_EQ(thread.take(), 10 * ++taken);
  }
  EXPECT_EQ(thread.size(), 0u);
}

TEST(WorkingThread, WhatAWorkThrowsIsThrownWhereItIsTaken) {
  WorkingThread<int, 2> thread([](int& work) {
    if (work == 1) throw std::runtime_error("one");
  });
  thread.next() = 1, thread.give();
  thread.next() = 2, thread.give();
  EXPECT_THROW(thread.take(), std::runtime_error);
  EXPECT_EQ(thread.take(), 2);
}

TEST(WorkingThread, EndsWithWorksThatNobodyTook) {
  std::atomic<int> done = 0;
  {
    WorkingThread<int, 2> thread([&](int&) { ++done; });
    thread.give(), thread.give();
  }
  EXPECT_LE(done, 2);
}

}  // namespace
}  // namespace gpumemprof
