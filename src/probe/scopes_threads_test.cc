// Scopes of several threads, of forked processes and of signal handlers.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/sanitizers_for_tests.h"
#include "probe/scopes_for_tests.h"

namespace gpumemprof::probe {
namespace {

TEST_F(Scopes, ItMayBeResumedByAnotherThread) {
  uint64_t id = begin();
  make(1);
  switch_scope_out(id);
  std::thread([&] {
    switch_scope_in(id);
    make(10);
    switch_scope_out(id);
    make(100);
  }).join();
  make(1000);
  EXPECT_EQ(end(id).own_alloc_bytes, 11u);
}

TEST_F(Scopes, OtherThreadsAllocationsAreTheDevicesButNotItsOwn) {
  uint64_t id = begin();
  uint64_t mine = make(100);
  std::thread([&] {
    drop(make(1000));
    drop(mine);  // a free of its own block, by another thread
  }).join();
  Result r = end(id);
  EXPECT_EQ(r.peak_live_bytes, 1100u);
  EXPECT_EQ(r.own_alloc_bytes, 100u);
  EXPECT_EQ(r.own_free_bytes, 100u);
  EXPECT_EQ(r.own_peak_bytes, 100);
}

TEST_F(Scopes, ConcurrentThreadsCountTheirOwnAndNoOthers) {
  std::vector<std::thread> threads;
  std::vector<Result> results(8);
  uint64_t all = begin();
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      uint64_t outer = begin();
      for (int i = 0; i < 20000; ++i) {
        uint64_t inner = begin();
        drop(make(1 + t));
        ASSERT_EQ(end(inner).own_free_bytes, 1u + t);
      }
      results[t] = end(outer);
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 0; t < 8; ++t) {
    EXPECT_EQ(results[t].own_alloc_count, 20000u);
    EXPECT_EQ(results[t].own_free_count, 20000u);
    EXPECT_EQ(results[t].own_alloc_bytes, 20000u * (1 + t));
    EXPECT_EQ(results[t].own_peak_bytes, 1 + t);
    EXPECT_GE(results[t].peak_live_bytes, 1u + t);
    EXPECT_LE(results[t].peak_live_bytes, 36u);
  }
  Result r = end(all);
  EXPECT_EQ(r.end_live_bytes, 0u);
  EXPECT_EQ(r.own_alloc_count, 0u);
}

TEST_F(Scopes, AScopeThatAnotherThreadEndsIsRightAndItsRecordIsUsedAgain) {
  for (int round = 0; round < 3; ++round) {
    uint64_t outer = begin(), inner = begin();
    make(10);
    Result r;
    std::thread([&] { r = end(inner); }).join();
    EXPECT_EQ(r.own_alloc_bytes, 10u);
    make(5);
    EXPECT_EQ(end(outer).own_alloc_bytes, 15u);
    EXPECT_EQ(end_scope(inner, &r), 0);
  }
}

TEST_F(Scopes, AHundredThousandThatAnotherThreadEndsLeaveAShortList) {
  make(1);
  uint32_t others = t_scopes.length;  // open ones of other tests
  std::vector<uint64_t> ids{begin()};
  uint32_t before = g_control->scope_pool.fresh;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 1000; ++i) ids.push_back(begin());
    std::thread([&] {
      for (int i = 0; i < 1000; ++i) end(ids[i]);
    }).join();
    ids.erase(ids.begin(), ids.begin() + 1000);  // the newest, on top of the list, stays open
  }
  EXPECT_LE(t_scopes.length, 2 * (others + 1001) + 16);
  EXPECT_LE(g_control->scope_pool.fresh - before, 4000u);
  make(10);
  make(10);
  EXPECT_EQ(t_scopes.length, others + 1);  // an allocation finds what is closed
  EXPECT_EQ(end(ids[0]).own_alloc_bytes, 20u);
}

TEST_F(Scopes, OneThatIsEndedWhileAnotherThreadResumesItIsGivenBackOnce) {
  std::atomic<uint64_t> offered{0};
  std::atomic<bool> is_over{false};
  std::thread mover([&] {
    while (!is_over) {
      uint64_t id = offered;
      switch_scope_in(id);
      switch_scope_out(id);
    }
  });
  for (int i = 0; i < 100000; ++i) {
    uint64_t id = begin();
    switch_scope_out(id);
    offered = id;
    if (i % 3) switch_scope_in(id);
    ASSERT_EQ(end(id).own_alloc_count, 0u);
  }
  is_over = true;
  mover.join();
  // Records that were given back twice would be two scopes at once.
  std::vector<uint64_t> ids, numbers;
  for (int i = 0; i < 5000; ++i) ids.push_back(begin());
  for (uint64_t id : ids) numbers.push_back(id & 0xffffffff);
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
  for (uint64_t id : ids) end(id);
}

