// Recordings that hold an allocator's own history, written as the probe does and read back, raw and
// sealed.
#include "recording/allocator_history.h"

#include <gtest/gtest.h>

#include "base/size.h"
#include "base/varint.h"
#include "format/format.h"
#include "recording/fake_probe.h"
#include "recording/open.h"
#include "recording/seal.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

using namespace format;
using for_tests::FakeProbe;
using for_tests::TempFolder;

constexpr uint64_t kBase = 0x7f0000000000;
constexpr uint8_t kCuda = 2;  // the device class

/// Writes what torch_cuda.cc writes.
class Allocator {
 public:
  explicit Allocator(FakeProbe* probe, const std::string& why_not = "") : probe_(probe) {
    probe->write_as_dead_process();
    thread_ = &probe->start_thread(11, "main");
    std::string device;
    put_number(&device, kCuda), put_number(&device, int8_t{1}), put_number(&device, int8_t{0});
    put_number(&device, uint8_t{2}), put_number(&device, uint8_t{0});
    probe->define(thread_, kDefDevice, device);
    tell(why_not);
    std::string place;
    put_number(&place, uint32_t{1}), put_number(&place, int64_t{4096});
    put_number(&place, int64_t{0}), put_number(&place, int64_t{5});
    probe->define(thread_, kDefPlacement, place);
    stack_ = probe->define_stack(thread_, {"main", "step"}, 3);
  }
  void tell(const std::string& why_not) {
    std::string body;
    put_number(&body, int8_t{1}), put_number(&body, int8_t{0});
    put_number(&body, static_cast<uint8_t>(why_not.empty())), put_number(&body, uint8_t{0});
    put_number(&body, uint64_t{80} << 30);
    const std::string version = "2.13.0+cu130", settings = "max_split_size_mb:64";
    put_number(&body, static_cast<uint16_t>(version.size()));
    put_number(&body, static_cast<uint16_t>(settings.size()));
    probe_->define(thread_, kDefAllocator, body + version + settings + why_not);
  }
  void pair(uint32_t detail, uint64_t address, uint64_t units) {
    put(kRawWide, 0, 0, detail);
    put(kRawTotals, address, units, detail == kDetailDeviceFree ? 0 : stack_);
  }
  void event(RawAction action, uint64_t address, uint64_t size, uint32_t detail = 0,
             uint64_t requested = 0) {
    if (detail != 0 || requested != 0) put(kRawWide, requested, 0, detail);
    put(action, address, size, action == kRawFreeRequested ? 0 : stack_);
  }
  void totals(uint64_t allocated, uint64_t reserved) {
    put(kRawTotals, allocated, reserved / 512, 0);
  }
  FakeProbe::Thread* thread() { return thread_; }

 private:
  void put(RawAction action, uint64_t address, uint64_t size, uint32_t stack) {
    probe_->record(thread_, pack(++time_, address, kCuda, size, action, stack,
                                 salt(thread_->stream, thread_->events_sequence)));
  }
  FakeProbe* probe_;
  FakeProbe::Thread* thread_;
  uint32_t stack_ = 0;
  uint64_t time_ = 5000;
};

constexpr uint32_t kPlace = 1 << 4;

/// A segment of a private pool on another stream, a block in it whose free waits, and a refusal.
void small_run(Allocator* allocator) {
  allocator->pair(kDetailSegmentAlloc | kPlace, kBase, 20 * kMiB / 512);
  allocator->event(kRawAlloc, kBase, 4 * kMiB, kPlace, 4 * kMiB - 300);
  allocator->totals(4 * kMiB, 20 * kMiB);
  allocator->event(kRawFreeRequested, kBase, 4 * kMiB, kPlace | kDetailDelayedFree);
  allocator->totals(0, 20 * kMiB);
  allocator->pair(kDetailDeviceFree, 3 * kMiB, 0);
  allocator->event(kRawOom, 0, 30 * kMiB, kPlace);
  allocator->totals(0, 20 * kMiB);
  allocator->event(kRawFreeCompleted, kBase, 0);
  allocator->pair(kDetailSegmentFree, kBase, 20 * kMiB / 512);
}

Result<AllocatorSnapshot> history_of(const std::string& path) {
  auto source = open_recording({path});
  if (!source) return std::unexpected(source.error());
  return read_allocator_history(**source);
}

