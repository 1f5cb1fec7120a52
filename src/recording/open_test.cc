#include "recording/open.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "recording/fake_probe.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

using for_tests::ExpectedEvent;
using for_tests::FakeProbe;
using for_tests::read_all;
using for_tests::TempFolder;

TEST(OpenRecording, YieldsWhatIsInBuffersAndChunksInTimeOrder) {
  TempFolder folder;
  FakeProbe probe;
  auto& a = probe.start_thread(11, "main");
  auto& b = probe.start_thread(12, "worker");
  uint32_t stack_a = probe.define_stack(&a, {"main", "train", "forward"}, 7);
  uint32_t stack_b = probe.define_stack(&b, {"load"}, 9);
  std::vector<ExpectedEvent> expected;
  for (uint64_t i = 0; i < 500; ++i) {
    uint64_t time = 5000 + 10 * i;
    bool second = i % 3 == 1;
    if (i % 2 == 0) {
      probe.alloc(second ? &b : &a, time, 0x1000 + i, 64 + i, second ? stack_b : stack_a);
      expected.push_back(
          {time, 0x1000 + i, 64 + i, 1, second ? 12u : 11u, second ? "load" : "forward"});
    } else {
      probe.free(second ? &b : &a, time, 0x1000 + i - 1);
      expected.push_back({time, 0x1000 + i - 1, 0, 3, second ? 12u : 11u, ""});
    }
  }
  ASSERT_EQ(probe.save(folder.file("box.100.77.gmp")), 0);
  auto read = read_all({folder.path()});
  EXPECT_EQ(read.events, expected);
  EXPECT_EQ(read.loss.events, 0u);
  EXPECT_TRUE(read.loss.reasons.empty());
  ASSERT_EQ(read.processes.size(), 1u);
  EXPECT_EQ(read.processes[0].pid, 100u);
  EXPECT_EQ(read.processes[0].host, "box");
  EXPECT_EQ(read.processes[0].stacks, "python");
  EXPECT_EQ(read.processes[0].python_version, "3.11.2");
  EXPECT_EQ(read.processes[0].command, "python train.py");
  EXPECT_EQ(read.stack_of_first, (std::vector<std::string>{"forward.py:7 forward",
                                                           "train.py:7 train", "main.py:7 main"}));
}

TEST(OpenRecording, ACopyInTheBufferOfWhatWasWrittenOutIsReadOnce) {
  TempFolder folder;
  FakeProbe probe;
  auto& a = probe.start_thread(11, "main");
  for (uint64_t i = 0; i < 20; ++i) probe.alloc(&a, 5000 + i, 0x1000 + i, 8, 0);
  probe.flush(&a, /*bump=*/false);
  ASSERT_EQ(probe.save(folder.file("x.gmp")), 0);
  auto read = read_all({folder.file("x.gmp")});
  EXPECT_EQ(read.events.size(), 20u);
  EXPECT_EQ(read.loss.events, 0u);
}

TEST(OpenRecording, ABufferThatChangedOwnersKeepsThreadsAndStacksApart) {
  TempFolder folder;
  FakeProbe probe;
  auto& a = probe.start_thread(11, "first");
  uint32_t first = probe.define_stack(&a, {"one"});
  probe.alloc(&a, 5000, 0x10, 8, first);
  probe.reuse(&a, 12, "second");
  uint32_t second = probe.define_stack(&a, {"two"});
  EXPECT_EQ(first, second);  // the same raw id, so that a mix-up would show
  probe.alloc(&a, 6000, 0x20, 8, second);
  ASSERT_EQ(probe.save(folder.file("x.gmp")), 0);
  auto read = read_all({folder.path()});
  ASSERT_EQ(read.events.size(), 2u);
  EXPECT_EQ(read.events[0], (ExpectedEvent{5000, 0x10, 8, 1, 11, "one"}));
  EXPECT_EQ(read.events[1], (ExpectedEvent{6000, 0x20, 8, 1, 12, "two"}));
}

