#include "readers/traceback_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

// As PyTorch 2.13 wrote it when a DataLoader's worker asked for too much.
constexpr char kOfAWorker[] =
    "Caught RuntimeError in DataLoader worker process 1.\n"
    "Original Traceback (most recent call last):\n"
    "  File \"/lib/torch/utils/data/_utils/worker.py\", line 374, in _worker_loop\n"
    "    data = fetcher.fetch(index)\n"
    "           ^^^^^^^^^^^^^^^^^^^^\n"
    "  File \"/srv/me/a, in \", line 3.py\", line 8, in __getitem__\n"
    "    big = torch.zeros(1 << 43)\n"
    "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes.\n";

TEST(RaisedAgain, TellsTheWorkerItsStackAndItsError) {
  const auto read = raised_again(kOfAWorker);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->where, "DataLoader worker process 1");
  EXPECT_THAT(read->stack,
              testing::ElementsAre("/srv/me/a, in \", line 3.py:8 __getitem__",
                                   "/lib/torch/utils/data/_utils/worker.py:374 _worker_loop"));
  EXPECT_EQ(read->message,
            "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 "
            "bytes.");
}

TEST(RaisedAgain, AnythingElseIsNone) {
  for (const char* text : {"", "\n", "Caught", "Caught in .\n", "CUDA out of memory. Tried 2 GiB",
                           "Caught E in w.\nOriginal Traceback (most recent call last):\n",
                           "Caught E in w.\nOriginal Traceback\nE: no frame\n"})
    EXPECT_FALSE(raised_again(text)) << text;
}

TEST(RaisedAgain, EveryTruncationIsReadOrNone) {
  const std::string_view whole = kOfAWorker;
  for (size_t length = 0; length <= whole.size(); ++length) {
    const auto read = raised_again(whole.substr(0, length));
    if (read) {
      EXPECT_EQ(read->where, "DataLoader worker process 1");
    }
  }
}

TEST(RaisedAgain, OfAnEndlessTracebackTheInnermostFramesStay) {
  std::string text = "Caught E in w.\nOriginal Traceback (most recent call last):\n";
  for (int i = 0; i < 1000; ++i)
    text += "  File \"a.py\", line " + std::to_string(i) + ", in f\n    g()\n";
  const auto read = raised_again(text + "E: x\n");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->stack.size(), 256);
  EXPECT_EQ(read->stack.front(), "a.py:999 f");
}

}  // namespace
}  // namespace gpumemprof
