#include "analysis/driver/driver_memories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "base/size.h"
#include "probe/driver_link.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A recording in which events of the driver can be written down one after the other.
class Driven {
 public:
  Driven() {
    tables_.processes.push_back({.pid = 7});
    tables_.threads.push_back({.process = 0});
  }
  void came(DriverUse use, uint64_t address, uint64_t bytes, const char* library = "libmine.so") {
    add(use, Action::kAlloc, address, bytes, stack_of(library));
  }
  void went(DriverUse use, uint64_t address) { add(use, Action::kFreeCompleted, address, 0, 0); }
  /// A block of the framework's allocator, and its totals after it.
  void framework(uint64_t allocated, uint64_t reserved) {
    const uint16_t device = device_of({.type = 1, .index = 0, .layer = Layer::kAllocator});
    append(&events_, {.time_ns = ++time_, .address = time_, .size_bytes = 1, .device = device});
    events_.totals.push_back({static_cast<uint32_t>(events_.size() - 1), allocated, reserved});
  }
  /// The same of a block of the framework's at this address; 0 bytes: its free.
  void block(uint64_t address, uint64_t bytes, uint64_t allocated, uint64_t reserved,
             bool is_delayed = false) {
    framework(allocated, reserved);
    const size_t last = events_.size() - 1;
    events_.address[last] = address, events_.size_bytes[last] = bytes;
    if (bytes == 0) events_.action[last] = Action::kFreeRequested;
    if (is_delayed)
      events_.details.push_back({.event = static_cast<uint32_t>(last), .is_delayed_free = true});
  }
  /// What is told from here on is of this device.
  void on(int8_t index, int8_t type = 1) { index_ = index, type_ = type; }
  std::shared_ptr<const DriverMemories> read(
      const std::vector<TruthOfProcess>* truths = nullptr) const {
    DriverGatherer gatherer(truths);
    gatherer.take(events_, tables_);
    return gatherer.finish(tables_);
  }
  DriverDevice device() const { return read()->devices.at(0); }
  const EventBatch& events() const { return events_; }
  const Tables& tables() const { return tables_; }

 private:
  uint16_t device_of(const Device& device) {
    for (size_t i = 0; i < tables_.devices.size(); ++i)
      if (tables_.devices[i] == device) return static_cast<uint16_t>(i);
    tables_.devices.push_back(device);
    return static_cast<uint16_t>(tables_.devices.size() - 1);
  }
  uint32_t stack_of(const char* library) {
    const Frame frame = {tables_.strings.intern("<driver>"), tables_.strings.intern(library), 0};
    return tables_.stacks.push(0, tables_.stacks.intern_frame(frame));
  }
  void add(DriverUse use, Action action, uint64_t address, uint64_t bytes, uint32_t stack) {
    const bool is_host = use == DriverUse::kPinned || use == DriverUse::kRegistered;
    const std::string name = std::string("driver ") + kDriverKindNames[static_cast<size_t>(use)];
    const uint16_t device = device_of({.type = static_cast<int8_t>(is_host ? 0 : type_),
                                       .index = index_,
                                       .layer = Layer::kDriver,
                                       .name = name});
    append(&events_, {++time_, action, address, bytes, stack, 0, device});
  }
  Tables tables_;
  EventBatch events_;
  uint64_t time_ = 0;
  int8_t index_ = 0, type_ = 1;
};

TEST(DriverMemories, AreCalledAsTheProbeCallsThem) {
  ASSERT_EQ(kDriverUses, static_cast<size_t>(probe::kDriverKinds));
  for (size_t use = 0; use < kDriverUses; ++use) {
    EXPECT_EQ(std::string("driver ") + kDriverKindNames[use], probe::kDriverMemoryNames[use]);
  }
}

TEST(DriverMemories, AreNoneWhereTheDriverWasNotRecorded) {
  Driven driven;
  driven.framework(5, 10);
  EXPECT_EQ(driven.read(), nullptr);
}

TEST(DriverMemories, SmallBlocksShareAPage) {
  Driven driven;
  const uint64_t page = 512 * kDriverPageBytes;
  driven.came(DriverUse::kMemory, page, 1000);
  driven.came(DriverUse::kMemory, page + 1024, 3000);
  EXPECT_EQ(driven.device().end.rounding_bytes, kDriverPageBytes - 4000);
  driven.went(DriverUse::kMemory, page);
  EXPECT_EQ(driven.device().end.rounding_bytes, kDriverPageBytes - 3000);
  driven.went(DriverUse::kMemory, page + 1024);
  EXPECT_EQ(driven.device().end.rounding_bytes, 0u);
}

