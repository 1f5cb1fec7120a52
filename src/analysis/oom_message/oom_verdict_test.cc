#include "analysis/oom_message/oom_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

using testing::HasSubstr;

/// A message of PyTorch 2 with these figures; empty ones are left out.
OomMessage message(const char* requested, const char* capacity, const char* free,
                   const char* allocated, const char* unallocated) {
  OomMessage m{.framework = "pytorch", .backend = "CUDA", .wording = OomWording::kPyTorch2};
  m.requested = parse_printed_size(requested);
  m.capacity = parse_printed_size(capacity);
  m.free = parse_printed_size(free);
  m.allocated = parse_printed_size(allocated);
  m.unallocated = parse_printed_size(unallocated);
  return m;
}

std::string first_command(const OomVerdict& verdict) {
  return verdict.advice.empty() ? "" : verdict.advice[0].command;
}

TEST(OomVerdict, TooLittleInSumIsWantOfMemoryWithTheShortage) {
  // 1024 + 512 of 4096 MiB: 2560 MiB are missing, give or take the rounding of three numbers.
  const OomVerdict v = explain_oom(
      message("4096.00 MiB", "24.00 GiB", "1024.00 MiB", "20.00 GiB", "512.00 MiB"), false);
  EXPECT_EQ(v.cause, OomCause::kWantOfMemory);
  constexpr uint64_t kMissing = 2560ull << 20, kRounding = 3 * 5243;
  EXPECT_GE(v.shortage_bytes->least, kMissing - kRounding);
  EXPECT_LE(v.shortage_bytes->least, kMissing);
  EXPECT_GE(v.shortage_bytes->most, kMissing);
  EXPECT_LE(v.shortage_bytes->most, kMissing + kRounding);
  EXPECT_EQ(first_command(v), "gpumemprof run -- python YOUR_PROGRAM.py");
}

