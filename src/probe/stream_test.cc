// The writer as the hooks use it, read back by the reader: threads, buffers handed on, forks.
#include "probe/stream.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "probe/call_after.h"
#include "probe/sys.h"
#include "recording/file_sealer.h"
#include "recording/open.h"

namespace gpumemprof::probe {
namespace {

namespace fs = std::filesystem;

struct Read {
  std::vector<uint64_t> addresses;  // in the order the reader gave them
  std::map<uint64_t, uint64_t> size_of;
  std::set<uint32_t> threads;
  uint64_t lost = 0;
};

Read read_back(const std::string& path) {
  Read read;
  auto source = open_recording({path});
  EXPECT_TRUE(source.has_value());
  if (!source) return read;
  EventBatch batch;
  uint64_t last_time = 0;
  while (true) {
    auto more = (*source)->next(&batch);
    EXPECT_TRUE(more.has_value());
    if (!more || !*more) break;
    for (size_t i = 0; i < batch.size(); ++i) {
      EXPECT_GE(batch.time_ns[i], last_time);
      last_time = batch.time_ns[i];
      read.addresses.push_back(batch.address[i]);
      read.size_of[batch.address[i]] = batch.size_bytes[i];
      read.threads.insert(batch.thread[i]);
    }
  }
  read.lost = (*source)->loss().events;
  return read;
}

/// Records in a child of its own, as one process can record only once; returns the folder.
template <class Body>
std::string record_in_child(Body body) {
  char folder[] = "/tmp/gpumemprof-stream-XXXXXX";
  EXPECT_NE(mkdtemp(folder), nullptr);
  pid_t child = fork();
  if (child == 0) {
    strcpy(g_folder, folder);
    g_config.stacks = format::kStacksNone;
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return folder;
}

void record_allocs(uint64_t first, uint64_t count) {
  for (uint64_t i = first; i < first + count; ++i) {
    record(format::kRawAlloc, i * 64, 1000 + i, format::kClassCpu);
  }
}

TEST(Stream, EightThreadsAtOnceLoseNothing) {
  static constexpr uint64_t kEach = 40000;  // more than seven turns of the buffer
  std::string folder = record_in_child([] {
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 8; ++t) {
      threads.emplace_back([t] { record_allocs(1 + t * kEach, kEach); });
    }
    for (auto& t : threads) t.join();
  });
  Read read = read_back(folder);
  ASSERT_EQ(read.addresses.size(), 8 * kEach);
  ASSERT_EQ(read.size_of.size(), 8 * kEach);
  for (auto [address, size] : read.size_of) EXPECT_EQ(size, 1000 + address / 64);
  EXPECT_EQ(read.threads.size(), 8u);
  EXPECT_EQ(read.lost, 0u);
  fs::remove_all(folder);
}

TEST(Stream, BuffersOfDeadThreadsAreHandedOnWithWhatTheyHold) {
  constexpr uint64_t kThreads = 300;
  std::string folder = record_in_child([] {
    for (uint64_t t = 0; t < kThreads; ++t) std::thread(record_allocs, 1 + t * 10, 10).join();
  });
  uint64_t bytes = 0;
  for (auto& file : fs::directory_iterator(folder)) bytes += file.file_size();
  Read read = read_back(folder);
  EXPECT_EQ(read.size_of.size(), kThreads * 10);
  EXPECT_EQ(read.threads.size(), kThreads);
  // A page for each of the two halves that a thread leaves behind, and a few stages: not 300 of
  // them.
  EXPECT_LT(bytes, kThreads * 2 * format::kPage + 8 * format::kStageBytes);
  fs::remove_all(folder);
}

TEST(Stream, PlacesOfSealedEventsAreWrittenAgainAndNothingIsLost) {
  char folder[] = "/tmp/gpumemprof-stream-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  constexpr uint64_t kTurns = 30, kEach = 4 * format::kStageEvents;
  int to_child[2], to_parent[2];
  ASSERT_EQ(pipe(to_child) | pipe(to_parent), 0);
  char token = 0;
  pid_t child = fork();
  if (child == 0) {
    strcpy(g_folder, folder);
    g_config.stacks = format::kStacksNone;
    for (uint64_t turn = 0; turn < kTurns; ++turn) {
      record_allocs(1 + turn * kEach, kEach);
      if (write(to_parent[1], &token, 1) != 1 || read(to_child[0], &token, 1) != 1) _exit(1);
    }
    _exit(0);
  }
  std::unique_ptr<File> file;
  std::unique_ptr<FileSealer> sealer;
  for (uint64_t turn = 0; turn < kTurns; ++turn) {
    ASSERT_EQ(read(to_parent[0], &token, 1), 1);
    if (!sealer) {
      file = *open_file(fs::directory_iterator(folder)->path().string(), FileMode::kReadWrite);
      sealer = *FileSealer::open(file.get(), {.gather_bytes = 0});
    }
    ASSERT_TRUE(sealer->advance(monotonic_ns() + 1, true));
    ASSERT_EQ(write(to_child[1], &token, 1), 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  // 30 turns of 512 KiB, of which at most two turns' places were ever needed at once.
  EXPECT_LT(*file->size(), kTurns * 4 * format::kEventsPlaceBytes / 3);
  ASSERT_TRUE(sealer->finish());
  Read read = read_back(folder);
  EXPECT_EQ(read.addresses.size(), kTurns * kEach);
  EXPECT_EQ(read.size_of.size(), kTurns * kEach);
  for (auto [address, size] : read.size_of) EXPECT_EQ(size, 1000 + address / 64);
  EXPECT_EQ(read.lost, 0u);
  for (int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(fd);
  fs::remove_all(folder);
}

TEST(Stream, AForkedChildWritesAFileOfItsOwnAndNeverItsParents) {
  std::string folder = record_in_child([] {
    record_allocs(1, 100);
    for (int c = 0; c < 20; ++c) {
      if (fork() == 0) {
        record_allocs(1000 + c * 10, 10);
        _exit(0);
      }
    }
    record_allocs(101, 100);
    while (wait(nullptr) > 0) {
    }
  });
  std::multiset<size_t> sizes;
  for (auto& file : fs::directory_iterator(folder)) {
    sizes.insert(read_back(file.path().string()).size_of.size());
  }
  EXPECT_EQ(sizes.count(200), 1u);
  EXPECT_EQ(sizes.count(10), 20u);
  EXPECT_EQ(sizes.size(), 21u);
  fs::remove_all(folder);
}

TEST(Stream, ValuesTooWideForTheShortRecordComeBackWhole) {
  const uint64_t huge = uint64_t{5} << 40;
  std::string folder = record_in_child([=] {
    record(format::kRawAlloc, 64, huge, format::kClassCpu);
    record_device(format::kRawAlloc, 128, 512, Device{1, 3}, 512, huge + 12345);
  });
  auto source = open_recording({folder});
  ASSERT_TRUE(source.has_value());
  EventBatch batch;
  ASSERT_TRUE((*source)->next(&batch).value());
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch.size_bytes[0], huge);
  ASSERT_EQ(batch.totals.size(), 1u);
  EXPECT_EQ(batch.totals[0].event, 1u);
  EXPECT_EQ(batch.totals[0].allocated_bytes, 512u);
  EXPECT_EQ(batch.totals[0].reserved_bytes, huge + 12345);
  EXPECT_EQ(device_name((*source)->tables().devices[batch.device[1]]), "cuda:3");
  fs::remove_all(folder);
}

TEST(Stream, EventsOfTheHostAreRecordedAndCountTowardNoCall) {
  static int calls;
  const std::string folder = record_in_child([] {
    const Memory malloc{0x6000, {80, 0}, kHostLayer, true, "malloc"};
    calls = 0;
    call_after(
        4, [](int (*call)(void*), void* argument) { return call(argument); },
        [](void*) { return ++calls; }, nullptr);
    const auto host = [&](uint64_t first) {
      for (uint64_t i = first; i < first + 100; ++i)
        record_in(format::kRawAlloc, i * 64, 1000 + i, malloc, Label{});
    };
    host(1000);
    record_allocs(1, 3);
    host(2000);
    if (calls != 0) _exit(1);
    record_allocs(4, 1);
    if (calls != 1 || blocks_until_call() != 4) _exit(2);
  });
  EXPECT_EQ(read_back(folder).addresses.size(), 204u);
  fs::remove_all(folder);
}

TEST(Stream, EveryEventPublishedBeforeAKillIsThere) {
  char folder[] = "/tmp/gpumemprof-stream-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  pid_t child = fork();
  if (child == 0) {
    strcpy(g_folder, folder);
    g_config.stacks = format::kStacksNone;
    for (uint32_t i = 1;; ++i) {
      record_allocs(i, 1);
      if (write(pipe_ends[1], &i, sizeof(i)) != sizeof(i)) _exit(1);
    }
  }
  uint32_t told = 0;
  for (int n = 0; n < 5000; ++n) ASSERT_EQ(read(pipe_ends[0], &told, sizeof(told)), 4);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  Read read = read_back(folder);
  for (uint32_t i = 1; i <= told; ++i) EXPECT_TRUE(read.size_of.count(i * 64)) << i;
  close(pipe_ends[0]), close(pipe_ends[1]);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace gpumemprof::probe