TEST(DriverMemories, ALargeBlockHasItsPagesForItself) {
  Driven driven;
  driven.came(DriverUse::kMemory, 512 * kDriverPageBytes, 5 * kMiB + 1);
  EXPECT_EQ(driven.device().end.rounding_bytes, 6 * kMiB - (5 * kMiB + 1));
  driven.came(DriverUse::kMemory, 1024 * kDriverPageBytes, 4 * kMiB);  // to the end of a page
  EXPECT_EQ(driven.device().end.rounding_bytes, 6 * kMiB - (5 * kMiB + 1));
}

TEST(DriverMemories, ABlockThatCannotBeIsNoHarm) {
  Driven driven;
  driven.came(DriverUse::kMemory, UINT64_MAX - 10, UINT64_MAX);
  driven.came(DriverUse::kMemory, 0, UINT64_MAX / 2);
  driven.went(DriverUse::kMemory, 0);
  driven.went(DriverUse::kMemory, 12345);
  driven.went(DriverUse::kMemory, UINT64_MAX - 10);
  EXPECT_EQ(driven.device().end.asked_bytes(), 0u);
}

TEST(DriverMemories, APoolCountsWithWhatItReserved) {
  Driven driven;
  driven.came(DriverUse::kInPools, 0x1000, 3 * kMiB);
  driven.came(DriverUse::kPools, 0x55, 32 * kMiB);
  driven.went(DriverUse::kPools, 0x55);
  driven.came(DriverUse::kPools, 0x55, 64 * kMiB);
  const DriverDevice device = driven.device();
  EXPECT_EQ(device.end.asked_bytes(), 64 * kMiB);
  EXPECT_EQ(device.end.of(DriverUse::kInPools), 3 * kMiB);
}

TEST(DriverMemories, LevelsOverTimeAreThoseOfThePeakAndOfTheEnd) {
  Driven driven;
  driven.came(DriverUse::kMemory, 0x1000, 3 * kMiB);
  driven.framework(kMiB, 2 * kMiB);
  driven.came(DriverUse::kPools, 0x55, 32 * kMiB);
  driven.came(DriverUse::kInPools, 0x2000, 3 * kMiB);  // part of the pool
  driven.went(DriverUse::kPools, 0x55);
  driven.framework(0, kMiB);
  const DriverDevice device = driven.device();
  ASSERT_EQ(device.physical.buckets().size(), 1u);
  EXPECT_EQ(device.physical.buckets()[0].max_bytes, 35 * kMiB);
  EXPECT_EQ(device.physical.buckets()[0].last_bytes, 3 * kMiB);
  EXPECT_EQ(device.reserved.buckets().at(0).max_bytes, 2 * kMiB);
  EXPECT_EQ(device.reserved.buckets().at(0).last_bytes, kMiB);
}

TEST(DriverMemories, AMissedEndIsMadeGoodByTheNextBlock) {
  Driven driven;
  driven.came(DriverUse::kHandles, 0x1000, 20 * kMiB);
  driven.came(DriverUse::kHandles, 0x1000, 4 * kMiB, "libother.so");
  const DriverMoment end = driven.device().end;
  EXPECT_EQ(end.asked_bytes(), 4 * kMiB);
  ASSERT_EQ(end.libraries.size(), 1u);
  EXPECT_EQ(end.libraries[0].name, "libother.so");
}

TEST(DriverMemories, TheLastContextOfADeviceTakesItsMemoryAlong) {
  Driven driven;
  driven.came(DriverUse::kContexts, 0x300, 500 * kMiB);
  driven.came(DriverUse::kUnmeasured, 0x9000, 0);
  driven.came(DriverUse::kMemory, 512 * kDriverPageBytes, 10 * kMiB);
  driven.came(DriverUse::kHandles, 0x1000, 2 * kMiB);
  driven.went(DriverUse::kContexts, 0x300);
  EXPECT_EQ(driven.device().end.asked_bytes(), 12 * kMiB);
  driven.went(DriverUse::kUnmeasured, 0x9000);
  const DriverMoment end = driven.device().end;
  EXPECT_EQ(end.asked_bytes(), 2 * kMiB);
  EXPECT_EQ(end.rounding_bytes, 0u);
  ASSERT_EQ(end.libraries.size(), 1u);
  EXPECT_EQ(end.libraries[0].bytes, 2 * kMiB);
}

