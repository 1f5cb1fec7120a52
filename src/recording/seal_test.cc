#include "recording/seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "format/checksum.h"
#include "recording/chunk_scan.h"
#include "recording/compact.h"
#include "recording/fake_probe.h"
#include "recording/file_sealer.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

using for_tests::FakeProbe;
using for_tests::read_all;
using for_tests::TempFolder;

/// A file whose n-th change, and every one after it, does not happen: a sealer killed at that
/// point. The n-th write itself gets half way.
class DyingFile final : public File {
 public:
  /// `recovers`: only the n-th change fails, as with a disk that was full for a moment.
  DyingFile(std::unique_ptr<File> file, int changes_left, bool recovers = false)
      : file_(std::move(file)), left_(changes_left), recovers_(recovers) {}
  const std::string& path() const override { return file_->path(); }
  Result<uint64_t> size() override { return file_->size(); }
  Result<size_t> read_at(uint64_t offset, void* data, size_t size) override {
    return file_->read_at(offset, data, size);
  }
  Status write_at(uint64_t offset, const void* data, size_t size) override {
    if (left_ == 1 && size > 64) (void)file_->write_at(offset, data, size / 2);
    if (is_refused()) return dead();
    return file_->write_at(offset, data, size);
  }
  uint64_t next_data(uint64_t offset, uint64_t size) override {
    return file_->next_data(offset, size);
  }
  Result<uint64_t> punch(uint64_t offset, uint64_t length) override {
    if (is_refused()) return dead();
    return file_->punch(offset, length);
  }
  Result<uint64_t> add_at(uint64_t offset, uint64_t amount) override {
    if (is_refused()) return dead();
    return file_->add_at(offset, amount);
  }
  bool lock(bool exclusive) override { return file_->lock(exclusive); }
  void unlock() override { file_->unlock(); }
  bool died() const { return left_ <= 0; }

 private:
  bool is_refused() { return --left_ == 0 || (left_ < 0 && !recovers_); }
  static std::unexpected<Error> dead() { return fail(ErrorCode::kSystem, "killed"); }
  std::unique_ptr<File> file_;
  int left_;
  bool recovers_;
};

/// A training loop of three threads, with jitter, frees of other threads' blocks, a device with
/// totals.
void train(FakeProbe* probe, uint64_t events, uint32_t seed) {
  probe->write_as_dead_process();
  std::mt19937 random(seed);
  FakeProbe::Thread* threads[3];
  uint32_t stacks[3][4];
  for (int t = 0; t < 3; ++t) {
    threads[t] = &probe->start_thread(11 + t, "t");
    probe->define_device(threads[t], 5, kTensorflowGpu, 0, "GPU_0_bfc");
    for (int s = 0; s < 4; ++s) {
      stacks[t][s] = probe->define_stack(threads[t], {"main", "f" + std::to_string(s)}, 10 + s);
    }
  }
  std::vector<std::pair<uint64_t, uint32_t>> live;
  uint64_t time = 5000, allocated = 0;
  for (uint64_t i = 0; i < events; ++i) {
    time += random() % 300;
    auto* thread = threads[random() % 3];
    // Numbers that need all their bits, some threads on the same step, and none now and then.
    if (random() % 16 == 0) {
      const int64_t step = static_cast<int64_t>(random() % 5 * 0x9e3779b97f4a7c15);
      probe->begin_step(thread, step == 0 ? FakeProbe::Thread::kNone : step);
    }
    if (live.size() < 20 || random() % 2 == 0) {
      uint32_t device = random() % 4 == 0 ? 5 : 0;
      uint64_t size = 512 * (1 + random() % 8), address = 0x7f0000000000 + 64 * i;
      const uint64_t requested = device == 5 ? size - i % 300 : 0;
      probe->alloc(thread, time, address, size, stacks[thread->tid - 11][random() % 4], device,
                   requested);
      if (device == 5) probe->totals(thread, time, allocated += size, 1 << 20, 5);
      live.emplace_back(address, device);
    } else {
      size_t which = random() % live.size();
      probe->free(thread, time, live[which].first, live[which].second,
                  live[which].second ? 512 : 0);
      live.erase(live.begin() + static_cast<ptrdiff_t>(which));
    }
  }
}