TEST(OomVerdict, EnoughInPiecesIsFragmentationAndTheLineToSet) {
  const OomVerdict v = explain_oom(
      message("512.00 MiB", "23.68 GiB", "199.44 MiB", "17.03 GiB", "5.98 GiB"), false);
  EXPECT_EQ(v.cause, OomCause::kFragmentation);
  EXPECT_EQ(first_command(v), "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  EXPECT_FALSE(v.shortage_bytes);
}

TEST(OomVerdict, WithLessThanATwentiethInPiecesTheDeviceIsFull) {
  OomMessage m = message("20.00 MiB", "23.69 GiB", "20.00 MiB", "22.71 GiB", "");
  m.unallocated.reset();
  m.reserved = parse_printed_size("22.85 GiB");
  const OomVerdict v = explain_oom(m, false);
  EXPECT_EQ(v.cause, OomCause::kWantOfMemory);
  EXPECT_EQ(v.summary, "The device is full: 22.71 GiB of 23.69 GiB are live tensors.");
  ASSERT_EQ(v.advice.size(), 3u);
  EXPECT_EQ(v.advice[0].command, "gpumemprof run -- python YOUR_PROGRAM.py");
  EXPECT_THAT(v.advice[1].text, HasSubstr("Use less"));
  EXPECT_EQ(v.advice[2].command, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  // 22.855 - 22.705 GiB, by the rounding of both, are 153.6 MiB.
  EXPECT_THAT(v.advice[2].text, HasSubstr(" It brings at most 154 MiB here."));
  EXPECT_EQ(explain_oom(m, true).advice.size(), 2u) << "nothing to set where it is set";
  // A twentieth of 20 GiB is 1 GiB.
  const auto cause = [](const char* pieces) {
    return explain_oom(message("20.00 MiB", "24.00 GiB", "10.00 MiB", "19.00 GiB", pieces), false)
        .cause;
  };
  EXPECT_EQ(cause("1.02 GiB"), OomCause::kFragmentation);
  EXPECT_EQ(cause("0.98 GiB"), OomCause::kWantOfMemory);
}

TEST(OomVerdict, ALimitIsReachedInTheSameWay) {
  OomMessage m = message("20.00 MiB", "24.00 GiB", "10.00 GiB", "13.50 GiB", "100.00 MiB");
  m.allowed = parse_printed_size("13.60 GiB");
  const OomVerdict v = explain_oom(m, false);
  EXPECT_EQ(v.cause, OomCause::kOwnLimit);
  EXPECT_EQ(v.summary,
            "The process's own limit is reached: 13.50 GiB of 13.60 GiB are live tensors.");
}

TEST(OomVerdict, ExpandableSegmentsAreNotAdvisedWhereTheyAreOn) {
  const OomVerdict v = explain_oom(
      message("512.00 MiB", "23.68 GiB", "199.44 MiB", "17.03 GiB", "5.98 GiB"), true);
  EXPECT_EQ(v.cause, OomCause::kFragmentation);
  for (const OomAdvice& advice : v.advice)
    EXPECT_EQ(advice.command.find("expandable"), std::string::npos);
  EXPECT_THAT(v.advice[0].text, HasSubstr("on already"));
}

TEST(OomVerdict, TheVariableIsTheOneThatTheMessageNames) {
  OomMessage m = message("512.00 MiB", "23.68 GiB", "199.44 MiB", "17.03 GiB", "5.98 GiB");
  m.backend = "HIP";
  EXPECT_EQ(first_command(explain_oom(m, false)), "") << "not offered for HIP without the hint";
  m.hint_variable = "PYTORCH_HIP_ALLOC_CONF";
  m.hints_expandable_segments = true;
  EXPECT_EQ(first_command(explain_oom(m, false)),
            "export PYTORCH_HIP_ALLOC_CONF=expandable_segments:True");
  m.wording = OomWording::kPyTorch1;
  m.hint_variable = "PYTORCH_CUDA_ALLOC_CONF";
  EXPECT_EQ(first_command(explain_oom(m, false)),
            "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128");
}

TEST(OomVerdict, RoundingThatDecidesIsSaid) {
  // 1.00 + 0.00 GiB may be a little more or less than 1.00 GiB.
  const OomVerdict v =
      explain_oom(message("1.00 GiB", "24.00 GiB", "0 bytes", "20.00 GiB", "1.00 GiB"), false);
  EXPECT_EQ(v.cause, OomCause::kCannotTell);
  EXPECT_THAT(v.summary, HasSubstr("too close"));
}

TEST(OomVerdict, RoomThatTheDriverHadIsNoFragmentation) {
  const OomVerdict v =
      explain_oom(message("19.68 GiB", "80.00 GiB", "25.38 GiB", "11.44 GiB", "43.59 MiB"), false);
  EXPECT_EQ(v.cause, OomCause::kCannotTell);
  EXPECT_THAT(v.summary, HasSubstr("there was room"));
}

TEST(OomVerdict, MoreThanTheDeviceHasCanNeverFit) {
  const OomVerdict v = explain_oom(
      message("130.04 GiB", "23.56 GiB", "16.57 GiB", "5.45 GiB", "1.17 GiB"), false);
  EXPECT_EQ(v.cause, OomCause::kWantOfMemory);
  EXPECT_THAT(v.summary, HasSubstr("no setting"));
}

TEST(OomVerdict, ALimitOfItsOwnIsToldFromTheDevices) {
  OomMessage m = message("996.00 MiB", "44.43 GiB", "9.06 GiB", "17.44 GiB", "59.88 MiB");
  m.allowed = parse_printed_size("17.69 GiB");
  const OomVerdict v = explain_oom(m, false);
  EXPECT_EQ(v.cause, OomCause::kOwnLimit);
  EXPECT_THAT(v.advice[0].text, HasSubstr("set_per_process_memory_fraction"));
}

TEST(OomVerdict, WhatTheMessageSaysItselfIsBelieved) {
  OomMessage m = message("512.00 MiB", "23.68 GiB", "199.44 MiB", "17.03 GiB", "5.98 GiB");
  m.is_own_limit = true;
  EXPECT_EQ(explain_oom(m, false).cause, OomCause::kOwnLimit);
  m.is_own_limit = false, m.exceeds_reserve = true;
  EXPECT_EQ(explain_oom(m, true).cause, OomCause::kOwnLimit);
  EXPECT_THAT(explain_oom(m, true).advice[0].text, HasSubstr("expandable_segments_reserve"));
  m.exceeds_reserve = false, m.is_custom_pool = true;
  EXPECT_EQ(explain_oom(m, false).cause, OomCause::kCannotTell);
}

TEST(OomVerdict, OtherProcessesAreNamedWhereTheyHoldEnough) {
  OomMessage m = message("1.00 GiB", "16.00 GiB", "64.00 MiB", "3.00 GiB", "10.00 MiB");
  m.process_in_use = parse_printed_size("3.50 GiB");
  m.processes = {{11, *parse_printed_size("8.00 GiB")}, {12, *parse_printed_size("4.00 GiB")}};
  const OomVerdict v = explain_oom(m, false);
  EXPECT_EQ(v.cause, OomCause::kWantOfMemory);
  EXPECT_THAT(v.advice[0].text, HasSubstr("11, 12"));
  EXPECT_LE(v.others_bytes->least, 12ull << 30);
  EXPECT_GE(v.others_bytes->most, 12ull << 30);
  // 3.50 GiB - (3.00 GiB + 10 MiB) = 502 MiB.
  EXPECT_LE(v.non_pytorch_bytes->least, 502ull << 20);
  EXPECT_GE(v.non_pytorch_bytes->most, 502ull << 20);
}

TEST(OomVerdict, TheOneProcessThatMustBeThisOneIsNotAnother) {
  OomMessage m = message("14.00 MiB", "22.30 GiB", "4.69 MiB", "21.92 GiB", "16.47 MiB");
  m.processes = {{860120, *parse_printed_size("22.29 GiB")}};
  const OomVerdict v = explain_oom(m, false);
  EXPECT_FALSE(v.others_bytes);
  EXPECT_TRUE(v.non_pytorch_bytes);
  EXPECT_THAT(v.elsewhere[0], HasSubstr("must be this process"));
}

TEST(OomVerdict, OneOfTwoThatMayBeThisOneIsNotStopped) {
  OomMessage m = message("224.00 MiB", "79.15 GiB", "180.94 MiB", "36.02 GiB", "2.02 GiB");
  m.processes = {{1142, *parse_printed_size("40.11 GiB")}, {99, *parse_printed_size("38.84 GiB")}};
  const OomVerdict v = explain_oom(m, false);
  EXPECT_THAT(v.elsewhere[0], HasSubstr("Process 1142 or 99 must be this process"));
  // Either of them, and both are not: the device has 79.15 GiB.
  EXPECT_LE(v.others_bytes->least, parse_printed_size("38.84 GiB")->bytes);
  EXPECT_GE(v.others_bytes->most, parse_printed_size("40.11 GiB")->bytes);
  EXPECT_LT(v.others_bytes->most, parse_printed_size("40.20 GiB")->bytes);
  EXPECT_THAT(v.advice[0].text, HasSubstr("all of 1142, 99 but this one"));
}

TEST(OomVerdict, OfAFullDeviceTheProcessThatHoldsMostComesFirst) {
  OomMessage m = message("1.00 GiB", "79.15 GiB", "500.00 MiB", "17.00 GiB", "600.00 MiB");
  m.process_in_use = parse_printed_size("18.60 GiB");
  m.processes = {{77, *parse_printed_size("60.00 GiB")}};
  const OomVerdict v = explain_oom(m, false);
  EXPECT_EQ(v.cause, OomCause::kWantOfMemory);
  EXPECT_THAT(v.summary, HasSubstr("other processes hold 60.0 GiB of 79.15 GiB"));
  EXPECT_THAT(v.advice[0].text, HasSubstr("Stop the other processes on the device (77)"));
}

// 12.13 GiB and 3.91 GiB are more than 15.56 GiB, however they were rounded.
TEST(OomVerdict, LiveTensorsAndTheRequestAboveTheDeviceAreWantOfMemoryWithoutWhatIsFree) {
  OomMessage m = message("3.91 GiB", "15.56 GiB", "1.00 GiB", "12.13 GiB", "15.13 MiB");
  m.free.reset();
  m.backend = "XPU";
  const OomVerdict v = explain_oom(m, false);
  EXPECT_EQ(v.cause, OomCause::kWantOfMemory);
  EXPECT_LE(v.shortage_bytes->least, parse_printed_size("0.48 GiB")->bytes);
  EXPECT_GE(v.shortage_bytes->most, parse_printed_size("0.48 GiB")->bytes);
}

TEST(OomVerdict, FiguresThatContradictEachOtherExplainNothing) {
  const OomVerdict v =
      explain_oom(message("1.00 GiB", "24.00 GiB", "1.00 GiB", "90.00 GiB", "1.00 GiB"), false);
  EXPECT_EQ(v.cause, OomCause::kCannotTell);
  EXPECT_THAT(v.reasons[0], HasSubstr("contradict each other"));
}

TEST(OomVerdict, OfADeviceATebibyteAtOnceIsAWrongSize) {
  const OomVerdict v =
      explain_oom(message("130206.04 GiB", "23.56 GiB", "16.57 GiB", "5.45 GiB", "1.17 GiB"), false);
  EXPECT_EQ(v.cause, OomCause::kWantOfMemory);
  EXPECT_THAT(v.summary, HasSubstr("a size is probably wrong"));
}

TEST(OomVerdict, OfTheHostATebibyteAtOnceIsAWrongSize) {
  OomMessage m{.framework = "pytorch", .backend = "CPU", .wording = OomWording::kPyTorchCpu};
  m.requested = exact_size((1ull << 40) - 1);
  EXPECT_THAT(explain_oom(m, false).summary, HasSubstr("The host refused memory"));
  m.requested = exact_size(1ull << 40);
  EXPECT_THAT(explain_oom(m, false).summary, HasSubstr("a size is probably wrong"));
  EXPECT_EQ(explain_oom(m, false).advice[0].text,
            "Check the shapes and sizes that the request is made of.");
  m.asked_at.file = "train.py";
  EXPECT_THAT(explain_oom(m, false).advice[0].text, HasSubstr("at the line that asked for it"));
}

TEST(OomVerdict, OfADeviceATebibyteAtOnceIsAWrongSizeToo) {
  const OomVerdict unknown = explain_oom(message("2.00 TiB", "", "", "", ""), false);
  EXPECT_EQ(unknown.summary,
            "More than an ordinary device has, 2.00 TiB, was asked for at once: a shape or a size "
            "is probably wrong.");
  EXPECT_EQ(unknown.advice[0].text, "Check the shapes and sizes that the request is made of.");
  const OomVerdict known =
      explain_oom(message("2.00 TiB", "24.00 GiB", "1.00 GiB", "20.00 GiB", "1.00 GiB"), false);
  EXPECT_EQ(known.cause, OomCause::kWantOfMemory) << "the device's own size says more";
  EXPECT_EQ(known.advice[0].text, "Check the shapes and sizes that the request is made of.");
}

TEST(OomVerdict, WithoutNumbersNothingIsConcluded) {
  EXPECT_EQ(explain_oom({.wording = OomWording::kWithoutNumbers}, false).cause,
            OomCause::kCannotTell);
  EXPECT_EQ(explain_oom(message("1.00 GiB", "", "", "", ""), false).cause, OomCause::kCannotTell);
}

/// What PyTorch 2.15's own allocator printed on a device of 1 GiB, and what its counters said then.
struct RealCase {
  const char* text;
  OomCause cause;
  uint64_t requested, free, allocated, unallocated;
};

TEST(OomVerdict, RealMessagesMeanWhatTheAllocatorCounted) {
  const RealCase cases[] = {
      // 51 segments of 20 MiB with one block of 5 MiB each, and a request of 100 MiB.
      {"CUDA out of memory. Tried to allocate 100.00 MiB. GPU 0 has a total capacity of 1024.00 "
       "MiB "
       "of which 4.00 MiB is free. Of the allocated memory 255.00 MiB is allocated by PyTorch, and "
       "765.00 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is "
       "large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
       OomCause::kFragmentation, 104857600, 4194304, 267386880, 802160640},
      // Under a limit of 0.6 of the device.
      {"CUDA out of memory. Tried to allocate 288.00 MiB. GPU 0 has a total capacity of 1024.00 "
       "MiB "
       "of which 498.00 MiB is free. 614.40 MiB allowed; Of the allocated memory 524.84 MiB is "
       "allocated by PyTorch, and 1.16 MiB is reserved by PyTorch but unallocated.",
       OomCause::kOwnLimit, 301989888, 522190848, 550331904, 1219072},
      // More than there is, with expandable segments.
      {"CUDA out of memory. Tried to allocate 1.03 GiB. GPU 0 has a total capacity of 1024.00 MiB "
       "of "
       "which 924.00 MiB is free. Of the allocated memory 95.37 MiB is allocated by PyTorch, and "
       "4.63 MiB is reserved by PyTorch but unallocated. expandable_segments is enabled. If "
       "instead "
       "the process is running out of virtual address space (VSZ), expandable segments may be",
       OomCause::kWantOfMemory, 1101004800, 968884224, 100000768, 4856832}};
  for (const RealCase& real : cases) {
    OomScanner scanner;
    scanner.feed(real.text);
    const OomLog log = scanner.finish();
    ASSERT_EQ(log.messages.size(), 1u);
    const OomMessage& m = log.messages[0];
    const auto holds = [](const std::optional<PrintedSize>& size, uint64_t bytes) {
      return size && size->least_bytes <= bytes && bytes <= size->most_bytes;
    };
    EXPECT_TRUE(holds(m.requested, real.requested)) << real.text;
    EXPECT_TRUE(holds(m.free, real.free)) << real.text;
    EXPECT_TRUE(holds(m.allocated, real.allocated)) << real.text;
    EXPECT_TRUE(holds(m.unallocated, real.unallocated)) << real.text;
    const OomVerdict v = explain_oom(m, log.expandable_segments_on);
    EXPECT_EQ(v.cause, real.cause) << real.text;
    if (real.cause == OomCause::kOwnLimit) {
      // 301989888 - (0.6 * 2^30 - 551550976) - 1219072, from the counters.
      EXPECT_LE(v.shortage_bytes->least, 208076698u);
      EXPECT_GE(v.shortage_bytes->most, 208076698u);
    }
    EXPECT_EQ(log.expandable_segments_on, real.cause == OomCause::kWantOfMemory);
  }
}

TEST(OomFigures, ASegmentOfTwentyMibIsSaidToBeOne) {
  const auto figures =
      oom_figures(message("20.00 MiB", "7.80 GiB", "0 bytes", "6.50 GiB", "1.00 MiB"));
  ASSERT_EQ(figures.size(), 5u);
  EXPECT_EQ(figures[0].key, "requested");
  EXPECT_THAT(figures[0].meaning, HasSubstr("tensors of 1 to 10 MiB"));
}

}  // namespace
}  // namespace gpumemprof
