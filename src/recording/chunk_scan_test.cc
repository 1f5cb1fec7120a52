// A file that is written while it is scanned: nothing of it is damage.
#include "recording/chunk_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <functional>

#include "format/checksum.h"

namespace gpumemprof {
namespace {

using namespace format;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kRecording = 7;

/// Bytes, and a writer that comes once after each size() and each read_at(), for as long as there
/// is one.
class WrittenFile final : public File {
 public:
  std::string bytes;
  std::function<void()> after_size, after_read;

  const std::string& path() const override { return path_; }
  Result<uint64_t> size() override {
    const uint64_t now = bytes.size();
    if (auto writer = std::exchange(after_size, nullptr)) writer();
    return now;
  }
  Result<size_t> read_at(uint64_t offset, void* data, size_t size) override {
    const size_t got = offset < bytes.size() ? std::min(size, bytes.size() - offset) : 0;
    memcpy(data, bytes.data() + offset, got);
    if (auto writer = std::exchange(after_read, nullptr)) writer();
    return got;
  }
  uint64_t next_data(uint64_t offset, uint64_t) override { return offset; }
  Status write_at(uint64_t, const void*, size_t) override { return {}; }
  Result<uint64_t> punch(uint64_t, uint64_t) override { return 0; }
  Result<uint64_t> add_at(uint64_t, uint64_t) override { return 0; }
  bool lock(bool) override { return true; }
  void unlock() override {}

  void put(uint64_t offset, const std::string& text) {
    bytes.resize(std::max<size_t>(bytes.size(), offset + text.size()));
    bytes.replace(offset, text.size(), text);
  }

 private:
  std::string path_ = "written";
};

/// Eight pages and a half, with its header.
std::string chunk_of(char content) {
  const std::string payload(8 * kPage + kPage / 2, content);
  ChunkHeader header{};
  header.magic = kChunkMagic;
  header.type = kRawEvents;
  header.length = static_cast<uint32_t>(payload.size());
  header.recording_id = kRecording;
  header.crc32c = chunk_crc(header, payload.data());
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + payload;
}

/// As much of a chunk as a writer has written after `bytes` of it: no header yet.
std::string begun(const std::string& chunk, size_t bytes) {
  return std::string(sizeof(ChunkHeader), '\0') + chunk.substr(sizeof(ChunkHeader), bytes);
}

std::vector<uint64_t> offsets(const FileIndex& index) {
  std::vector<uint64_t> out;
  for (const ChunkRef& chunk : index.chunks) out.push_back(chunk.offset);
  return out;
}

TEST(ChunkScan, AChunkThatIsFinishedAfterTheSizeWasAskedIsRead) {
  WrittenFile file;
  const std::string chunk = chunk_of('a');
  file.put(kPage, begun(chunk, 3 * kPage));
  file.after_size = [&] { file.put(kPage, chunk); };
  FileIndex index;
  ASSERT_TRUE(scan_chunks(file, kRecording, &index));
  EXPECT_THAT(index.damage, IsEmpty());
  EXPECT_THAT(offsets(index), ElementsAre(kPage));
}

TEST(ChunkScan, ZerosThatWereReadBeforeAWriterCameAreNotBelieved) {
  WrittenFile file;
  const uint64_t window = 256 * 1024, at = kPage + window - 4 * kPage;  // four pages before its end
  file.put(0, std::string(at + 20 * kPage, '\0'));
  file.after_read = [&] { file.put(at, chunk_of('a')); };
  FileIndex index;
  ASSERT_TRUE(scan_chunks(file, kRecording, &index));
  EXPECT_THAT(index.damage, IsEmpty());
  EXPECT_THAT(offsets(index), ElementsAre(at));
}

TEST(ChunkScan, AChunkAtTheEndWhoseHeaderComesAfterManyScansIsRead) {
  WrittenFile file;
  const std::string chunk = chunk_of('a');
  FileIndex index;
  for (size_t pages = 1; pages <= 10; ++pages) {
    file.put(kPage, begun(chunk, pages * kPage));
    ASSERT_TRUE(scan_chunks(file, kRecording, &index));
  }
  file.put(kPage, chunk);
  ASSERT_TRUE(scan_chunks(file, kRecording, &index));
  EXPECT_THAT(index.damage, IsEmpty());
  EXPECT_THAT(offsets(index), ElementsAre(kPage));
}

TEST(ChunkScan, APlaceThatIsUsedAgainDoesNotHideWhatIsWrittenAtTheEnd) {
  WrittenFile file;
  const std::string chunk = chunk_of('a'), last = chunk_of('b');
  const uint64_t end = kPage + round_to_page(chunk.size());
  file.put(kPage, begun(chunk, chunk.size()));
  file.put(end, begun(last, 3 * kPage));
  FileIndex index;
  ASSERT_TRUE(scan_chunks(file, kRecording, &index));
  index.unwritten = {{end, file.bytes.size()},
                     {kPage, end}};  // as when the first was given back later
  file.put(kPage, chunk);
  file.put(end, begun(last, 6 * kPage));
  ASSERT_TRUE(scan_chunks(file, kRecording, &index));
  file.put(end, last);
  ASSERT_TRUE(scan_chunks(file, kRecording, &index));
  EXPECT_THAT(index.damage, IsEmpty());
  EXPECT_THAT(offsets(index), ElementsAre(kPage, end));
}

TEST(ChunkScan, ATornPageAtTheEndCountsOnceHoweverOftenItIsLookedAt) {
  for (const uint64_t whole_pages : {0, 2}) {
    WrittenFile file;
    const std::string chunk = chunk_of('a');
    const uint64_t at = kPage + round_to_page(chunk.size());
    file.put(kPage, chunk);
    file.put(at, std::string(whole_pages * kPage + 100, 'x'));
    FileIndex index;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(scan_chunks(file, kRecording, &index));
      uint64_t bytes = 0;
      for (const Damage& one : index.damage) bytes += one.bytes;
      EXPECT_EQ(bytes, whole_pages * kPage + 100) << i;
      EXPECT_EQ(index.damage.front().offset, at);
    }
  }
}

TEST(ChunkScan, WhatIsNoChunkIsDamageAlsoAtASecondLook) {
  WrittenFile file;
  const std::string chunk = chunk_of('a');
  const uint64_t after = 6 * kPage;
  file.put(3 * kPage, std::string(3 * kPage, 'x'));
  file.put(after, chunk);
  FileIndex index;
  ASSERT_TRUE(scan_chunks(file, kRecording, &index));
  ASSERT_EQ(index.damage.size(), 1u);
  EXPECT_EQ(index.damage[0].offset, 3 * kPage);
  EXPECT_EQ(index.damage[0].bytes, 3 * kPage);
  EXPECT_THAT(offsets(index), ElementsAre(after));
  EXPECT_THAT(index.unwritten, ElementsAre(std::pair<uint64_t, uint64_t>(kPage, 3 * kPage)));
}

}  // namespace
}  // namespace gpumemprof
