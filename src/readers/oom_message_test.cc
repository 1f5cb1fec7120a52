#include "readers/oom_message.h"

#include <gtest/gtest.h>

#include <random>

namespace gpumemprof {
namespace {

OomLog scan(std::string_view text, size_t piece = 1 << 20) {
  OomScanner scanner;
  for (size_t at = 0; at < text.size(); at += piece) scanner.feed(text.substr(at, piece));
  return scanner.finish();
}

OomMessage only(std::string_view text) {
  OomLog log = scan(text);
  EXPECT_EQ(log.messages.size(), 1u) << text;
  return log.messages.empty() ? OomMessage{} : log.messages[0];
}

std::string text_of(const std::optional<PrintedSize>& size) { return size ? size->text : "-"; }

// Messages as PyTorch composes them, one of each wording.
constexpr std::string_view kTwo =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.95 GiB. GPU 3 has a total "
    "capacity of 23.52 GiB of which 73.75 MiB is free. Process 71 has 512.00 MiB memory in use. "
    "Process 72 has 2.00 GiB memory in use. Including non-PyTorch memory, this process has 21.44 "
    "GiB memory in use. 22.00 GiB allowed; Of the allocated memory 19.00 GiB is allocated by "
    "PyTorch, with 118.00 MiB allocated in private pools (e.g., CUDA Graphs), and 1.54 GiB is "
    "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
    "Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)\n";
constexpr std::string_view kOne =
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 7.80 GiB total "
    "capacity; 6.50 GiB already allocated; 10.31 MiB free; 7.00 GiB allowed; 6.60 GiB reserved in "
    "total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to "
    "avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF\n";

TEST(OomMessage, AllFiguresOfPyTorch2) {
  const OomMessage m = only(kTwo);
  EXPECT_EQ(m.wording, OomWording::kPyTorch2);
  EXPECT_EQ(m.backend, "CUDA");
  EXPECT_EQ(m.device, 3u);
  EXPECT_EQ(text_of(m.requested), "1.95 GiB");
  EXPECT_EQ(text_of(m.capacity), "23.52 GiB");
  EXPECT_EQ(text_of(m.free), "73.75 MiB");
  EXPECT_EQ(text_of(m.process_in_use), "21.44 GiB");
  EXPECT_EQ(text_of(m.allowed), "22.00 GiB");
  EXPECT_EQ(text_of(m.allocated), "19.00 GiB");
  EXPECT_EQ(text_of(m.private_pools), "118.00 MiB");
  EXPECT_EQ(text_of(m.unallocated), "1.54 GiB");
  ASSERT_EQ(m.processes.size(), 2u);
  EXPECT_EQ(m.processes[1].pid, 72u);
  EXPECT_EQ(m.processes[1].in_use.text, "2.00 GiB");
  EXPECT_EQ(m.hint_variable, "PYTORCH_ALLOC_CONF");
  EXPECT_TRUE(m.hints_expandable_segments);
  EXPECT_EQ(m.offset, kTwo.find("out of memory"));
}

TEST(OomMessage, ATracebackAboveItSaysWhoAsked) {
  const std::string text = std::string(9000, 'x') + "\n  File \"/me/train.py\", line 7, in step\n" +
                           "    model(x)\n" + std::string(kTwo);
  for (const size_t piece : {text.size(), size_t{61}}) {
    const OomLog log = scan(text + std::string(20000, 'y') + '\n' + std::string(kTwo), piece);
    ASSERT_EQ(log.messages.size(), 1u);
    EXPECT_EQ(log.messages[0].times, 2u);
    EXPECT_EQ(log.messages[0].asked_at.file, "/me/train.py");
    EXPECT_EQ(log.messages[0].asked_at.line, 7u);
    EXPECT_EQ(log.messages[0].asked_at.code, "model(x)");
  }
}

TEST(OomMessage, AllFiguresOfPyTorch1) {
  const OomMessage m = only(kOne);
  EXPECT_EQ(m.wording, OomWording::kPyTorch1);
  EXPECT_EQ(m.device, 1u);
  EXPECT_EQ(text_of(m.requested), "20.00 MiB");
  EXPECT_EQ(text_of(m.capacity), "7.80 GiB");
  EXPECT_EQ(text_of(m.allocated), "6.50 GiB");
  EXPECT_EQ(text_of(m.free), "10.31 MiB");
  EXPECT_EQ(text_of(m.allowed), "7.00 GiB");
  EXPECT_EQ(text_of(m.reserved), "6.60 GiB");
  EXPECT_EQ(m.hint_variable, "PYTORCH_CUDA_ALLOC_CONF");
  EXPECT_FALSE(m.hints_expandable_segments);
  EXPECT_EQ(text_of(only("CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 4.00 GiB total "
                         "capacity; 3.00 GiB already allocated; 0 bytes free; 25.00 MiB cached)")
                        .reserved),
            "25.00 MiB");
}

TEST(OomMessage, OtherBackends) {
  const OomMessage hip = only(
      "HIP out of memory. Tried to allocate 978.00 MiB. GPU 0 has a total capacity of 15.98 GiB of "
      "which 630.00 MiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 "
      "bytes is reserved by PyTorch but unallocated. If reserved but unallocated memory is large "
      "try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.");
  EXPECT_EQ(hip.backend, "HIP");
  EXPECT_EQ(hip.hint_variable, "PYTORCH_HIP_ALLOC_CONF");
  EXPECT_EQ(text_of(hip.allocated), "0 bytes");
  const OomMessage xpu = only(
      "XPU out of memory. Tried to allocate 1.00 GiB. GPU 1 has a total capacity of 63.98 GiB. Of "
      "the allocated memory 60.00 GiB is allocated by PyTorch, and 3.00 GiB is reserved by PyTorch "
      "but unallocated. Please use `empty_cache` to release all unoccupied cached memory.");
  EXPECT_EQ(xpu.backend, "XPU");
  EXPECT_EQ(text_of(xpu.capacity), "63.98 GiB");
  EXPECT_FALSE(xpu.free);
  const OomMessage npu = only(
      "RuntimeError: NPU out of memory. Tried to allocate 31.67 GiB (NPU 2; 32.00 GiB total "
      "capacity; 6.30 GiB already allocated; 24.39 GiB free; 6.55 GiB reserved in total by "
      "PyTorch)");
  EXPECT_EQ(npu.backend, "NPU");
  EXPECT_EQ(npu.device, 2u);
  const OomMessage mps = only(
      "MPS backend out of memory (MPS allocated: 7.64 GiB, other allocations: 1.00 MiB, max "
      "allowed: 9.07 GiB). Tried to allocate 256.00 MiB on private pool.");
  EXPECT_EQ(mps.wording, OomWording::kPyTorchMps);
  EXPECT_EQ(text_of(mps.allowed), "9.07 GiB");
  const OomMessage cpu = only(
      "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: "
      "you tried to allocate 2359296 bytes. Error code 12 (Cannot allocate memory)");
  EXPECT_EQ(cpu.requested->least_bytes, 2359296u);
  EXPECT_EQ(cpu.requested->most_bytes, 2359296u);
  EXPECT_EQ(only("RuntimeError: CUDA error: out of memory\nCUDA kernel errors").wording,
            OomWording::kWithoutNumbers);
}

TEST(OomMessage, OfNumpyHasTheArraysShapeAndType) {
  const OomMessage array = only(
      "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1.00 GiB for an array with "
      "shape (8192, 16384) and data type float64\n");
  EXPECT_EQ(array.wording, OomWording::kNumpy);
  EXPECT_EQ(text_of(array.requested), "1.00 GiB");
  EXPECT_EQ(array.shape, "8192, 16384");
  EXPECT_EQ(array.type, "float64");
  const OomMessage whole = only(
      "Unable to allocate 512. MiB for an array with shape (67108864,) and data type float64");
  EXPECT_EQ(whole.requested->bytes, uint64_t{512} << 20);
  OomScanner other;
  other.feed("Unable to allocate a port for an array with shape (1) and data type x");
  EXPECT_TRUE(other.finish().messages.empty());
}

TEST(OomMessage, TheAsyncBackendSaysWhereThereIsNoLimit) {
  constexpr std::string_view kAsync =
      "torch.OutOfMemoryError: Allocation on device 5 would exceed allowed memory. (out of "
      "memory)\n"
      "Currently allocated     : 4.86 GiB\nRequested               : 10.12 GiB\n"
      "Device limit            : 24.00 GiB\nFree (according to CUDA): 0 bytes\n"
      "PyTorch limit (set by user-supplied memory fraction)\n"
      "                        : 17179869184.00 GiB\n";
  const OomMessage m = only(kAsync);
  EXPECT_EQ(m.device, 5u);
  EXPECT_EQ(text_of(m.requested), "10.12 GiB");
  EXPECT_EQ(text_of(m.capacity), "24.00 GiB");
  EXPECT_FALSE(m.allowed);
}

TEST(OomMessage, ReadsTheSameHoweverItWasWrapped) {
  std::string wrapped = "[rank3]: ";
  size_t column = 0;
  for (char c : kTwo) {
    if (c == ' ' && ++column % 5 == 0) {
      wrapped += column % 2 ? "  \n[rank3]: " : " \xe2\x94\x82\n\xe2\x94\x82 \x1b[31m";
    } else {
      wrapped += c;
    }
  }
  const OomMessage plain = only(kTwo), m = only(wrapped);
  EXPECT_EQ(m.rank, 3u);
  EXPECT_EQ(text_of(m.process_in_use), text_of(plain.process_in_use));
  EXPECT_EQ(text_of(m.unallocated), text_of(plain.unallocated));
  EXPECT_EQ(m.processes.size(), 2u);
  EXPECT_EQ(m.hint_variable, "PYTORCH_ALLOC_CONF");
}

TEST(OomMessage, EveryPlaceInALogAndTheSameMessageOnce) {
  std::string log = "step 1\n";
  for (int rank : {0, 1, 0}) log += "[rank" + std::to_string(rank) + "]: " + std::string(kOne);
  log += "2026-01-01 10:00:00 ERROR " + std::string(kTwo);
  for (size_t piece : {1u, 7u, 1000u, 100000u}) {
    const OomLog found = scan(log, piece);
    ASSERT_EQ(found.messages.size(), 3u) << piece;
    EXPECT_EQ(found.messages[0].rank, 0u);
    EXPECT_EQ(found.messages[0].times, 2u);
    EXPECT_EQ(found.messages[0].line, 2u);
    EXPECT_EQ(found.messages[1].rank, 1u);
    EXPECT_EQ(found.messages[1].line, 3u);
    EXPECT_FALSE(found.messages[2].rank);
    EXPECT_EQ(found.messages[2].line, 5u);
    EXPECT_EQ(found.messages[2].offset, log.find("out of memory", log.find("ERROR")));
    EXPECT_EQ(found.bytes_read, log.size());
  }
}

TEST(OomMessage, AFigureIsNeverTakenFromTheNextMessage) {
  const OomLog log = scan("CUDA out of memory. Tried to allocate 3.00 GiB\n" + std::string(kTwo));
  ASSERT_EQ(log.messages.size(), 2u);
  EXPECT_FALSE(log.messages[0].capacity);
  EXPECT_FALSE(log.messages[0].unallocated);
  EXPECT_TRUE(log.messages[1].capacity);
}

TEST(OomMessage, AdviceToSwitchItOnDoesNotMeanThatItIsOn) {
  EXPECT_FALSE(scan(kTwo).expandable_segments_on);
  for (size_t piece : {3u, 100000u}) {
    std::string text(20000, 'x');
    text += std::string(kTwo) + std::string(20000, 'y');
    EXPECT_FALSE(scan(text, piece).expandable_segments_on) << piece;
    text += "\nexport PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n";
    EXPECT_TRUE(scan(text, piece).expandable_segments_on) << piece;
  }
  EXPECT_TRUE(
      scan("env: {'PYTORCH_ALLOC_CONF': 'expandable_segments:True'}").expandable_segments_on);
}

TEST(OomMessage, TheSummaryOfARunNamesItsRecording) {
  const std::string text = std::string(kTwo) + "gpumemprof: Nothing was lost.\n" +
                           std::string(20'000, 'x') +
                           "\ngpumemprof: Next: gpumemprof analyze 'a b/rec'\nbye\n";
  for (size_t piece : {1, 7, 100, 4096, 1 << 20})
    EXPECT_EQ(scan(text, piece).analyze_command, "gpumemprof analyze 'a b/rec'") << piece;
  EXPECT_EQ(scan("tfmemprof: Next: tfmemprof analyze rec").analyze_command, "tfmemprof analyze rec");
  EXPECT_EQ(scan("gpumemprof: Next: ../bin/gpumemprof analyze rec\n").analyze_command,
            "gpumemprof analyze rec");
  EXPECT_EQ(scan(kTwo).analyze_command, "");
}

TEST(OomMessage, ACommandThatAShellReadsAsMoreIsNone) {
  for (const char* word : {"rec; rm -rf x", "$(x)", "a b", "'a'b'", "''", "-x", "", "a|b", "`x`"})
    EXPECT_EQ(scan(std::string("gpumemprof: Next: gpumemprof analyze ") + word + "\n").analyze_command,
              "")
        << word;
  EXPECT_EQ(scan("gpumemprof: Next: rm -rf x\n").analyze_command, "");
}

TEST(OomMessage, SentencesThatTheNewestReleaseAdds) {
  std::string text(kTwo.substr(0, kTwo.find(" If reserved")));
  text +=
      " expandable_segments is enabled. If instead the process is running out of virtual address "
      "space (VSZ), reduce it via PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve.";
  EXPECT_TRUE(only(text).expandable_segments_on);
  EXPECT_TRUE(scan(text).expandable_segments_on);
  EXPECT_FALSE(only(text).hints_expandable_segments);
  const OomMessage limit = only(
      "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
      "per_process_memory_fraction limit. Requested size: 2.00 GiB");
  EXPECT_TRUE(limit.is_own_limit);
  EXPECT_EQ(text_of(limit.requested), "2.00 GiB");
  const OomMessage reserve = only(
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of "
      "which "
      "4.00 GiB is free. Of the allocated memory 1.00 GiB is allocated by PyTorch, and 1.00 MiB is "
      "reserved by PyTorch but unallocated. This allocation exceeds the expandable-segment reserve "
      "of "
      "1.00 GiB, and a single allocation cannot span expandable segments.");
  EXPECT_TRUE(reserve.exceeds_reserve && reserve.expandable_segments_on);
  const OomMessage huge = only("CUDA out of memory. Tried to allocate more than 1EB memory.");
  EXPECT_EQ(huge.requested->least_bytes, uint64_t{1} << 60);
  EXPECT_EQ(huge.requested->most_bytes, UINT64_MAX);
}

TEST(OomMessage, PrintedSizesStandForTheRangeThatRoundsToThem) {
  const PrintedSize two = *parse_printed_size("2.00 MiB.");
  EXPECT_EQ(two.text, "2.00 MiB");
  EXPECT_EQ(two.bytes, 2u << 20);
  EXPECT_EQ(two.least_bytes, (2u << 20) - 5243u) << "0.005 MiB = 5242.88 bytes";
  EXPECT_EQ(two.most_bytes, (2u << 20) + 5243u);
  EXPECT_EQ(parse_printed_size("17179869184.00 GiB")->most_bytes, UINT64_MAX);
  for (std::string_view wrong : {"", "GiB", "12", "12 Gi", "1.5", "99999999999999999999999 GiB",
                                 "18446744073709551616 GiB", "12 GiBs", ". GiB"}) {
    EXPECT_FALSE(parse_printed_size(wrong)) << wrong;
  }
}

TEST(OomMessage, TruncatedAtEveryByteItNeverInventsAFigure) {
  const OomMessage whole = only(kTwo);
  for (size_t end = 0; end < kTwo.size(); ++end) {
    const OomLog log = scan(kTwo.substr(0, end));
    ASSERT_LE(log.messages.size(), 1u);
    if (log.messages.empty()) continue;
    const OomMessage& m = log.messages[0];
    const auto same_or_absent = [&](auto member) {
      return !(m.*member) || text_of(m.*member) == text_of(whole.*member);
    };
    ASSERT_TRUE(same_or_absent(&OomMessage::requested) && same_or_absent(&OomMessage::capacity) &&
                same_or_absent(&OomMessage::free) && same_or_absent(&OomMessage::allocated) &&
                same_or_absent(&OomMessage::unallocated) &&
                same_or_absent(&OomMessage::process_in_use))
        << end;
  }
}

TEST(OomMessage, AnyByteChangedAnyBytesAtAllAreSurvived) {
  for (size_t at = 0; at < kTwo.size(); ++at) {
    std::string text(kTwo);
    text[at] = static_cast<char>(text[at] ^ 0x55);
    ASSERT_LE(scan(text, 13).messages.size(), 1u);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string text;
    while (text.size() < 2000) {
      const size_t from = random() % kTwo.size();
      text += kTwo.substr(from, random() % 60);
      text += static_cast<char>(random());
    }
    (void)scan(text, 1 + random() % 300);
  }
}

TEST(OomMessage, ALogOfNothingButBeginningsIsReadInLinearTime) {
  for (std::string_view part : {"out of ", "out of memory. Tried to allocate ", "out of\nmemory (",
                                "you tried to allocate ", "CUDA error: out of memory"}) {
    std::string text;
    while (text.size() < 4 << 20) text += part;
    EXPECT_LE(scan(text).messages.size(), 1u) << part;  // else this test takes hours
  }
}

TEST(OomMessage, MoreMessagesThanAreKeptAreCounted) {
  std::string text;
  for (size_t i = 0; i < kMaxOomMessages + 10; ++i) {
    text += "CUDA out of memory. Tried to allocate " + std::to_string(i) + ".00 GiB.\n";
  }
  const OomLog log = scan(text, 4096);
  EXPECT_EQ(log.messages.size(), kMaxOomMessages);
  EXPECT_EQ(log.more_messages, 10u);
}

}  // namespace
}  // namespace gpumemprof