TEST_F(Scopes, OneThatItsLastThreadSuspendsAgainWhileAnotherResumesItStaysTheOthers) {
  uint64_t id = begin();
  std::atomic<bool> is_over{false};
  uint64_t made_count = 0;
  std::thread other([&] {
    for (int i = 0; i < 4'000'000 && !t_scopes.running; ++i) {
      switch_scope_in(id);
      if (t_scopes.running) drop(make(1)), ++made_count;
      switch_scope_out(id);
    }
    EXPECT_EQ(t_scopes.running, 0u);
    is_over = true;
  });
  while (!is_over) {
    switch_scope_out(id);
    switch_scope_out(id);  // it is suspended, or the other thread's by now
    switch_scope_in(id);
  }
  other.join();
  EXPECT_EQ(end(id).own_alloc_count, made_count);
}

TEST_F(Scopes, AThreadThatBeginsInASandboxAsksTheKernelForNothing) {
  NOT_UNDER_SANITIZERS("a thread of theirs asks the kernel for its stacks");
  pid_t child = fork();
  if (child == 0) {
    begin();  // what is needed is mapped
    sock_filter lines[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    sock_fprog program{4, lines};
    bool is_good = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    g_sandboxed = true;
    is_good &= prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    std::thread([&] {
      Result r;
      is_good &= end_scope(begin(), &r) == GPUMEMPROF_SCOPE_OK;
    }).join();
    _exit(is_good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Scopes, AScopeWhoseThreadDiedCanBeEnded) {
  uint64_t id = 0;
  std::thread([&] {
    id = begin();
    make(10);
  }).join();
  EXPECT_EQ(end(id).own_alloc_bytes, 10u);
}

TEST_F(Scopes, AForkedChildHasNoneOfItsParentsAndCanHaveItsOwn) {
  uint64_t id = begin();
  make(100);
  pid_t child = fork();
  if (child == 0) {
    Result r;
    make(1);  // with the parent's list in this thread's memory
    bool is_good = end_scope(id, &r) == 0;
    uint64_t mine = begin();
    make(7);
    is_good &=
        mine != id && end_scope(mine, &r) == 1 && r.own_alloc_bytes == 7 && r.start_live_bytes == 1;
    _exit(is_good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(end(id).own_alloc_bytes, 100u);
}

TEST_F(Scopes, AStormOfForksWhileThreadsBeginAndEndNeverHangsAChild) {
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!is_over) {
        uint64_t id = begin();
        drop(make(10));
        end(id);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);  // ends a child that hangs
      Result r;
      uint64_t id = begin_scope(device_, nullptr);
      count_alloc(64, 3, device_);
      bool is_good =
          id && end_scope(id, &r) == 1 && r.own_alloc_bytes == 3 && r.peak_live_bytes == 3;
      _exit(is_good ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  is_over = true;
  for (auto& thread : threads) thread.join();
}

/// In a signal handler, as the interpreter's own may allocate at any instruction.
Device g_handler_device;
void allocate_in_handler(int) {
  static uint64_t next = 0x40000000000;
  count_alloc(next += 64, 1, g_handler_device);
}

TEST_F(Scopes, ASignalHandlersAllocationsAreCountedAndHarmNothing) {
  g_handler_device = device_;
  struct sigaction action{};
  action.sa_handler = allocate_in_handler;
  struct sigaction old;
  sigaction(SIGUSR1, &action, &old);
  pthread_t worker = pthread_self();
  std::atomic<bool> is_over{false};
  std::thread sender([&] {
    while (!is_over) {
      pthread_kill(worker, SIGUSR1);
      usleep(20);
    }
  });
  // A signal while a scope begins or ends is before or after it; for the outer one there is none.
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &mask, nullptr);
  uint64_t outer = begin();
  pthread_sigmask(SIG_UNBLOCK, &mask, nullptr);
  for (int i = 0; i < 100000; ++i) {
    uint64_t id = begin();
    drop(make(10));
    Result r = end(id);
    EXPECT_GE(r.own_alloc_count, 1u);
    EXPECT_EQ(r.own_free_count, 1u);
  }
  is_over = true;
  sender.join();
  sigaction(SIGUSR1, &old, nullptr);
  Result r = end(outer);
  EXPECT_EQ(r.own_free_count, 100000u);
  // Every one is live; those that came while the list was being changed are counted as untracked.
  EXPECT_EQ(r.own_alloc_count - 100000 + r.untracked_count, r.end_live_bytes - r.start_live_bytes);
}

}  // namespace
}  // namespace gpumemprof::probe