TEST(DriverMemories, WhatTheDeviceSaidIsTrueUntilSomethingChanges) {
  Driven driven;
  driven.came(DriverUse::kHandles, 0x1000, 2 * kMiB);
  driven.came(DriverUse::kDeviceUsed, 0x200, 100 * kMiB);
  EXPECT_EQ(driven.device().end.device_used_bytes, 100 * kMiB);
  EXPECT_EQ(driven.device().peak.device_used_bytes, 100 * kMiB);
  driven.came(DriverUse::kPinned, 0x2000, kMiB);  // no matter of the device's
  EXPECT_EQ(driven.device().end.device_used_bytes, 100 * kMiB);
  driven.went(DriverUse::kHandles, 0x1000);
  const DriverDevice device = driven.device();
  EXPECT_EQ(device.end.device_used_bytes, std::nullopt);
  EXPECT_EQ(device.asked->device_used_bytes, 100 * kMiB);
  EXPECT_EQ(device.asked->asked_bytes(), 2 * kMiB);
}

TEST(DriverMemories, AContextOfUnknownSizeChangesWhatTheDeviceSaid) {
  Driven driven;
  driven.came(DriverUse::kDeviceUsed, 0x200, 100 * kMiB);
  driven.came(DriverUse::kUnmeasured, 0x9000, 0);
  EXPECT_EQ(driven.device().end.device_used_bytes, std::nullopt);
}

TEST(DriverMemories, AFrameworkBeforeTheFirstEventIsOne) {
  Driven driven;
  driven.came(DriverUse::kHandles, 0x1000, 2 * kMiB, "libcudart.so.12");
  driven.framework(kMiB, 2 * kMiB);
  LiveState before;
  before.apply(driven.events());
  DriverGatherer gatherer;
  gatherer.seed(before, driven.tables());
  EXPECT_TRUE(gatherer.finish(driven.tables())->devices.at(0).end.libraries.at(0).is_framework);
}

TEST(DriverMemories, TheRuntimeIsTheFrameworksWhereThereIsOne) {
  Driven driven;
  driven.came(DriverUse::kHandles, 0x1000, 2 * kMiB, "libcudart.so.12");
  driven.came(DriverUse::kHandles, 0x2000, 4 * kMiB, "libcublas.so.12");
  EXPECT_FALSE(driven.device().end.libraries[1].is_framework);
  driven.framework(kMiB, 2 * kMiB);
  const DriverMoment end = driven.device().end;
  EXPECT_EQ(end.libraries[0].name, "libcublas.so.12");
  EXPECT_FALSE(end.libraries[0].is_framework);
  EXPECT_TRUE(end.libraries[1].is_framework);
}

TEST(DriverMemories, GoOnFromAStateBeforeTheFirstEvent) {
  Driven driven;
  driven.came(DriverUse::kHandles, 0x1000, 20 * kMiB);
  driven.came(DriverUse::kPinned, 0x2000, kMiB);
  LiveState before;
  before.apply(driven.events());
  DriverGatherer gatherer;
  gatherer.seed(before, driven.tables());
  const auto read = gatherer.finish(driven.tables());
  ASSERT_EQ(read->devices.size(), 1u);
  EXPECT_EQ(read->devices[0].end.asked_bytes(), 20 * kMiB);
  EXPECT_EQ(read->hosts.at(0).pinned_bytes, kMiB);
}

/// 10 MiB of a library, 20 of the framework's allocator and 1 beside it, a context.
DriverMoment some_moment() {
  DriverMoment moment;
  moment.live_bytes[static_cast<size_t>(DriverUse::kHandles)] = 31 * kMiB;
  moment.live_bytes[static_cast<size_t>(DriverUse::kContexts)] = 500 * kMiB;
  moment.rounding_bytes = 512;
  moment.libraries = {{"libc10_cuda.so", 21 * kMiB, true}, {"libnccl.so.2", 10 * kMiB, false}};
  moment.framework_allocated_bytes = 15 * kMiB;
  moment.framework_reserved_bytes = 20 * kMiB;
  moment.framework_unservable_bytes = 3 * kMiB;
  return moment;
}

DriverMoment with(const DeviceTruth& truth) {
  DriverMoment moment = some_moment();
  moment.truth = truth;
  return moment;
}

