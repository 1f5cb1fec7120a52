#include "report/describe/end_words.h"

#include <gtest/gtest.h>

#include <memory>

#include "analysis/ranks/job_ranks.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

RefusedRequest refused_on_cpu(uint64_t asked) {
  return {.device = "cpu",
          .requested = PrintedSize{.bytes = asked, .least_bytes = asked, .most_bytes = asked},
          .live_bytes = 10 * kMiB};
}

std::vector<std::string> texts_of(const ProgramEnds& ends) {
  std::vector<std::string> out;
  for (const Sentence& said : end_sentences(ends, nullptr, "")) out.push_back(said.text);
  return out;
}

TEST(EndWords, WhatWasLeftOfTheAddressSpaceIsTold) {
  RefusedRequest one = refused_on_cpu(256 * kMiB);
  one.address_space_limit_bytes = 3072 * kMiB;
  one.address_space_bytes = 2972 * kMiB;
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 256 MiB were refused, with 10.0 MiB live on cpu just after it. 100 MiB "
            "were left just after: the process had mapped 2.90 GiB of 3.00 GiB (ulimit -v).");
}

TEST(EndWords, ARequestOfFourTimesTheLargestOfItsLineIsUnusual) {
  RefusedRequest one = refused_on_cpu(256 * kMiB);
  one.told = {.size_bytes = 256 * kMiB,
              .live_bytes = 8 * kMiB,
              .served_count = 4,
              .largest_served_bytes = 64 * kMiB};
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 256 MiB were refused, with 8.00 MiB live on cpu. The largest request "
            "that was served with that stack was 64.0 MiB.");
  one.told->served_count = 3;
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 256 MiB were refused, with 8.00 MiB live on cpu.");
  one.told->served_count = 4, one.told->largest_served_bytes += 1;
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 256 MiB were refused, with 8.00 MiB live on cpu.");
}

TEST(EndWords, AModuleOrModeIsNoPlaceInTheCode) {
  RefusedRequest one = refused_on_cpu(256 * kMiB);
  one.stack = {"<torch module> Net", "<torch mode> no grad", "/j/net.py:9 Net.forward"};
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 256 MiB were refused at /j/net.py:9 Net.forward, with 10.0 MiB live on "
            "cpu just after it.");
}

TEST(EndWords, TheRankThatRanOutIsNamed) {
  RefusedRequest one = refused_on_cpu(256 * kMiB);
  one.rank = 2;
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory on rank 2: 256 MiB were refused, with 10.0 MiB live on cpu just after it.");
}

TEST(EndWords, TheKernelsKillNamesTheCgroupsLimitOrTheHost) {
  ProgramEnds ends;
  ends.runs = {{.signal = "SIGKILL", .kernel_kills = 1, .kills_are_of_cgroup = true}};
  EXPECT_EQ(texts_of(ends),
            std::vector<std::string>{
                "The kernel's OOM killer ended the program: the host ran out of memory."});
  ends.runs[0].memory_limit_bytes = 700 * kMiB;
  EXPECT_EQ(texts_of(ends),
            std::vector<std::string>{
                "The kernel's OOM killer ended the program: its cgroup's limit is 700 MiB."});
}

TEST(EndWords, ALimitThatIsNearIsToldAndOneThatIsFarIsNot) {
  RefusedRequest one = refused_on_cpu(256 * kMiB);
  one.address_space_limit_bytes = 3072 * kMiB;
  one.address_space_bytes = 2560 * kMiB;
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 256 MiB were refused, with 10.0 MiB live on cpu just after it. The process may map "
            "3.00 GiB (ulimit -v); it had mapped 2.50 GiB at most.");
  one.address_space_bytes = 1024 * kMiB;
  one.address_space_peak_bytes = 2816 * kMiB;
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 256 MiB were refused, with 10.0 MiB live on cpu just after it. The process may map "
            "3.00 GiB (ulimit -v); it had mapped 2.75 GiB at most.");
  one.address_space_peak_bytes = 1024 * kMiB;
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 256 MiB were refused, with 10.0 MiB live on cpu just after it.");
}

TEST(EndWords, OfARequestOfUnknownSizeTheLimitIsToldIfThreeQuartersOfItWereMapped) {
  RefusedRequest one = refused_on_cpu(0);
  one.requested.reset();
  one.address_space_limit_bytes = 3072 * kMiB, one.address_space_bytes = 2304 * kMiB + 1;
  const std::string refused =
      "Out of memory: a request was refused, with 10.0 MiB live on cpu just after it.";
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            refused + " The process may map 3.00 GiB (ulimit -v); it had mapped 2.25 GiB at most.");
  one.address_space_bytes = 2304 * kMiB;
  EXPECT_EQ(refusal_sentence(one, nullptr, ""), refused);
}

