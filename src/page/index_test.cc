// An index gives back the run that it was written of, or is refused: never anything between.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/crc32c.h"
#include "page/answers.h"
#include "page/index_file.h"

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;

const std::string kRuns = GPUMEMPROF_SOURCE_DIR "/tests/fixtures/recordings/";

class PageIndexTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpumemprof-index-XXXXXX";
    folder_ = mkdtemp(name);
    run_ = folder_ / "run.pickle", index_ = folder_ / "index";
    fs::copy_file(kRuns + "range_2.6.pickle", run_);
    auto file = PageFile::load({run_}, {.uses_index = false});
    ASSERT_TRUE(file) << file.error().message;
    file_ = std::move(*file);
    ASSERT_TRUE(PageIndex::write(*file_, index_, "key"));
    std::ifstream in(index_, std::ios::binary);
    written_.assign(std::istreambuf_iterator<char>(in), {});
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(std::string_view bytes) const {
    std::ofstream(index_, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::unique_ptr<PageFile> read() {
    why_.clear();
    return PageIndex::read(index_, "key", &why_);
  }

  fs::path folder_;
  std::string run_, index_, written_, why_;
  std::unique_ptr<PageFile> file_;
};

/// What the page would be told, whatever it asks.
std::string every_answer(PageFile& file) {
  std::string all = json_text(file.facts().run);
  const auto add = [&](auto answer, const std::string& query) {
    PageRequest request(query, file);
    const PageAnswer given = answer(request);
    all += std::to_string(given.status) + given.body;
  };
  for (size_t d = 0; d < file.devices().size(); ++d) {
    const std::string device = "device=" + std::to_string(d);
    for (const char* by : {"category", "module", "line", "stack", "stream", "process", "thread"})
      add(levels_answer, device + "&by=" + by);
    for (const char* by : {"category", "module", "stack"}) {
      add(holders_answer, device + "&event=peak&by=" + by);
      add(holders_answer, device + "&what=left&by=" + by);
    }
    for (const auto answer : {times_answer, blocks_answer, marks_answer, space_answer}) {
      add(answer, device);
    }
    add(search_answer, device + "&q=a");
    for (uint32_t b = 0; b < file.devices()[d].table->blocks(); ++b)
      add(block_answer, device + "&id=" + std::to_string(b));
  }
  return all;
}

TEST_F(PageIndexTest, GivesEveryAnswerOfTheRun) {
  Worker worker;
  for (const char* name : {"range_2.6.pickle", "range_2.6.gmp", "streams_2.13.gmp",
                           "streams_2.13.pickle", "pools_2.15.gmp", "pools_2.15.pickle"}) {
    auto file = PageFile::load({kRuns + name}, {.uses_index = false});
    ASSERT_TRUE(file);
    (*file)->set_worker(&worker);  // the first chart's levels are in the index, too
    ASSERT_TRUE(PageIndex::write(**file, index_, "key"));
    const auto again = read();
    ASSERT_TRUE(again) << name << why_;
    EXPECT_EQ(every_answer(*again), every_answer(**file)) << name;
  }
}

TEST_F(PageIndexTest, IsOfItsOwnerAlone) {
  struct stat facts{};
  ASSERT_EQ(stat(index_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  const std::string link = folder_ / "link";
  fs::create_symlink(index_, link);
  EXPECT_FALSE(PageIndex::read(link, "key", &why_));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 3)
      << "run, index and link: nothing half written stays";
}

TEST_F(PageIndexTest, OfOtherFilesIsNone) {
  EXPECT_FALSE(PageIndex::read(index_, "another", &why_));
  EXPECT_EQ(why_, "");
  EXPECT_FALSE(PageIndex::read(folder_ / "absent", "key", &why_));
  EXPECT_EQ(why_, "");
}

TEST_F(PageIndexTest, CutAnywhereIsRefused) {
  // Every length near both ends, where each field is of another kind; one in 13 between them.
  constexpr size_t kNear = 3000;
  for (size_t length = written_.size() - 1;; length -= 1) {
    fs::resize_file(index_, length);
    ASSERT_FALSE(read()) << length;
    ASSERT_NE(why_, "") << length;
    ASSERT_EQ(why_.find('\n'), std::string::npos);
    if (length == 0) break;
    if (length > kNear && length + kNear < written_.size()) length -= 12;
  }
  put(written_ + "x");
  EXPECT_FALSE(read());
  EXPECT_NE(why_.find("it is longer than its contents"), std::string::npos) << why_;
}

TEST_F(PageIndexTest, OneByteOtherIsRefused) {
  for (size_t at = 0; at < written_.size(); at += 31) {
    std::string bytes = written_;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x41);
    put(bytes);
    ASSERT_FALSE(read()) << at;
  }
}

/// Who damages on purpose sets the checksum right: then what is read is refused, or is a run of
/// which every question is answered.
TEST_F(PageIndexTest, DamageUnderARightChecksumBreaksNothing) {
  size_t refused = 0, taken = 0;
  for (size_t at = sizeof(uint64_t); at + 2 * sizeof(uint32_t) < written_.size(); at += 297) {
    for (const char with : {'\xff', '\x00', '\x01'}) {
      std::string bytes = written_;
      for (size_t i = 0; i < 4; ++i) bytes[at + i] = with;
      const size_t body = bytes.size() - sizeof(uint32_t);
      const uint32_t crc = crc32c(0, bytes.data(), body);
      std::memcpy(bytes.data() + body, &crc, sizeof crc);
      put(bytes);
      const auto file = read();
      ++(file ? taken : refused);
      if (file && at % 5 == 0) {
        EXPECT_NE(every_answer(*file), "");
      }
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(taken, 0u);
}

TEST_F(PageIndexTest, AChangedFileHasAnotherKey) {
  const std::string before = index_key({run_});
  ASSERT_NE(before, "");
  EXPECT_EQ(index_key({run_}), before);
  const auto time = fs::last_write_time(run_);
  // The same size, the same time, one byte other.
  std::fstream file(run_, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(1000), file.put('!'), file.close();
  fs::last_write_time(run_, time);
  EXPECT_NE(index_key({run_}), before);
  const std::string changed = index_key({run_});
  fs::copy_file(run_, folder_ / "copy"), fs::rename(folder_ / "copy", run_);
  fs::last_write_time(run_, time);
  EXPECT_NE(index_key({run_}), changed) << "another inode";
  EXPECT_EQ(index_key({run_, (folder_ / "absent").string()}), "");
}

TEST_F(PageIndexTest, ARunThatIsReadInAnotherWayHasAnotherKey) {
  const auto key = [&](const PageReading& reading) { return index_key({run_}, reading); };
  EXPECT_EQ(key({}), index_key({run_}));
  EXPECT_EQ(key({.seal = false}), key({}));
  EXPECT_NE(key({.analysis = {.capacity_bytes = 1 << 30}}), key({}));
  EXPECT_NE(key({.analysis = {.moments = {{}}}}), key({}));
  EXPECT_NE(key({.all_advice = true}), key({}));
  EXPECT_NE(key({.sensitivity = 0.5}), key({}));
  EXPECT_EQ(key({.names = std::make_shared<Anonymizer>()}), "");
}

TEST_F(PageIndexTest, IsTakenForTheReadingThatItIsOfAlone) {
  const std::string place = index_places({run_}).front();
  std::vector<std::string> notes;
  const auto notes_of = [&](PageReading reading) {
    notes.clear();
    const auto file = PageFile::load({run_}, {.reading = std::move(reading),
                                              .uses_index = true,
                                              .on_note = [&](std::string note) {
                                                notes.push_back(std::move(note));
                                              }});
    EXPECT_TRUE(file);
    return notes.size();
  };
  ASSERT_TRUE(PageIndex::write(*file_, place, index_key({run_})));
  fs::resize_file(place, fs::file_size(place) - 1);  // so that it is told who looks into it
  EXPECT_EQ(notes_of({}), 1u);
  EXPECT_EQ(notes_of({.analysis = {.capacity_bytes = 1 << 30}}), 0u);
  EXPECT_EQ(notes_of({.names = std::make_shared<Anonymizer>()}), 0u);
}

TEST_F(PageIndexTest, WhatLiesBesideARecordingCounts) {
  const fs::path recording = folder_ / "recording";
  fs::create_directory(recording);
  fs::copy_file(kRuns + "range_2.6.gmp", recording / "a.1.1.gmp");
  const std::string before = index_key({recording});
  std::ofstream(recording / kIndexSuffix) << "an index is no part of what it is of";
  EXPECT_EQ(index_key({recording}), before);
  std::ofstream(recording / "a.1.1.samples") << "x";
  EXPECT_NE(index_key({recording}), before);
}

TEST_F(PageIndexTest, WhereItCannotBeBesideTheCacheHasIt) {
  const std::string cache = folder_ / "cache";
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const auto places = index_places({run_});
  unsetenv("XDG_CACHE_HOME");
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0], fs::canonical(run_).string() + ".page-index");
  EXPECT_TRUE(places[1].starts_with(cache + "/gpumemprof/")) << places[1];
}

}  // namespace
}  // namespace gpumemprof