TEST(DeviceIdentity, AddsUpWithASignedRest) {
  const DeviceTruth truth = {.time_ns = 1,
                             .device_used_bytes = 2000 * kMiB,
                             .process_used_bytes = 540 * kMiB,
                             .others_used_bytes = 1000 * kMiB,
                             .reserved_bytes = 460 * kMiB};
  const DeviceIdentity sum = identity_of(with(truth));
  EXPECT_EQ(sum.explained_bytes(), 531 * kMiB + 512);
  EXPECT_EQ(sum.unexplained_bytes, static_cast<int64_t>(9 * kMiB - 512));
  EXPECT_EQ(*sum.device_used_bytes, *sum.reserved_bytes + *sum.others_bytes + *sum.process_bytes);
  EXPECT_EQ(static_cast<int64_t>(*sum.process_bytes),
            static_cast<int64_t>(sum.contexts_bytes + sum.modules_bytes + sum.libraries_bytes +
                                 sum.rounding_bytes + sum.framework_bytes) +
                *sum.unexplained_bytes);
  EXPECT_EQ(static_cast<int64_t>(sum.framework_bytes),
            static_cast<int64_t>(*sum.framework_allocated_bytes + *sum.framework_cached_bytes) +
                *sum.framework_beside_bytes);
  EXPECT_THAT(sum.unknown, IsEmpty());
}

TEST(DriverMemories, WhatIsFreeBesideALiveBlockOfTheAllocatorIsPinned) {
  Driven driven;
  driven.came(DriverUse::kMemory, 20 * kMiB, 20 * kMiB, "libcudart.so.12");
  driven.block(20 * kMiB, 6 * kMiB, 6 * kMiB, 20 * kMiB);
  driven.came(DriverUse::kHandles, 0x77, 2 * kMiB, "libc10_cuda.so");
  driven.came(DriverUse::kMapped, 100 * kMiB, 2 * kMiB, "libc10_cuda.so");
  driven.block(100 * kMiB, 2 * kMiB, 8 * kMiB, 22 * kMiB);
  driven.came(DriverUse::kMemory, 200 * kMiB, 4 * kMiB, "libcublas.so.12");
  EXPECT_EQ(driven.device().end.framework_unservable_bytes, 14 * kMiB);
  EXPECT_EQ(driven.device().peak.framework_unservable_bytes, 14 * kMiB);
  driven.block(100 * kMiB, 0, 6 * kMiB, 22 * kMiB, true);
  EXPECT_EQ(driven.device().end.framework_unservable_bytes, 16 * kMiB) << "a stream still uses it";
  driven.block(20 * kMiB, 0, 0, 22 * kMiB);
  EXPECT_EQ(driven.device().end.framework_unservable_bytes, 2 * kMiB);
}

TEST(DriverMemories, WhereTheAllocatorCountsOtherSegmentsNothingIsSaidOfPieces) {
  Driven driven;
  driven.came(DriverUse::kMemory, 20 * kMiB, 20 * kMiB, "libcudart.so.12");
  driven.block(20 * kMiB, 6 * kMiB, 6 * kMiB, 40 * kMiB);  // a segment from before the recording
  EXPECT_EQ(driven.device().end.framework_unservable_bytes, std::nullopt);
  EXPECT_THAT(identity_of(driven.device().end).unknown,
              testing::Contains(testing::Pair("framework.unservable", testing::_)));
}

/// As driver_proxy/watch.h makes it.
constexpr uint64_t key_of_place(PciAddress place) {
  return uint64_t{1} << 47 | uint64_t{place} << 6 | 63;
}

TEST(DriverMemories, SamplesOfSeveralDevicesAreToldApartByTheirPlaces) {
  constexpr PciAddress kFirst = 0x0700, kSecond = 0x4700, kOther = 0x8100;
  Driven driven;
  driven.came(DriverUse::kDeviceUsed, key_of_place(kSecond), 100 * kMiB);
  driven.came(DriverUse::kMemory, 20 * kMiB, 2 * kMiB);
  driven.on(1);
  driven.came(DriverUse::kDeviceUsed, key_of_place(kFirst), 200 * kMiB);
  driven.on(2);  // a device whose place nobody told
  driven.came(DriverUse::kMemory, 40 * kMiB, 2 * kMiB);
  std::vector<TruthOfProcess> truths;
  for (const PciAddress place : {kFirst, kSecond, kOther})
    truths.push_back({7, false, place, "", {.time_ns = 100, .process_used_bytes = place * kMiB}});
  const auto read = driven.read(&truths);
  ASSERT_EQ(read->devices.size(), 3u);
  EXPECT_EQ(read->devices[0].sampled->truth->process_used_bytes, kSecond * kMiB);
  EXPECT_EQ(read->devices[1].sampled->truth->process_used_bytes, kFirst * kMiB);
  EXPECT_EQ(read->devices[2].sampled, std::nullopt);
}