void expect_same(const for_tests::EverythingRead& a, const for_tests::EverythingRead& b) {
  EXPECT_EQ(a.error, "");
  EXPECT_TRUE(a.in_time_order);
  EXPECT_EQ(a.events.size(), b.events.size());
  EXPECT_TRUE(a.events == b.events);
  EXPECT_TRUE(a.totals == b.totals);
  EXPECT_TRUE(a.requested == b.requested);
  EXPECT_TRUE(a.steps == b.steps);
  EXPECT_EQ(a.loss.events, b.loss.events);
  EXPECT_EQ(a.device_names, b.device_names);
}

TEST(Sealing, AFinishedFileYieldsWhatTheRawOneDid) {
  TempFolder folder;
  FakeProbe probe;
  train(&probe, 5000, 1);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  auto before = read_all({folder.path()});
  ASSERT_EQ(before.events.size(), 5000u);
  FolderSealer sealer(folder.path(), {});
  auto done = sealer.step();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(sealer.totals().files, 1u);
  EXPECT_EQ(sealer.totals().events, 5000u);
  auto after = read_all({folder.path()});
  expect_same(after, before);
  EXPECT_EQ(after.device_names, (std::vector<std::string>{"tensorflow:GPU_0_bfc", "cpu"}));
  EXPECT_GT(after.requested.size(), 100u);
  EXPECT_GT(std::ranges::count_if(after.steps, [](int64_t s) { return s != kNoStep; }), 1000);
  EXPECT_EQ(after.loss.reasons.size(), 0u);
  EXPECT_LT(for_tests::read_file(folder.file("a.gmp")).size(), 64u * 1024);  // the buffers are gone
}

TEST(Sealing, OfManyChunksOneThatCannotBeDecodedIsMissingAlone) {
  TempFolder folder;
  FakeProbe probe;
  train(&probe, 10 * kBatchEvents, 2);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  const auto before = read_all({folder.path()});
  ASSERT_EQ(before.events.size(), 10u * kBatchEvents);
  ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
  expect_same(read_all({folder.path()}), before);
  // A chunk that is whole by its checksum and cannot be decoded.
  auto file = *open_file(folder.file("a.gmp"), FileMode::kReadWrite);
  FileIndex index;
  ASSERT_TRUE(scan_chunks(*file, read_file_header(*file)->recording_id, &index));
  std::erase_if(index.chunks,
                [](const ChunkRef& c) { return c.header.type != format::kSealedEvents; });
  ASSERT_EQ(index.chunks.size(), 10u);
  ChunkRef& fifth = index.chunks[4];
  const std::string payload(fifth.header.length, '\x7f');
  fifth.header.crc32c = format::chunk_crc(fifth.header, payload.data());
  ASSERT_TRUE(file->write_at(fifth.offset, &fifth.header, sizeof fifth.header));
  ASSERT_TRUE(file->write_at(fifth.payload_offset(), payload.data(), payload.size()));
  const auto damaged = read_all({folder.path()});
  EXPECT_EQ(damaged.error, "");
  EXPECT_EQ(damaged.events.size() + kBatchEvents, before.events.size());
  EXPECT_EQ(damaged.loss.events, uint64_t{kBatchEvents});
}

TEST(Sealing, FinishingTellsTheShareThatIsDone) {
  TempFolder folder;
  FakeProbe probe;
  train(&probe, 3 * kBatchEvents, 1);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  ASSERT_EQ(probe.save(folder.file("b.gmp")), 0);
  std::vector<double> shares;
  ASSERT_TRUE(
      FolderSealer(folder.path(), {}).finish([&](double share) { shares.push_back(share); }));
  EXPECT_GT(shares.size(), 6u);  // more than three batches of each
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.front(), 0);
  EXPECT_THAT(shares, testing::Contains(0.5));
  EXPECT_EQ(shares.back(), 1);
}

TEST(Sealing, ASecondPassFindsNothingToDo) {
  TempFolder folder;
  FakeProbe probe;
  train(&probe, 500, 1);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
  std::string once = for_tests::read_file(folder.file("a.gmp"));
  ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
  EXPECT_EQ(for_tests::read_file(folder.file("a.gmp")), once);
}

