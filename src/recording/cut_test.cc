// A file that lost a part, its end above all: what is missing is counted once and never called
// exact.
#include <gtest/gtest.h>
#include <string.h>
#include <unistd.h>

#include "recording/chunk_scan.h"
#include "recording/compact.h"
#include "recording/fake_probe.h"
#include "recording/file_sealer.h"
#include "recording/seal.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

using namespace for_tests;

const std::string kGolden = std::string(GPUMEMPROF_SOURCE_DIR) + "/tests/compat/";

/// Where chunks begin and end.
std::vector<uint64_t> boundaries(const std::string& path) {
  auto file = std::move(*open_file(path, FileMode::kRead));
  FileIndex index;
  EXPECT_TRUE(scan_chunks(*file, read_file_header(*file)->recording_id, &index));
  std::vector<uint64_t> out;
  for (const ChunkRef& chunk : index.chunks) {
    out.push_back(chunk.offset), out.push_back(chunk.end());
  }
  return out;
}

std::vector<ChunkRef> chunks_of(const std::string& path, format::ChunkType type) {
  auto file = std::move(*open_file(path, FileMode::kRead));
  FileIndex index;
  EXPECT_TRUE(scan_chunks(*file, read_file_header(*file)->recording_id, &index));
  std::erase_if(index.chunks, [&](const ChunkRef& c) { return c.header.type != type; });
  return index.chunks;
}

void zero(const std::string& path, const ChunkRef& chunk) {
  std::string bytes = read_file(path);
  const uint64_t end = std::min<uint64_t>(chunk.end(), bytes.size());
  memset(bytes.data() + chunk.offset, 0, end - chunk.offset);
  write_file(path, bytes);
}

struct Cut {
  std::string name;
  /// From this length on, what is left says how many events there were: a finished file in its
  /// first page, one that still grew where its buffers are whole.
  uint64_t told_from;
  bool is_finished;
};

class GoldenFileCut : public ::testing::TestWithParam<Cut> {
 protected:
  void SetUp() override {
    bytes_ = read_file(kGolden + GetParam().name);
    write_file(path_, bytes_);
    ASSERT_EQ(read_all({path_}).events.size(), kEvents);
    ASSERT_TRUE(read_all({path_}).loss.has_every_event());
  }
  void look_at(uint64_t length) {
    ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(length)), 0);
    const EverythingRead read = read_all({path_});
    if (!read.error.empty()) {
      ASSERT_TRUE(read.events.empty());
      return;
    }
    const uint64_t gone = kEvents - read.events.size();
    ASSERT_LE(read.loss.events, gone) << "cut at " << length;
    if (gone != 0 || GetParam().is_finished) {
      ASSERT_FALSE(read.loss.has_every_event()) << "cut at " << length;
    }
    if (length >= GetParam().told_from) {
      ASSERT_EQ(read.loss.events, gone) << "cut at " << length;
    }
  }

  static constexpr uint64_t kEvents = 120;
  TempFolder folder_;
  std::string path_ = folder_.file("a.gmp");
  std::string bytes_;
};

TEST_P(GoldenFileCut, AtAnyByteIsNotExactAndItsEventsAreCountedOnce) {
  std::vector<uint64_t> lengths = boundaries(path_);
  // Of a buffer's zeros, one of 211.
  for (uint64_t at = 0; at < bytes_.size(); ++at) {
    if (bytes_[at] != 0 || at % 211 == 0) lengths.push_back(at);
  }
  std::ranges::sort(lengths, std::greater<>());
  for (uint64_t length : lengths) {
    if (length < bytes_.size()) look_at(length);
  }
}

INSTANTIATE_TEST_SUITE_P(
    EveryVersion, GoldenFileCut,
    ::testing::Values(
        // Version 1.0 did not write how many events there are.
        Cut{"1.0-small.gmp", UINT64_MAX, false}, Cut{"1.0-small-sealed.gmp", UINT64_MAX, true},
        Cut{"1.1-small.gmp", format::kPage + format::kStageEventsOffset + 5 * 24, false},
        Cut{"1.1-small-sealed.gmp", format::kFinishedOffset + 24, true}),
    [](const auto& info) {
      std::string name = info.param.name.substr(0, info.param.name.size() - 4);
      std::ranges::replace_if(name, [](char c) { return !isalnum(c); }, '_');
      return "Of" + name;
    });

/// Steps, wide sizes and totals: more records than events.
void write_program(const std::string& path, uint64_t events, uint32_t half_records) {
  FakeProbe probe(0x1234, 100, half_records);
  probe.write_as_dead_process();
  auto& a = probe.start_thread(11, "a");
  auto& b = probe.start_thread(12, "b");
  probe.define_device(&a, 5, kTensorflowGpu, 0, "GPU_0_bfc");
  for (uint64_t i = 0; i < events; ++i) {
    auto& thread = i % 3 == 0 ? b : a;
    if (i % 7 == 0) probe.begin_step(&thread, static_cast<int64_t>(i));
    const uint32_t device = &thread == &a && i % 5 == 0 ? 5 : 0;
    if (i % 2 == 0) {
      probe.alloc(&thread, 5000 + i, 64 * (i + 1), 64, 0, device, device ? 60 : 0);
      if (device) probe.totals(&thread, 5000 + i, 64, 1024, 5);
    } else {
      probe.free(&thread, 5000 + i, 64 * i, (i - 1) % 5 == 0 && (i - 1) % 3 != 0 ? 5 : 0);
    }
  }
  ASSERT_EQ(probe.save(path), 0);
}