TEST(DriverMemories, ADeviceOfLevelZeroIsAnotherThanCudasOfItsNumber) {
  Driven driven;
  driven.came(DriverUse::kMemory, 20 * kMiB, kMiB);
  driven.on(0, 12);
  driven.came(DriverUse::kMemory, 20 * kMiB, 3 * kMiB);
  const std::vector<TruthOfProcess> truths = {
      {7, true, std::nullopt, "", {.time_ns = 100, .process_used_bytes = 5}}};
  const auto read = driven.read(&truths);
  ASSERT_EQ(read->devices.size(), 2u);
  EXPECT_EQ(driver_device_name(read->devices[0]), "cuda:0");
  EXPECT_EQ(read->devices[0].end.rounding_bytes, kMiB);
  EXPECT_EQ(driver_device_name(read->devices[1]), "xpu:0");
  EXPECT_EQ(read->devices[1].end.asked_bytes(), 3 * kMiB);
  EXPECT_EQ(read->devices[1].end.rounding_bytes, 0u) << "nobody told its pages";
  EXPECT_EQ(read->devices[1].sampled, std::nullopt) << "NVML's samples are not its";
}

TEST(DriverMemories, ASampleOfTheOnlyDeviceNeedsNoPlaceAndOfSeveralItIsNobodys) {
  Driven driven;
  driven.came(DriverUse::kMemory, 20 * kMiB, 2 * kMiB);
  const std::vector<TruthOfProcess> truths = {
      {7, true, std::nullopt, "", {.time_ns = 100, .process_used_bytes = 5}}};
  EXPECT_EQ(driven.read(&truths)->devices[0].sampled->truth->process_used_bytes, 5u);
  driven.on(1);
  driven.came(DriverUse::kMemory, 40 * kMiB, 2 * kMiB);
  const auto two = driven.read(&truths);
  ASSERT_EQ(two->devices.size(), 2u);
  for (const DriverDevice& device : two->devices) EXPECT_EQ(device.sampled, std::nullopt);
}

TEST(DeviceIdentity, TheRestCanBeNegative) {
  const DeviceTruth truth = {.process_used_bytes = 500 * kMiB};
  EXPECT_EQ(identity_of(with(truth)).unexplained_bytes, -static_cast<int64_t>(31 * kMiB + 512));
}

TEST(DeviceIdentity, WhatIsNotKnownIsNotGuessed) {
  DriverMoment moment = some_moment();
  moment.unmeasured_contexts = 1;
  moment.framework_reserved_bytes.reset();
  const DeviceIdentity sum = identity_of(moment);
  EXPECT_EQ(sum.process_bytes, std::nullopt);
  EXPECT_EQ(sum.unexplained_bytes, std::nullopt);
  EXPECT_EQ(sum.others_and_unexplained_bytes, std::nullopt);
  EXPECT_FALSE(sum.contexts_are_known);
  std::vector<std::string> terms;
  for (const auto& [term, why] : sum.unknown) terms.push_back(term);
  EXPECT_THAT(terms,
              ElementsAre("contexts", "explained", "framework.unservable", "framework_allocated",
                          "device_used", "process_used", "other_processes", "unexplained"));
}

TEST(DeviceIdentity, WithAnUnknownContextTheRestIsUnknown) {
  DriverMoment moment = with({.process_used_bytes = 540 * kMiB});
  moment.unmeasured_contexts = 1;
  EXPECT_EQ(identity_of(moment).unexplained_bytes, std::nullopt);
  EXPECT_THAT(identity_of(moment).unknown,
              testing::Contains(testing::Pair("unexplained", testing::HasSubstr("context"))));
  // Of the 531 MiB and 512 bytes that are explained with the context that is measured 540 are used.
  EXPECT_EQ(identity_of(moment).contexts_and_unexplained_bytes,
            static_cast<int64_t>(9 * kMiB - 512));
  moment = some_moment();
  moment.unmeasured_contexts = 1;
  moment.device_used_bytes = 600 * kMiB;
  EXPECT_EQ(identity_of(moment).others_and_unexplained_bytes, std::nullopt);
}

TEST(DeviceIdentity, WithoutASampleTheDevicesOwnWordBoundsTheRest) {
  DriverMoment moment = some_moment();
  moment.device_used_bytes = 600 * kMiB;
  const DeviceIdentity sum = identity_of(moment);
  EXPECT_EQ(sum.others_and_unexplained_bytes, static_cast<int64_t>(69 * kMiB - 512));
}

}  // namespace
}  // namespace gpumemprof