TEST(EndWords, OfACaughtRefusalTheLimitIsToldIfHalfOfItWasWanted) {
  RefusedRequest one = refused_on_cpu(256 * kMiB);
  one.was_caught = true;
  one.told = {.number = 10, .size_bytes = 256 * kMiB, .live_bytes = 1280 * kMiB};
  one.address_space_limit_bytes = 3072 * kMiB;
  const std::string refused =
      "Out of memory: 256 MiB were refused, the last of 11 requests, with 1.25 GiB live on cpu.";
  EXPECT_EQ(refusal_sentence(one, nullptr, ""), refused + " The process may map 3.00 GiB (ulimit -v).");
  one.told->live_bytes -= 1;
  EXPECT_EQ(refusal_sentence(one, nullptr, ""), refused);
  one.told->number = 0;
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 256 MiB were refused, with 1.25 GiB live on cpu.");
}

TEST(EndWords, WhatTheHostHadFreeIsTold) {
  RefusedRequest one = refused_on_cpu(256 * kMiB);
  one.host_free_bytes = 64 * kMiB;
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 256 MiB were refused, with 10.0 MiB live on cpu just after it. 64.0 "
            "MiB were free on the host just after.");
}

TEST(EndWords, WhatWasLiveIsThatOfTheEventElseOfTheMessageElseOfLater) {
  RefusedRequest one = refused_on_cpu(256 * kMiB);
  one.device = "cuda:0";
  one.allocated = parse_printed_size("6.32 GiB");
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 256 MiB were refused, with 6.32 GiB live on cuda:0.");
  one.told = {.size_bytes = 255 * kMiB, .live_bytes = 6400 * kMiB};
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 255 MiB were refused, with 6.25 GiB live on cuda:0.");
}

TEST(EndWords, TheMessageSaysWhyWhereNothingWasReplayed) {
  RefusedRequest one = refused_on_cpu(884 * kMiB);
  one.device = "cuda:0";
  one.message =
      "CUDA out of memory. Tried to allocate 884.00 MiB. GPU 0 has a total capacity of 139.00 GiB "
      "of which 133.93 GiB is free. 5.86 GiB allowed; Of the allocated memory 4.30 GiB is "
      "allocated by PyTorch, and 793.88 MiB is reserved by PyTorch but unallocated.";
  // 5.855 to 5.865 GiB allowed, of which 4.295 to 4.305 GiB and 793.88 MiB are reserved.
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 884 MiB were refused, with 10.0 MiB live on cuda:0 just after it. Below "
            "its own limit the process may take 793 MiB to 814 MiB more (5.86 GiB allowed - 5.07 "
            "GiB to 5.08 GiB reserved). Fragmentation: it would fit if PyTorch's free pieces went "
            "back to the driver.");
}

TEST(EndWords, NothingIsSaidOfTheHostWhereADeviceRefused) {
  RefusedRequest one = refused_on_cpu(256 * kMiB);
  one.device = "cuda:0";
  one.host_free_bytes = 64 * kMiB;
  EXPECT_EQ(refusal_sentence(one, nullptr, ""),
            "Out of memory: 256 MiB were refused, with 10.0 MiB live on cuda:0 just after it.");
}

TEST(EndWords, ALaunchersExitCodeIsFollowedByItsProcessesThatDidNotExit) {
  ProgramEnds ends;
  ends.runs = {{.exit_code = 1}};
  ends.unfinished = {{.pid = 41, .rank = 0}};
  const auto last = [&] { return texts_of(ends).back(); };
  EXPECT_EQ(last(), "Rank 0 (process 41) was killed or is still running.");
  ends.unfinished.push_back({.pid = 42, .command = "python a.py"});
  EXPECT_EQ(last(), "Rank 0 (process 41) and process 42 (python a.py) were killed or are still running.");
  ends.unfinished.resize(5);
  EXPECT_EQ(last(), "5 processes were killed or are still running.");
}

TEST(EndWords, OneRankHasOneEnd) {
  ProgramEnds ends;
  ends.runs = {{.exit_code = 1}};
  ends.uncaught = {{.process = {.pid = 41, .start_ticks = 5},
                    .rank = 1,
                    .kind = "RuntimeError",
                    .message = "reset by peer",
                    .stack = {"/j/a.py:16 main"}}};
  const auto last = [&] { return texts_of(ends).back(); };
  EXPECT_EQ(last(), "RuntimeError ended rank 1 at /j/a.py:16 main: reset by peer.");
  ends.runs[0].exits = {{.pid = 41, .start_ticks = 5, .exit_code = 1}};
  EXPECT_EQ(last(), "RuntimeError ended rank 1 at /j/a.py:16 main: reset by peer.");
  ends.runs[0].exits = {{.pid = 41, .start_ticks = 5, .signal = "SIGTERM"}};
  EXPECT_EQ(last(),
            "RuntimeError was raised in rank 1 at /j/a.py:16 main before SIGTERM ended it: reset by "
            "peer.");
  ends.runs[0].exits[0].start_ticks = 6;
  EXPECT_EQ(last(), "RuntimeError ended rank 1 at /j/a.py:16 main: reset by peer.");
}

