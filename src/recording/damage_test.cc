// Whatever is done to a file: no crash, no hang, no event that was not written, and what is missing
// is said.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "recording/fake_probe.h"
#include "recording/seal.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

using namespace for_tests;

/// Two threads, one of them in the second turn of a buffer; chunks of events and definitions, and
/// halves.
void small_program(FakeProbe* probe) {
  probe->write_as_dead_process();
  auto& a = probe->start_thread(11, "main");
  auto& b = probe->start_thread(12, "worker");
  uint32_t in_a[2] = {probe->define_stack(&a, {"main", "step"}, 3),
                      probe->define_stack(&a, {"main", "loss"}, 4)};
  uint32_t in_b = probe->define_stack(&b, {"load"}, 5);
  for (uint64_t i = 0; i < 150; ++i) {
    auto& thread = i % 4 == 3 ? b : a;
    uint32_t stack = i % 4 == 3 ? in_b : in_a[i % 2];
    if (i % 11 == 0) probe->begin_step(&thread, static_cast<int64_t>(i * 0x9e3779b97f4a7c15));
    if (i % 5 < 3) {
      probe->alloc(&thread, 5000 + 7 * i, 0x10000 + 64 * i, 100 + i, stack);
    } else {
      probe->free(&thread, 5000 + 7 * i, 0x10000 + 64 * (i - 3));
    }
  }
}

/// Every event read is the next one written, possibly after some that are missing. Names may be
/// unknown, never others.
bool is_part_of(const std::vector<ExpectedEvent>& part, const std::vector<ExpectedEvent>& whole) {
  size_t at = 0;
  for (const ExpectedEvent& event : part) {
    auto same = [&](const ExpectedEvent& w) {
      return w.time_ns == event.time_ns && w.address == event.address &&
             w.size_bytes == event.size_bytes && w.action == event.action &&
             (event.tid == w.tid || event.tid == 0) &&
             (event.leaf == w.leaf || event.leaf.empty()) &&
             (event.step == w.step || event.step == kNoStep);
    };
    while (at < whole.size() && !same(whole[at])) ++at;
    if (at == whole.size()) return false;
    ++at;
  }
  return true;
}

bool says_something(const EverythingRead& read) {
  return !read.error.empty() || !read.loss.reasons.empty();
}

class DamagedRecording : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    FakeProbe probe(0x1234, 100, 40);
    small_program(&probe);
    ASSERT_EQ(probe.save(path_), 0);
    if (GetParam()) {
      ASSERT_TRUE(FolderSealer(folder_.path(), {}).finish());
    }
    bytes_ = read_file(path_);
    whole_ = read_all({path_});
    ASSERT_EQ(whole_.events.size(), 150u);
    ASSERT_FALSE(says_something(whole_));
  }
  /// Every byte that is not zero, and one of 211 that are: a buffer is mostly zeros that nobody
  /// reads.
  bool is_worth_it(size_t at) const { return bytes_[at] != 0 || at % 211 == 0; }

  TempFolder folder_;
  std::string path_ = folder_.file("a.gmp");
  std::string bytes_;
  EverythingRead whole_;
};

TEST_P(DamagedRecording, CutAtEveryLengthItYieldsWhatIsBeforeTheCut) {
  size_t most = 150;
  for (size_t length = bytes_.size(); length-- > 0;) {
    if (!is_worth_it(length)) continue;
    ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(length)), 0);
    auto read = read_all({path_});
    ASSERT_TRUE(is_part_of(read.events, whole_.events)) << "cut at " << length;
    ASSERT_LE(read.events.size(), most) << "cut at " << length;
    most = read.events.size();
    // A file that ends between two chunks looks like one that is still being written.
    size_t rest = std::min(bytes_.size(), (length + 4095) / 4096 * 4096) - length;
    bool between = bytes_.find_first_not_of('\0', length) >= length + rest;
    if (read.events.size() < 150 && !between) {
      ASSERT_TRUE(says_something(read)) << "cut at " << length;
    }
  }
  EXPECT_EQ(most, 0u);
}

TEST_P(DamagedRecording, WithAnyByteFlippedNothingIsInventedAndLossesAreSaid) {
  auto file = std::move(*open_file(path_, FileMode::kReadWrite));
  int silent = 0;
  for (size_t at = 0; at < bytes_.size(); ++at) {
    if (!is_worth_it(at)) continue;
    for (char flip : {char(0x01), char(0x80), char(0xff)}) {
      char damaged = static_cast<char>(bytes_[at] ^ flip);
      ASSERT_TRUE(file->write_at(at, &damaged, 1));
      auto read = read_all({path_});
      ASSERT_TRUE(is_part_of(read.events, whole_.events)) << "byte " << at << " ^ " << int(flip);
      ASSERT_TRUE(read.in_time_order);
      // The word that says how much of a buffer is published has no copy: less of it is not seen as
      // damage.
      if (read.events.size() < 150 && !says_something(read)) ++silent;
    }
    ASSERT_TRUE(file->write_at(at, &bytes_[at], 1));
  }
  EXPECT_LE(silent, GetParam() ? 0 : 2 * 2 * 3);
}

TEST_P(DamagedRecording, WithAnyPageLostTheRestIsRead) {
  for (size_t page = 4096; page < bytes_.size(); page += 4096) {
    for (char fill : {'\0', 'x'}) {
      std::string damaged = bytes_;
      damaged.replace(page, 4096, std::min<size_t>(4096, damaged.size() - page), fill);
      write_file(path_, damaged);
      auto read = read_all({path_});
      ASSERT_EQ(read.error, "");
      ASSERT_TRUE(is_part_of(read.events, whole_.events)) << "page " << page;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RawAndSealed, DamagedRecording, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "Sealed" : "Raw"; });

}  // namespace
}  // namespace gpumemprof
