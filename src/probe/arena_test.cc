#include "probe/arena.h"

#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "recording/arena.h"

namespace gpumemprof::probe {
namespace {

using namespace format;

TEST(ArenaAddress, IsFiveNumbersOrNone) {
  const ArenaAddress address = parse_arena_address("17311103753994251629.12.3.45.6");
  EXPECT_EQ(address.id, 17311103753994251629u);
  EXPECT_EQ(address.pid[0], 12u);
  EXPECT_EQ(address.fd[0], 3u);
  EXPECT_EQ(address.pid[1], 45u);
  EXPECT_EQ(address.fd[1], 6u);
  for (const char* wrong : {"", "1", "1.2.3.4", "1.2.3.4.", "1.2.3.4.5x", "1.2.3.4.5.6", "a.b",
                            "1..2.3.4"}) {
    EXPECT_EQ(parse_arena_address(wrong).id, 0u) << wrong;
  }
  EXPECT_EQ(parse_arena_address(nullptr).id, 0u);
}

/// The probe's globals are a process's own, so all of it is one test.
TEST(ArenaOfAProcess, HandsEachPlaceOutOnceAndListsIt) {
  auto arena = *Arena::make();
  const auto pid = static_cast<uint32_t>(getpid());
  const auto fd = static_cast<uint32_t>(arena->fd());
  g_arena_address = {arena->id() + 1, {pid, pid}, {fd, fd}};
  EXPECT_FALSE(use_arena()) << "another arena behind the same number";
  g_arena_address = {arena->id(), {pid, pid}, {0, fd}};  // the first of the two is gone
  ASSERT_TRUE(use_arena());

  constexpr int kThreads = 4, kEach = 50;
  std::vector<ArenaPlace*> places(kThreads * kEach);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        ArenaPlace* place = claim_arena_place(kPage * (1 + t * kEach + i), kStageBytes);
        places[t * kEach + i] = place;
        if (place) memset(piece_of(place), t + 1, kStageBytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(std::ranges::count(places, nullptr), 0);
  ArenaPlace* process = claim_arena_place(0, kPage);
  ASSERT_TRUE(process);
  process->recording_id = 9;
  memcpy(process->file, "a.gmp", 6);
  for (ArenaPlace* place : places) list_stage(process, place);
  ASSERT_TRUE(list_process(process));
  EXPECT_EQ(arena->header()->processes[0], offset_of(process));

  const auto stages = arena->stages_of(*arena->process_at(offset_of(process)));
  ASSERT_EQ(stages.size(), places.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    EXPECT_EQ(stages[i].file_offset, kPage * (1 + i));
    std::vector<uint8_t> bytes(kStageBytes);
    ASSERT_TRUE(arena->read_at(stages[i].offset, bytes.data(), bytes.size()));
    EXPECT_EQ(bytes, std::vector<uint8_t>(kStageBytes, static_cast<uint8_t>(i / kEach + 1)));
  }

  std::ranges::fill(arena->header()->processes, 4096u);
  EXPECT_FALSE(list_process(process)) << "too many processes";
  arena->header()->next_offset = arena->header()->bytes;
  EXPECT_EQ(claim_arena_place(0, kPage), nullptr) << "no room is left";
  arena->header()->next_offset = 8;
  EXPECT_EQ(claim_arena_place(0, kPage), nullptr) << "a damaged header";

  for (Unrecorded& one : arena->header()->unrecorded) one.state = Unrecorded::kEnded;
  arena->header()->unrecorded[5].state = 0;
  ASSERT_TRUE(begin_unrecorded(kAtCreation, -13));
  count_unrecorded(100);
  count_unrecorded(0);
  const Unrecorded& mine = arena->header()->unrecorded[5];
  EXPECT_EQ(mine.state, Unrecorded::kFilled);
  EXPECT_EQ(mine.pid, pid);
  EXPECT_EQ(mine.error, 13);
  EXPECT_EQ(mine.user, geteuid());
  EXPECT_EQ(mine.events, 2u);
  EXPECT_EQ(mine.bytes, 100u);
  ASSERT_TRUE(begin_unrecorded(kAtCreation, -13));  // of another process, which finds no entry
  count_unrecorded(7);
  EXPECT_EQ(arena->header()->crowd.processes, 1u);
  EXPECT_EQ(arena->header()->crowd.events, 1u);
  EXPECT_EQ(arena->header()->crowd.bytes, 7u);
  for (ArenaPlace* place : places) munmap(place, kPage + kStageBytes);
}

}  // namespace
}  // namespace gpumemprof::probe