TEST(EndWords, AProgramThatGoesOnOrWhoseEndIsUnknownIsToldFirst) {
  ProgramEnds ends;
  ends.runs = {{.exit_code = 0}};
  EXPECT_TRUE(texts_of(ends).empty());
  ends.runs[0] = {.state = RunState::kRunning, .pid = 41};
  ends.running_pids = {41, 42};
  ends.refused = {refused_on_cpu(256 * kMiB)};
  EXPECT_EQ(texts_of(ends).front(),
            "The program is still running (pid 41): figures are those until now.");
  EXPECT_EQ(texts_of(ends).size(), 2u);
  ends.refused.clear();
  ends.runs[0].state = RunState::kGone;
  EXPECT_EQ(texts_of(ends).front(),
            "How the program ended is unknown: `run` was killed, or could not write it.");
  ends.runs[0].state = RunState::kElsewhere;
  EXPECT_EQ(texts_of(ends).front(),
            "How the program ended is unknown: on its machine it may still be running.");
  ends.runs.clear();  // it attached itself
  EXPECT_EQ(texts_of(ends).front(), "2 processes are still running: figures are those until now.");
  ends.running_pids.pop_back();
  EXPECT_EQ(texts_of(ends).front(), "Process 41 is still running: figures are those until now.");
}

OneRank ended(uint32_t rank, RankEnd how, int exit_code = 0, const char* signal = "") {
  OneRank out;
  out.rank = rank, out.end = how, out.exit_code = exit_code, out.signal = signal;
  return out;
}

UncaughtError raised(std::optional<uint32_t> rank, const char* kind) {
  UncaughtError error;
  error.process.pid = 40 + rank.value_or(0), error.rank = rank, error.kind = kind;
  return error;
}

/// What a job with these two ranks says first. A launcher echoes what became of them.
std::vector<std::string> told_of_job(OneRank first, OneRank second,
                                     std::vector<UncaughtError> uncaught) {
  Analysis analysis;
  JobRanks job;
  job.ranks = {std::move(first), std::move(second)};
  analysis.ranks = std::make_shared<const JobRanks>(std::move(job));
  analysis.ends.uncaught = std::move(uncaught);
  analysis.ends.uncaught.push_back(raised(std::nullopt, "torch.ChildFailedError"));
  analysis.ends.runs = {{.exit_code = 1, .exits = {{.pid = 40, .signal = "SIGTERM"}}}};
  analysis.ends.unfinished = {{.pid = 40, .rank = 0}, {.pid = 41, .rank = 1}};
  std::vector<std::string> out;
  for (const Sentence& said : job_end_sentences(analysis, "")) out.push_back(said.text);
  return out;
}

using EndLines = std::vector<std::string>;

TEST(EndWords, TheErrorOfARankIsItsEndAndFirst) {
  EXPECT_EQ(told_of_job(ended(0, RankEnd::kSignal, 0, "SIGTERM"), ended(1, RankEnd::kExitCode, 1),
                        {raised(0, "RuntimeError"), raised(1, "ValueError")}),
            (EndLines{"ValueError ended rank 1.",
                   "SIGTERM ended rank 0, as launchers do after the first failure."}));
}

TEST(EndWords, WhatOneRankRaisesAfterAnotherWasKilledIsNoCause) {
  EXPECT_EQ(told_of_job(ended(0, RankEnd::kSignal, 0, "SIGTERM"),
                        ended(1, RankEnd::kSignal, 0, "SIGINT"), {raised(0, "RuntimeError")}),
            (EndLines{"SIGINT ended rank 1.",
                   "SIGTERM ended rank 0, as launchers do after the first failure.",
                   "RuntimeError was raised in rank 0 before SIGTERM ended it."}));
  EXPECT_EQ(told_of_job(ended(0, RankEnd::kExitCode, 1), ended(1, RankEnd::kSignal, 0, "SIGKILL"),
                        {raised(0, "RuntimeError")})[0],
            "SIGKILL ended rank 1.");
}

TEST(EndWords, ALauncherSaysNothingOfItsOwn) {
  EXPECT_EQ(told_of_job(ended(0, RankEnd::kClean), ended(1, RankEnd::kExitCode, 7), {}),
            (EndLines{"Rank 1 ended with exit code 7.", "The program ended with exit code 1."}));
}

}  // namespace
}  // namespace gpumemprof
