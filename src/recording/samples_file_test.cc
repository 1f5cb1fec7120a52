// Samples there and back, and what is left of them after damage.
#include "recording/samples_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <memory>

#include "base/file.h"
#include "recording/samples_writer.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

using for_tests::TempFolder;

const SamplesOrigin kOfARun{.host = "host",
                            .boot_id = "boot",
                            .pid = 77,
                            .start_ticks = 5,
                            .monotonic_ns = 1'000,
                            .realtime_ns = 1'000'000};

const SampleKey kUsed{"NVML", "nvidia:0", "used_bytes", 0};
const SampleKey kOwn{"NVML", "nvidia:0", "used_bytes", 41};
const SampleKey kName{"NVML", "nvidia:0", "name", 0};

/// Look i: the device uses 1000 + 7 i; process 41 is told at even looks, absent at every fourth.
TakenSample sample_of(uint64_t i) {
  TakenSample out{i * 1'000'000'000 + 5, i == 0 ? SampleCause::kStart : SampleCause::kPeriod, {}};
  out.values.emplace_back(kName, SampledValue::of_text("A GPU"));
  out.values.emplace_back(kUsed, SampledValue::of(1000 + 7 * i));
  if (i % 2 == 0) {
    out.values.emplace_back(kOwn,
                            i % 4 == 0 ? SampledValue::absent("not told") : SampledValue::of(i));
  }
  return out;
}

/// Empty where the looks that are there say what was written of them.
std::string contradiction(const RecordedSamples& read) {
  for (size_t look = 0; look < read.looks.size(); ++look) {
    const uint64_t i = read.looks[look].time_ns / 1'000'000'000;
    const TakenSample expected = sample_of(i);
    if (read.looks[look].time_ns != expected.time_ns || read.looks[look].cause != expected.cause)
      return "look " + std::to_string(look);
    size_t told = 0;
    for (size_t s = 0; s < read.series.size(); ++s) told += read.at(s, look) != nullptr;
    if (told != expected.values.size()) return "values of look " + std::to_string(look);
    for (const auto& [key, value] : expected.values) {
      const size_t series = read.find(key);
      if (series == SIZE_MAX) return "a series is gone";
      const auto* point = read.at(series, look);
      if (point == nullptr || point->kind != value.kind) return "kind at " + std::to_string(look);
      const bool is_right = value.kind == SampledKind::kNumber
                                ? point->number == value.number
                                : read.texts[point->number] == value.text;
      if (!is_right) return "value at " + std::to_string(look);
    }
  }
  return "";
}

std::string write_looks(const TempFolder& folder, uint64_t count, uint64_t most_bytes = 0) {
  auto writer = SamplesWriter::create(folder.path(), kOfARun, most_bytes);
  EXPECT_TRUE(writer);
  for (uint64_t i = 0; i < count; ++i) EXPECT_TRUE(writer->add(sample_of(i)));
  return writer->path();
}

void flip(const std::string& path, size_t at) {
  const int fd = open(path.c_str(), O_RDWR);
  char byte = 0;
  ASSERT_EQ(pread(fd, &byte, 1, static_cast<off_t>(at)), 1);
  byte = static_cast<char>(byte ^ 0x41);
  ASSERT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(at)), 1);
  close(fd);
}

TEST(Samples, AreReadAsTheyWereTaken) {
  TempFolder folder;
  const std::string path = write_looks(folder, 200);
  EXPECT_TRUE(path.ends_with("/host.77.5.gms"));
  const auto read = read_samples_file(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->looks.size(), 200u);
  EXPECT_EQ(contradiction(*read), "");
  EXPECT_EQ(read->missing_looks, 0u);
  EXPECT_TRUE(read->problems.empty());
  EXPECT_EQ(read->run_pid, 77u);
}

TEST(Samples, EachIsThereOnceItWasAdded) {
  TempFolder folder;
  auto writer = SamplesWriter::create(folder.path(), kOfARun, 0);
  ASSERT_TRUE(writer);
  for (uint64_t i = 0; i < 140; ++i) {
    ASSERT_TRUE(writer->add(sample_of(i)));
    const auto read = read_samples_file(writer->path());
    ASSERT_TRUE(read);
    ASSERT_EQ(read->looks.size(), i + 1);
    ASSERT_EQ(contradiction(*read), "");
  }
}

TEST(Samples, AnUnchangedValueTakesNoRoom) {
  SampleChunkEncoder chunk;
  const TakenSample same{10, SampleCause::kPeriod, sample_of(0).values};
  ASSERT_TRUE(chunk.add(same));
  const size_t first = chunk.payload().size();
  ASSERT_TRUE(chunk.add(same));
  EXPECT_EQ(chunk.payload().size(), first + 3);  // time, cause, no changes
}