TEST(LostChunk, OfSealedEventsIsCountedOnce) {
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  write_program(path, 200'000, 5000);
  ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
  const std::string whole = read_file(path);
  const auto chunks = chunks_of(path, format::kSealedEvents);
  ASSERT_GE(chunks.size(), 3u);
  for (const ChunkRef& chunk : chunks) {
    write_file(path, whole);
    zero(path, chunk);
    const EverythingRead read = read_all({path});
    EXPECT_EQ(read.events.size(), 200'000 - chunk.header.count);
    EXPECT_EQ(read.loss.events, chunk.header.count);
    EXPECT_FALSE(read.loss.has_every_event());
  }
}

TEST(LostChunk, OfRawEventsIsCountedInEventsNotInRecords) {
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  write_program(path, 3000, 200);
  const std::string whole = read_file(path);
  for (const ChunkRef& chunk : chunks_of(path, format::kRawEvents)) {
    write_file(path, whole);
    zero(path, chunk);
    const EverythingRead read = read_all({path});
    EXPECT_LT(read.events.size(), 3000u);
    EXPECT_EQ(read.loss.events, 3000 - read.events.size());
  }
}

TEST(LostChunk, BeforeItWasSealedStaysCountedOnceAfterwards) {
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  write_program(path, 3000, 200);
  zero(path, chunks_of(path, format::kRawEvents)[4]);
  const EverythingRead raw = read_all({path});
  ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
  const EverythingRead sealed = read_all({path});
  EXPECT_EQ(sealed.events.size(), raw.events.size());
  EXPECT_EQ(sealed.loss.events, 3000 - raw.events.size());
  EXPECT_EQ(raw.loss.events, sealed.loss.events);
}

TEST(LostChunk, OfABufferIsSaidThoughNobodyKnowsWhatWasInIt) {
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  write_program(path, 3000, 200);
  zero(path, chunks_of(path, format::kStage)[0]);
  const EverythingRead read = read_all({path});
  EXPECT_LT(read.events.size(), 3000u);
  EXPECT_LE(read.loss.events, 3000 - read.events.size());
  EXPECT_FALSE(read.loss.has_every_event());
}

TEST(CutFile, ThatWasFinishedIsNotFinishedAnew) {
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  write_program(path, 3000, 200);
  ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
  const uint64_t footer = chunks_of(path, format::kFooter).at(0).offset;
  const uint64_t events = chunks_of(path, format::kSealedEvents).at(0).offset;
  for (uint64_t length : {footer, events}) {
    ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(length)), 0);
    const std::string before = read_file(path);
    EXPECT_TRUE(FolderSealer(folder.path(), {}).finish());  // as with any damaged file
    EXPECT_EQ(read_file(path), before);
    EXPECT_FALSE(read_all({path}).loss.has_every_event());
  }
  EXPECT_EQ(read_all({path}).loss.events, 3000u);
}

TEST(CutFile, ThatGrewIsNotExactAfterSealingEither) {
  TempFolder folder;
  const std::string path = folder.file("a.gmp");
  write_program(path, 3000, 200);
  const auto chunks = chunks_of(path, format::kRawEvents);
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(chunks[chunks.size() - 3].offset)), 0);
  ASSERT_TRUE(FolderSealer(folder.path(), {}).finish());
  const EverythingRead read = read_all({path});
  EXPECT_EQ(read.loss.events, 3000 - read.events.size());
  EXPECT_GT(read.loss.events, 0u);
}

TEST(CutFile, WhoseWriterDiedBetweenAClaimAndItsWriteLostNothing) {
  TempFolder folder;
  FakeProbe probe;
  auto& a = probe.start_thread(11, "a");
  for (uint64_t i = 0; i < 100; ++i) probe.alloc(&a, 5000 + i, 64 * (i + 1), 64, 0);
  std::string bytes = probe.bytes();
  const uint64_t claimed = bytes.size() + format::kEventsPlaceBytes;
  memcpy(bytes.data() + format::kStateOffset, &claimed, sizeof(claimed));
  write_file(folder.file("a.gmp"), bytes);
  const EverythingRead read = read_all({folder.path()});
  EXPECT_EQ(read.events.size(), 100u);
  EXPECT_TRUE(read.loss.has_every_event());
}

TEST(Losses, OfAFileThatCannotBeReadAmongOthersAreOpenEnded) {
  TempFolder folder;
  FakeProbe probe;
  auto& a = probe.start_thread(11, "a");
  probe.alloc(&a, 5000, 64, 64, 0);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  write_file(folder.file("b.gmp"), probe.bytes().substr(0, 1000));
  const EverythingRead read = read_all({folder.path()});
  EXPECT_EQ(read.events.size(), 1u);
  EXPECT_FALSE(read.loss.has_every_event());
}

}  // namespace
}  // namespace gpumemprof