TEST(OpenRecording, WideSizesAndFrameworkTotalsBelongToTheirEvents) {
  TempFolder folder;
  FakeProbe probe;
  auto& a = probe.start_thread(11, "main");
  probe.define_device(&a, 5, 1, 3);
  const uint64_t wide = (uint64_t{3} << 37) + 12345;
  probe.alloc(&a, 5000, 0x10, wide, 0, 5);
  probe.totals(&a, 5000, wide, wide * 2 + 512 + 7, 5);
  probe.free(&a, 6000, 0x10, 5, wide);
  ASSERT_EQ(probe.save(folder.file("x.gmp")), 0);
  auto read = read_all({folder.path()});
  ASSERT_EQ(read.events.size(), 2u);
  EXPECT_EQ(read.events[0].size_bytes, wide);
  EXPECT_EQ(read.events[1].action, static_cast<uint8_t>(Action::kFreeRequested));
  ASSERT_EQ(read.totals.size(), 1u);
  EXPECT_EQ(read.totals[0].event, 0u);
  EXPECT_EQ(read.totals[0].allocated_bytes, wide);
  EXPECT_EQ(read.totals[0].reserved_bytes, wide * 2 + 512 + 7);
  EXPECT_EQ(read.device_names, (std::vector<std::string>{"cuda:3"}));
}

TEST(OpenRecording, TwoAllocatorsOfOneDeviceAreToldApartByTheirNames) {
  TempFolder folder;
  FakeProbe probe;
  auto& a = probe.start_thread(11, "main");
  probe.define_device(&a, 5, kTensorflowCpu, 0, "mklcpu");
  probe.define_device(&a, 6, kTensorflowCpu, 0, "cpu\"\x1b");
  probe.define_device(&a, 7, kTensorflowCpu, 0, "mklcpu");
  for (uint32_t device : {5, 6, 7}) probe.alloc(&a, 5000 + device, 0x10 * device, 64, 0, device);
  ASSERT_EQ(probe.save(folder.file("x.gmp")), 0);
  auto read = read_all({folder.path()});
  EXPECT_EQ(read.device_names, (std::vector<std::string>{"tensorflow:mklcpu", "tensorflow:cpu??"}));
}

TEST(OpenRecording, AtEqualTimesABlockIsFreedBeforeItsAddressIsGivenOutAgain) {
  TempFolder folder;
  FakeProbe probe;
  auto& a = probe.start_thread(11, "main");
  auto& b = probe.start_thread(12, "worker");
  probe.alloc(&b, 5000, 0x10, 8, 0);
  probe.alloc(&a, 6000, 0x10, 16, 0);
  probe.free(&b, 6000, 0x10);
  ASSERT_EQ(probe.save(folder.file("x.gmp")), 0);
  auto read = read_all({folder.path()});
  ASSERT_EQ(read.events.size(), 3u);
  EXPECT_EQ(read.events[1].action, static_cast<uint8_t>(Action::kFreeCompleted));
  EXPECT_EQ(read.events[2].size_bytes, 16u);
}