void expect_small_run(const Result<AllocatorSnapshot>& snapshot) {
  ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
  EXPECT_EQ(snapshot->info.writer_version_hint, "torch 2.13");
  EXPECT_EQ(snapshot->settings.conf, "max_split_size_mb:64");
  ASSERT_EQ(snapshot->traces.size(), 1u);
  const AllocatorTrace& trace = snapshot->traces[0];
  EXPECT_EQ(trace.device_bytes, uint64_t{80} << 30);
  ASSERT_EQ(trace.events.size(), 6u);
  const Action expected[] = {Action::kSegmentAlloc, Action::kAlloc,         Action::kFreeRequested,
                             Action::kOom,          Action::kFreeCompleted, Action::kSegmentFree};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(trace.events[i].action, expected[i]) << i;
    EXPECT_EQ(trace.streams[trace.events[i].stream], 4096) << i;
    EXPECT_EQ(trace.pools[trace.events[i].pool], (std::pair<int64_t, int64_t>{0, 5})) << i;
  }
  EXPECT_EQ(trace.events[1].size_bytes, 4 * kMiB - 300);
  EXPECT_EQ(trace.events[3].address, 3 * kMiB);
  EXPECT_EQ(trace.events[3].size_bytes, 30 * kMiB);
  EXPECT_TRUE(trace.segments.empty());
  const std::vector<std::string> lines = stack_lines(snapshot->tables, trace.events[1].stack);
  EXPECT_EQ(lines, (std::vector<std::string>{"step.py:3 step", "main.py:3 main"}));
}

TEST(AllocatorHistory, IsReadRawAndSealedAlike) {
  TempFolder folder;
  FakeProbe probe;
  Allocator allocator(&probe);
  small_run(&allocator);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  expect_small_run(history_of(folder.path()));
  ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
  expect_small_run(history_of(folder.path()));
}

TEST(AllocatorHistory, ABlockIsCountedOnceAndSegmentsAreNoBlocks) {
  TempFolder folder;
  FakeProbe probe;
  Allocator allocator(&probe);
  small_run(&allocator);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  const for_tests::EverythingRead read = for_tests::read_all({folder.path()});
  EXPECT_EQ(read.loss.reasons.size(), 0u);
  EXPECT_EQ(read.events.size(), 6u);
  EXPECT_EQ(read.totals.size(), 3u);
  EXPECT_EQ(read.requested, (std::vector<std::pair<uint64_t, uint64_t>>{{1, 4 * kMiB - 300}}));
}

TEST(AllocatorHistory, IsRefusedWithTheReasonWhereItWasNotFollowedToTheEnd) {
  TempFolder folder;
  FakeProbe probe;
  Allocator allocator(&probe);
  small_run(&allocator);
  allocator.tell("recording was paused");
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  for (const bool sealed : {false, true}) {
    if (sealed) {
      ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
    }
    const auto snapshot = history_of(folder.path());
    ASSERT_FALSE(snapshot.has_value());
    EXPECT_NE(snapshot.error().message.find("cuda:0: recording was paused"), std::string::npos)
        << snapshot.error().message;
  }
}

TEST(AllocatorHistory, OfARecordingWithoutOneIsRefused) {
  TempFolder folder;
  FakeProbe probe;
  probe.write_as_dead_process();
  auto& thread = probe.start_thread(11, "main");
  probe.alloc(&thread, 10, kBase, 64, 0);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  const auto snapshot = history_of(folder.path());
  ASSERT_FALSE(snapshot.has_value());
  EXPECT_NE(snapshot.error().message.find("no CUDA memory was recorded"), std::string::npos);
}

TEST(AllocatorHistory, OfADamagedFileIsThatOfTheWholeOneOrRefused) {
  TempFolder folder;
  FakeProbe probe;
  Allocator allocator(&probe);
  small_run(&allocator);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
  const std::string whole = for_tests::read_file(folder.file("a.gmp"));
  const std::string path = folder.file("b.gmp");
  int refused = 0;
  const auto check = [&](const std::string& bytes) {
    for_tests::write_file(path, bytes);
    const auto snapshot = history_of(path);
    if (!snapshot) return void(++refused);
    // A lost chunk of details leaves a history that contradicts itself, or none; never another.
    ASSERT_EQ(snapshot->traces.size(), 1u);
    EXPECT_LE(snapshot->traces[0].events.size(), 6u);
  };
  for (size_t size = 0; size < whole.size(); size += size < 4096 ? 64 : 1) {
    if (size > 4096 && whole[size] == 0 && size % 61 != 0) continue;  // the zeros between chunks
    check(whole.substr(0, size));
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    if (whole[at] == 0 && at % 61 != 0) continue;
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x41);
    check(bytes);
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace gpumemprof