TEST(Samples, StayBelowALimitByGivingUpTheOldest) {
  TempFolder folder;
  constexpr uint64_t kLimit = 24 * 1024;
  const std::string path = write_looks(folder, 2'000, kLimit);
  struct stat st;
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  EXPECT_LE(static_cast<uint64_t>(st.st_blocks) * 512, kLimit);
  const auto read = read_samples_file(path);
  ASSERT_TRUE(read);
  EXPECT_GT(read->looks.size(), kMostSamplesInChunk);
  EXPECT_EQ(read->looks.size() + read->missing_looks, 2'000u);
  EXPECT_EQ(read->looks.back().time_ns, 1'999'000'000'005u);
  EXPECT_EQ(contradiction(*read), "");
}

TEST(Samples, OfTwoFilesOfOneNameTheSecondIsRefused) {
  TempFolder folder;
  write_looks(folder, 1);
  EXPECT_FALSE(SamplesWriter::create(folder.path(), kOfARun, 0));
}

TEST(Samples, WhateverIsCutOffNothingIsInvented) {
  TempFolder folder;
  const std::string path = write_looks(folder, 70);
  const std::string bytes = for_tests::read_file(path);
  for (size_t size = bytes.size(); size-- > 0;) {
    // Places are mostly holes: every byte of what is written, some of the rest.
    const bool is_in_place = size % kSamplesPlaceBytes < 2 * format::kPage && bytes[size] != 0;
    if (!is_in_place && size % 4093 != 0) continue;
    ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(size)), 0);
    const auto read = read_samples_file(path, 1);
    if (!read) continue;  // said
    ASSERT_EQ(contradiction(*read), "") << size;
    // Cut between two chunks, or in what was never written, nothing shows that more was there.
    ASSERT_LE(read->looks.size(), 70u);
  }
}

TEST(Samples, EveryFlippedByteIsSaidOrOfNoConsequence) {
  TempFolder folder;
  const std::string path = write_looks(folder, 70);
  const std::string bytes = for_tests::read_file(path);
  size_t told = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] == 0 && at % 4093 != 0) continue;
    flip(path, at);
    const auto read = read_samples_file(path, 1);
    flip(path, at);
    if (!read) {
      ++told;
      continue;
    }
    ASSERT_EQ(contradiction(*read), "") << at;
    if (read->looks.size() < 70) {
      // The shorter copy of the growing chunk is a look behind; of a lost whole chunk the gap
      // tells.
      ASSERT_TRUE(!read->problems.empty()) << at;
      ++told;
    }
  }
  EXPECT_GT(told, 100u);
}

/// A file in which a `run` writes chunk after chunk anew between the scan and the next look.
class RewrittenFile : public File {
 public:
  explicit RewrittenFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  const std::string& path() const override { return file_->path(); }
  Result<uint64_t> size() override { return file_->size(); }
  Result<size_t> read_at(uint64_t offset, void* data, size_t size) override {
    auto got = file_->read_at(offset, data, size);
    // What is read from within a page is a payload; the first time the scan wants its CRC.
    const bool is_payload = offset >= format::kPage && offset % format::kPage != 0;
    if (got && *got != 0 && is_payload && is_seen_[offset]++)
      static_cast<char*>(data)[*got - 1] ^= 1;
    return got;
  }
  Status write_at(uint64_t, const void*, size_t) override { return {}; }
  uint64_t next_data(uint64_t offset, uint64_t size) override {
    return file_->next_data(offset, size);
  }
  Result<uint64_t> punch(uint64_t, uint64_t) override { return 0; }
  Result<uint64_t> add_at(uint64_t, uint64_t) override { return 0; }
  bool lock(bool) override { return true; }
  void unlock() override {}

 private:
  std::unique_ptr<File> file_;
  std::map<uint64_t, int> is_seen_;
};

TEST(Samples, WhatChangedSinceItsCrcWasRightIsSaidAndNotTaken) {
  TempFolder folder;
  auto file = open_file(write_looks(folder, 3), FileMode::kRead);
  ASSERT_TRUE(file);
  RewrittenFile rewritten(std::move(*file));
  const auto read = read_samples_file(rewritten, 1);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->looks.empty());
  ASSERT_EQ(read->problems.size(), 1u);
  EXPECT_NE(read->problems[0].find("changed while it was read"), std::string::npos);
}

TEST(Samples, OfVeryManyProblemsTheFirstAreToldAndTheRestCounted) {
  TempFolder folder;
  const std::string path = write_looks(folder, 1);
  std::string bytes = for_tests::read_file(path).substr(0, 2 * format::kPage);
  bytes.resize(2 * format::kPage);
  const std::string chunk = bytes.substr(format::kPage);
  for (int i = 0; i < 70; ++i) bytes += std::string(format::kPage, 'x') + chunk;
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC);
  ASSERT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  close(fd);
  const auto read = read_samples_file(path, 1);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->problems.size(), 65u);
  EXPECT_TRUE(read->problems[64].ends_with(": and 6 more unreadable places"));
  EXPECT_EQ(read->looks.size(), 1u);
}

TEST(Samples, AHostileChunkIsAnErrorWithAPlace) {
  SampleChunkEncoder chunk;
  for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(chunk.add(sample_of(i)));
  const std::string payload = chunk.payload();
  ASSERT_TRUE(parse_sample_chunk(payload, 5));
  for (size_t size = 0; size < payload.size(); ++size) {
    const auto cut = parse_sample_chunk(payload.substr(0, size), 5);
    ASSERT_FALSE(cut) << size;
    ASSERT_LE(*cut.error().offset, size);
  }
  EXPECT_FALSE(parse_sample_chunk(payload + "x", 5));
  EXPECT_FALSE(parse_sample_chunk(payload, UINT64_MAX));  // a time that wraps
}

}  // namespace
}  // namespace gpumemprof