TEST(Sealing, KilledAtAnyPointAndBegunAgainLosesAndDoublesNothing) {
  FakeProbe probe;
  train(&probe, 800, 3);
  const std::string original = probe.bytes();
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  for_tests::write_file(path, original);
  const auto expected = read_all({path});
  ASSERT_EQ(expected.events.size(), 800u);
  int deaths = 0;
  for (int n = 1; n < 500; ++n) {
    for_tests::write_file(path, original);
    DyingFile file(std::move(*open_file(path, FileMode::kReadWrite)), n);
    {
      auto sealer = FileSealer::open(&file, {.checkpoint_bytes = 4000, .gather_bytes = 0});
      ASSERT_TRUE(sealer);
      (void)(*sealer)->advance(5000 + 60'000, true);  // half of the events, as of a live file
      (void)(*sealer)->finish();
    }
    expect_same(read_all({path}), expected);
    if (!file.died()) break;
    ++deaths;
    ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
    expect_same(read_all({path}), expected);
    if (HasFailure()) FAIL() << "killed at change " << n;
  }
  EXPECT_GT(deaths, 50);
  EXPECT_LT(deaths, 499);
}

TEST(Sealing, AnyOneChangeThatIsRefusedLosesAndDoublesNothing) {
  FakeProbe probe;
  train(&probe, 800, 4);
  const std::string original = probe.bytes();
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  for_tests::write_file(path, original);
  const auto expected = read_all({path});
  bool refused = true;
  for (int n = 1; refused; ++n) {
    for_tests::write_file(path, original);
    DyingFile file(std::move(*open_file(path, FileMode::kReadWrite)), n, true);
    auto sealer = FileSealer::open(&file, {.checkpoint_bytes = 4000, .gather_bytes = 0});
    ASSERT_TRUE(sealer);
    for (uint64_t end : {20'000, 40'000, 60'000, 80'000}) (void)(*sealer)->advance(end, true);
    if (!(*sealer)->finish()) (void)(*sealer)->finish();
    refused = file.died();
    expect_same(read_all({path}), expected);
    ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
    expect_same(read_all({path}), expected);
    ASSERT_FALSE(HasFailure()) << "refused at change " << n;
  }
}

/// Full halves, so that their places are offered to the writer again.
void fill_halves(FakeProbe* probe, uint64_t events) {
  probe->write_as_dead_process();
  auto* thread = &probe->start_thread(11, "t");
  const uint32_t stack = probe->define_stack(thread, {"main", "f"});
  for (uint64_t i = 0; i < events; ++i) {
    probe->alloc(thread, 5000 + i, 0x7f0000000000 + 64 * i, 512 + i, stack);
  }
}

format::PlacePool pool_of(const std::string& path) {
  format::PlacePool pool;
  memcpy(&pool, for_tests::read_file(path).data() + format::kPoolOffset, sizeof(pool));
  return pool;
}

TEST(Sealing, KilledWhileItOffersPlacesAgainLosesAndDoublesNothing) {
  FakeProbe probe(0x1234, 100, format::kStageEvents + 2);
  fill_halves(&probe, 4 * format::kStageEvents);
  const std::string original = probe.bytes();
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  for_tests::write_file(path, original);
  const auto expected = read_all({path});
  ASSERT_EQ(expected.events.size(), 4u * format::kStageEvents);
  bool died = true;
  for (int n = 1; died; ++n) {
    for_tests::write_file(path, original);
    DyingFile file(std::move(*open_file(path, FileMode::kReadWrite)), n);
    auto sealer = FileSealer::open(&file, {.gather_bytes = 0});
    ASSERT_TRUE(sealer);
    (void)(*sealer)->advance(kNoTime, true);
    died = file.died();
    const std::string bytes = for_tests::read_file(path);
    for (uint64_t place : pool_of(path).offsets) {
      if (place == 0) continue;
      ASSERT_LE(place + format::kEventsPlaceBytes, bytes.size());
      EXPECT_EQ(bytes.substr(place, 64), std::string(64, '\0')) << "killed at change " << n;
    }
    expect_same(read_all({path}), expected);
    ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
    expect_same(read_all({path}), expected);
    ASSERT_FALSE(HasFailure()) << "killed at change " << n;
  }
}

TEST(Sealing, APoolThatPointsIntoChunksIsNotBelieved) {
  FakeProbe probe(0x1234, 100, format::kStageEvents + 2);
  fill_halves(&probe, 2 * format::kStageEvents);
  std::string bytes = probe.bytes();
  for (uint64_t i = 0; i < 128; ++i) {
    const uint64_t odd[] = {i * format::kPage, ~uint64_t{0} - i, i, bytes.size() + i * 4096};
    memcpy(bytes.data() + format::kPoolOffset + 8 + 8 * i, &odd[i % 4], 8);
  }
  TempFolder folder;
  for_tests::write_file(folder.file("a.gmp"), bytes);
  const auto expected = read_all({folder.path()});
  ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
  expect_same(read_all({folder.path()}), expected);
  EXPECT_EQ(expected.events.size(), 2u * format::kStageEvents);
}

TEST(Sealing, AGrowingFileIsSealedInStepsAndReadsTheSameAtEachOfThem) {
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  FakeProbe whole;
  train(&whole, 3000, 9);
  for_tests::write_file(path, whole.bytes());
  const auto expected = read_all({path});
  auto file = std::move(*open_file(path, FileMode::kReadWrite));
  auto sealer = FileSealer::open(file.get(), {.gather_bytes = 0});
  ASSERT_TRUE(sealer);
  for (uint64_t end = 10'000; end < 500'000; end += 50'000) {
    ASSERT_TRUE((*sealer)->advance(end, true));
    expect_same(read_all({path}), expected);
  }
  ASSERT_TRUE((*sealer)->finish());
  expect_same(read_all({path}), expected);
  EXPECT_EQ((*sealer)->events_sealed(), 3000u);
}

TEST(Sealing, DroppedEventsStayCountedInStatePeakAndTotals) {
  TempFolder folder;
  FakeProbe probe;
  train(&probe, 6000, 5);
  for_tests::write_file(folder.file("full.gmp"), probe.bytes());
  for_tests::write_file(folder.file("cut.gmp"), probe.bytes());
  auto file = std::move(*open_file(folder.file("cut.gmp"), FileMode::kReadWrite));
  {
    auto sealer = FileSealer::open(file.get(), {.checkpoint_bytes = 1, .gather_bytes = 0});
    ASSERT_TRUE(sealer);
    for (uint64_t end = 100'000; end < 800'000; end += 100'000)
      ASSERT_TRUE((*sealer)->advance(end, true));
    auto freed = (*sealer)->drop_oldest(20'000);
    ASSERT_TRUE(freed);
    EXPECT_GE(*freed, 20'000u);
    ASSERT_TRUE((*sealer)->finish());
  }
  ASSERT_TRUE(*compact_file(*file));
  auto full = open_recording({folder.file("full.gmp")}),
       cut = open_recording({folder.file("cut.gmp")});
  ASSERT_TRUE(full && cut);
  const LiveState* before = (*cut)->state_before_first_event();
  ASSERT_NE(before, nullptr);
  EXPECT_FALSE((*cut)->info().can.complete_history);
  LiveState whole, rest = *before;
  EventBatch batch;
  while (*(*full)->next(&batch)) whole.apply(batch);
  bool first = true;
  while (*(*cut)->next(&batch)) {
    if (first) {
      EXPECT_EQ(batch.first_event, before->event_count());
    }
    first = false;
    rest.apply(batch);
  }
  EXPECT_GT(before->event_count(), 500u);
  EXPECT_EQ(rest.event_count(), 6000u);
  ASSERT_EQ(rest.devices().size(), whole.devices().size());
  for (size_t d = 0; d < whole.devices().size(); ++d) {
    const DeviceState &a = rest.devices()[d], &b = whole.devices()[d];
    EXPECT_EQ(a.live_bytes, b.live_bytes);
    EXPECT_EQ(a.peak_bytes, b.peak_bytes);
    EXPECT_EQ(a.peak_event, b.peak_event);
    EXPECT_EQ(a.total_bytes, b.total_bytes);
    EXPECT_EQ(a.blocks.size(), b.blocks.size());
  }
  EXPECT_EQ((*cut)->loss().events, 0u);
  ASSERT_EQ((*cut)->loss().reasons.size(), 1u);
  EXPECT_NE((*cut)->loss().reasons[0].reason.find("dropped by --max-disk"), std::string::npos);
}

/// Threads that one buffer has in turn, 20 us each, as a server starts one a request: each keeps a block
/// and makes one that goes.
void serve(FakeProbe* probe, uint32_t threads, uint32_t first_tid = 100) {
  probe->write_as_dead_process();
  auto* thread = &probe->start_thread(first_tid, "main");
  for (uint32_t i = 0; i < threads; ++i) {
    if (i > 0) probe->reuse(thread, first_tid + i, "request");
    const uint32_t stack =
        probe->define_stack(thread, {"main", "handle" + std::to_string(i % 7)}, 10 + i % 3);
    const uint64_t time = 5000 + 20'000 * uint64_t{i};
    probe->alloc(thread, time, 0x7f0000000000 + 0x8000 * uint64_t{i}, 32'768, stack);
    probe->alloc(thread, time + 1, 0x600000000000, 400, stack);
    probe->free(thread, time + 2, 0x600000000000);
  }
}

size_t chunks_of(const std::string& path, uint16_t type) {
  auto file = std::move(*open_file(path, FileMode::kRead));
  FileIndex index;
  EXPECT_TRUE(scan_chunks(*file, read_file_header(*file)->recording_id, &index));
  return static_cast<size_t>(
      std::ranges::count(index.chunks, type, [](const ChunkRef& c) { return c.header.type; }));
}

TEST(Sealing, WhatThreadsDefineTakesNoPageEach) {
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  FakeProbe probe;
  serve(&probe, 400);
  for_tests::write_file(path, probe.bytes());
  const auto expected = read_all({path});
  ASSERT_EQ(expected.events.size(), 1200u);
  ASSERT_EQ(expected.loss.reasons.size(), 0u);
  EXPECT_EQ(chunks_of(path, format::kRawDefinitions), 399u);
  auto file = std::move(*open_file(path, FileMode::kReadWrite));
  auto sealer = FileSealer::open(file.get(), {.gather_bytes = 0});
  ASSERT_TRUE(sealer);
  for (uint64_t i = 1; i <= 400; ++i) {
    ASSERT_TRUE((*sealer)->advance(5000 + 20'000 * i, true));
    EXPECT_LE(chunks_of(path, format::kSealedDefinitions), 65u);
    if (i % 50 == 0) expect_same(read_all({path}), expected);
  }
  // Of the last thread, whose buffer it still is, and of what ended in the last two steps.
  EXPECT_LE(chunks_of(path, format::kRawDefinitions), 3u);
  ASSERT_TRUE((*sealer)->finish());
  EXPECT_LE(chunks_of(path, format::kSealedDefinitions), 8u);
  expect_same(read_all({path}), expected);
}

TEST(Sealing, KilledWhileItMergesDefinitionsLosesAndDoublesNothing) {
  FakeProbe probe;
  serve(&probe, 30);
  const std::string original = probe.bytes();
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  for_tests::write_file(path, original);
  const auto expected = read_all({path});
  bool died = true;
  int deaths = 0;
  for (int n = 290; died; ++n, ++deaths) {  // of the last threads, and of the merge
    for_tests::write_file(path, original);
    DyingFile file(std::move(*open_file(path, FileMode::kReadWrite)), n);
    auto sealer = FileSealer::open(&file, {.gather_bytes = 0});
    ASSERT_TRUE(sealer);
    for (uint64_t i = 1; i <= 30; ++i) (void)(*sealer)->advance(5000 + 20'000 * i, true);
    (void)(*sealer)->finish();
    died = file.died();
    expect_same(read_all({path}), expected);
    FolderSealer again(folder.path(), {});
    ASSERT_TRUE(again.finish());
    EXPECT_THAT(again.totals().left, testing::IsEmpty());
    expect_same(read_all({path}), expected);
    EXPECT_LE(chunks_of(path, format::kSealedDefinitions), 8u);
    ASSERT_FALSE(HasFailure()) << "killed at change " << n;
  }
  EXPECT_GT(deaths, 50);
}

TEST(Sealing, NothingIsDroppedForWhatDoesNotLast) {
  FakeProbe probe;
  serve(&probe, 3000);
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  for_tests::write_file(path, probe.bytes());
  const auto expected = read_all({path});
  ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
  const uint64_t whole = for_tests::read_file(path).size();
  ASSERT_LT(whole, 250'000u) << "or this proves nothing";
  for_tests::write_file(path, probe.bytes());
  ASSERT_GT(for_tests::read_file(path).size(), 10'000'000u);
  ASSERT_TRUE(FolderSealer(folder.path(), {.max_disk_bytes = 500'000}).finish());
  const auto limited = read_all({path});
  EXPECT_EQ(limited.events.size(), expected.events.size());
  EXPECT_EQ(limited.loss.reasons.size(), 0u);
  EXPECT_LT(for_tests::read_file(path).size(), 500'000u);
}

TEST(Sealing, AFileThatIsLockedIsLeftAlone) {
  TempFolder folder;
  FakeProbe probe;
  train(&probe, 100, 1);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  std::string before = for_tests::read_file(folder.file("a.gmp"));
  auto held = std::move(*open_file(folder.file("a.gmp"), FileMode::kRead));
  ASSERT_TRUE(held->lock(true));
  FolderSealer sealer(folder.path(), {});
  EXPECT_TRUE(sealer.finish());
  EXPECT_EQ(for_tests::read_file(folder.file("a.gmp")), before);
  held->unlock();
  EXPECT_TRUE(sealer.finish());
  EXPECT_EQ(sealer.totals().files, 1u);
}

TEST(Sealing, AFileThatIsNoRecordingIsLeftAlone) {
  TempFolder folder;
  for_tests::write_file(folder.file("a.gmp"), "hello");
  EXPECT_TRUE(FolderSealer(folder.path(), {}).finish());
  EXPECT_EQ(for_tests::read_file(folder.file("a.gmp")), "hello");
}

TEST(WriterIsAlive, KnowsThisProcessByItsPidAndStart) {
  TempFolder folder;
  FakeProbe probe(1, static_cast<uint32_t>(getpid()));
  std::string boot = for_tests::read_file("/proc/sys/kernel/random/boot_id");
  memcpy(probe.header().boot_id, boot.data(), std::min<size_t>(boot.size() - 1, 39));
  probe.header().boot_id[36] = 0;
  std::string stat = for_tests::read_file("/proc/self/stat");
  std::string rest = stat.substr(stat.rfind(')') + 2);
  for (int field = 3; field < 22; ++field) rest = rest.substr(rest.find(' ') + 1);
  probe.header().start_ticks = std::stoull(rest);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  EXPECT_TRUE(writer_is_alive(folder.file("a.gmp")));
  probe.header().start_ticks += 1;
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  EXPECT_FALSE(writer_is_alive(folder.file("a.gmp")));
}

/// While a file is made shorter its name may go to another recording, or to none.
TEST(Compact, PutsNothingWhereItsFileIsNoLonger) {
  TempFolder folder;
  FakeProbe probe;
  train(&probe, 6000, 5);
  for (const std::string name : {"untouched", "removed", "replaced"}) {
    const std::string path = folder.file(name + ".gmp");
    const bool is_untouched = name == "untouched", is_replaced = name == "replaced";
    for_tests::write_file(path, probe.bytes());
    auto file = std::move(*open_file(path, FileMode::kReadWrite));
    auto sealer = FileSealer::open(file.get(), {});
    ASSERT_TRUE(sealer && (*sealer)->finish());
    if (!is_untouched) unlink(path.c_str());
    if (is_replaced) for_tests::write_file(path, "another");
    auto compacted = compact_file(*file);
    ASSERT_TRUE(compacted);
    EXPECT_EQ(*compacted, is_untouched);
    EXPECT_EQ(std::filesystem::exists(path), is_untouched || is_replaced);
    EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
    EXPECT_TRUE(!is_replaced || for_tests::read_file(path) == "another");
  }
}

}  // namespace
}  // namespace gpumemprof