TEST(OpenRecording, FilesOfTwoMachinesAreReadOnOneClock) {
  TempFolder folder;
  FakeProbe early(1, 100), late(2, 200);
  early.header().realtime_ns = 1'700'000'000'000'000'000;
  early.header().monotonic_ns = 50'000'000'000;
  strcpy(late.header().boot_id, "boot-2");
  late.header().realtime_ns = 1'700'000'001'000'000'000;  // one second later, booted 50 s later
  late.header().monotonic_ns = 1'000'000'000;
  auto& a = early.start_thread(11, "main");
  auto& b = late.start_thread(12, "main");
  early.alloc(&a, 50'000'000'100, 0x10, 8, 0);
  early.alloc(&a, 51'000'000'300, 0x20, 8, 0);
  late.alloc(&b, 1'000'000'200, 0x30, 8, 0);
  ASSERT_EQ(early.save(folder.file("a.gmp")), 0);
  ASSERT_EQ(late.save(folder.file("b.gmp")), 0);
  auto read = read_all({folder.path()});
  ASSERT_EQ(read.events.size(), 3u);
  EXPECT_EQ(read.events[0].time_ns, 50'000'000'100u);
  EXPECT_EQ(read.events[1].address, 0x30u);
  EXPECT_EQ(read.events[1].time_ns, 51'000'000'200u);
  EXPECT_EQ(read.events[2].address, 0x20u);
}

TEST(OpenRecording, AProcessOnAnotherClockOfTheSameMachineIsSaid) {
  TempFolder folder;
  FakeProbe first(1, 100), second(2, 200), third(3, 300);
  second.header().monotonic_ns += 500'000'000;  // began half a second later
  second.header().realtime_ns += 500'000'000;
  third.header().monotonic_ns += 100'001'000'000'000;  // one second later, in a time namespace
  third.header().realtime_ns += 1'000'000'000;
  int number = 0;
  for (FakeProbe* probe : {&first, &second, &third}) {
    auto& thread = probe->start_thread(11, "main");
    probe->alloc(&thread, 100'002'000'000'000, 0x10, 8, 0);
    ASSERT_EQ(probe->save(folder.file(std::to_string(number++) + ".gmp")), 0);
  }
  const auto read = read_all({folder.path()});
  ASSERT_EQ(read.events.size(), 3u);
  std::vector<std::string> clocks;
  for (const LossReason& one : read.loss.reasons) {
    if (one.reason.find("clock") != std::string::npos) clocks.push_back(one.reason);
  }
  ASSERT_EQ(clocks.size(), 1u);
  EXPECT_TRUE(clocks[0].starts_with("1 process have a start clock that differs by up to 100000 s"))
      << clocks[0];
}

TEST(OpenRecording, WithoutAPhaseNoEventIsLost) {
  TempFolder folder;
  FakeProbe probe;
  probe.state().lost[format::kLostPhase] = 2;
  auto& a = probe.start_thread(11, "main");
  probe.alloc(&a, 5000, 0x10, 8, 0);
  ASSERT_EQ(probe.save(folder.file("x.gmp")), 0);
  auto read = read_all({folder.path()});
  EXPECT_TRUE(read.loss.has_every_event());
  ASSERT_EQ(read.loss.reasons.size(), 1u);
  EXPECT_EQ(read.loss.reasons[0].reason, "2 phases are not known: too many were open at once");
}

TEST(OpenRecording, WhatTheWriterLostIsSaidInWords) {
  TempFolder folder;
  FakeProbe probe;
  probe.state().lost[format::kLostNoSpace] = 17;
  probe.state().lost[format::kLostStack] = 3;
  auto& a = probe.start_thread(11, "main");
  probe.alloc(&a, 5000, 0x10, 8, 0);
  ASSERT_EQ(probe.save(folder.file("x.gmp")), 0);
  std::ofstream(folder.file("meta.json"))
      << R"({"not_recorded": [{"pid": 5, "command": "sudo x", "reason": "setuid"}]})";
  auto read = read_all({folder.path()});
  EXPECT_EQ(read.loss.events, 17u);
  ASSERT_EQ(read.loss.reasons.size(), 3u);
  EXPECT_EQ(read.loss.reasons[0].events, 17u);
  EXPECT_EQ(read.loss.reasons[1].reason,
            "3 events have no stack: the interpreter was exiting, or the program closed "
            "libunwind's descriptors");
  EXPECT_EQ(read.loss.reasons[2].reason, "not recorded: process 5 (sudo x): setuid");
}

TEST(OpenRecording, WhatIsNoRecordingIsOneLineWithAnOffset) {
  TempFolder folder;
  EXPECT_EQ(open_recording({folder.file("missing.gmp")}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(open_recording({folder.path()}).error().code, ErrorCode::kNotFound);
  for (const std::string& content : {std::string(), std::string("hello"), std::string(9000, 'x'),
                                     std::string(5000, '\0'), std::string("\x89GMP\r\n\x1a\n")}) {
    std::ofstream(folder.file("x.gmp"), std::ios::binary) << content;
    auto opened = open_recording({folder.file("x.gmp")});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kBadInput);
    EXPECT_TRUE(opened.error().offset.has_value());
    EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
  }
  FakeProbe probe;
  probe.header().major = 2;
  ASSERT_EQ(probe.save(folder.file("x.gmp")), 0);
  EXPECT_EQ(open_recording({folder.file("x.gmp")}).error().code, ErrorCode::kUnsupported);
}

TEST(OpenRecording, OneForeignFileAmongSeveralIsStatedAsLost) {
  TempFolder folder;
  FakeProbe probe;
  probe.alloc(&probe.start_thread(11, "main"), 5000, 0x10, 8, 0);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  std::ofstream(folder.file("b.gmp")) << "hello";
  auto read = read_all({folder.path()});
  EXPECT_EQ(read.events.size(), 1u);
  ASSERT_EQ(read.loss.reasons.size(), 1u);
  EXPECT_NE(read.loss.reasons[0].reason.find("not a gpumemprof recording (at byte 0)"),
            std::string::npos);
}

}  // namespace
}  // namespace gpumemprof
