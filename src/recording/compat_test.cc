// Every released minor version stays readable: one pair of files of each under tests/compat.
#include <gtest/gtest.h>

#include "recording/compact.h"
#include "recording/fake_probe.h"
#include "recording/file_sealer.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

using namespace for_tests;

const std::string kFolder = std::string(GPUMEMPROF_SOURCE_DIR) + "/tests/compat/";

/// What the files hold: 60 allocations by two functions, each freed two events later, a
/// second thread with a GPU, one size over 2^37, totals.
std::vector<ExpectedEvent> expected_events() {
  std::vector<ExpectedEvent> events;
  for (uint64_t i = 0; i < 60; ++i) {
    events.push_back({10'000 + 100 * i, 0x7f0000000000 + 64 * i, 1000 + i, 1, 501,
                      i % 2 ? "backward" : "forward"});
    if (i >= 2) events.push_back({10'050 + 100 * i, 0x7f0000000000 + 64 * (i - 2), 0, 3, 501, ""});
  }
  events.push_back({20'000, 0x100000, (uint64_t{1} << 38) + 512, 1, 502, "load"});
  events.push_back({20'500, 0x100000, (uint64_t{1} << 38) + 512, 2, 502, ""});
  return events;
}

TEST(Compat, DISABLED_WriteTheFilesOfThisVersion) {
  FakeProbe probe(0x60d6, 500, 40);
  auto& main = probe.start_thread(501, "python");
  uint32_t stacks[2] = {probe.define_stack(&main, {"train", "forward"}, 12),
                        probe.define_stack(&main, {"train", "backward"}, 13)};
  for (uint64_t i = 0; i < 60; ++i) {
    probe.alloc(&main, 10'000 + 100 * i, 0x7f0000000000 + 64 * i, 1000 + i, stacks[i % 2]);
    if (i >= 2) probe.free(&main, 10'050 + 100 * i, 0x7f0000000000 + 64 * (i - 2));
  }
  probe.reuse(&main, 502, "loader");
  uint32_t load = probe.define_stack(&main, {"load"}, 14);
  probe.define_device(&main, 7, 1, 2);
  const uint64_t size = (uint64_t{1} << 38) + 512;
  probe.alloc(&main, 20'000, 0x100000, size, load, 7);
  probe.totals(&main, 20'000, size, 2 * size, 7);
  probe.free(&main, 20'500, 0x100000, 7, size);
  ASSERT_EQ(probe.save(kFolder + "1.1-small.gmp"), 0);
  ASSERT_EQ(probe.save(kFolder + "1.1-small-sealed.gmp"), 0);
  auto file = std::move(*open_file(kFolder + "1.1-small-sealed.gmp", FileMode::kReadWrite));
  ASSERT_TRUE((*FileSealer::open(file.get(), {}))->finish());
  ASSERT_TRUE(*compact_file(*file));
}

TEST(Compat, FilesOfEveryVersionReadTheSameRawAndSealed) {
  for (const char* name :
       {"1.0-small.gmp", "1.0-small-sealed.gmp", "1.1-small.gmp", "1.1-small-sealed.gmp"}) {
    auto read = read_all({kFolder + name});
    EXPECT_EQ(read.error, "");
    EXPECT_EQ(read.events, expected_events()) << name;
    EXPECT_EQ(read.device_names, (std::vector<std::string>{"cpu", "cuda:2"})) << name;
    const uint64_t size = (uint64_t{1} << 38) + 512;
    EXPECT_EQ(read.totals, (std::vector<ReadTotals>{{118, size, 2 * size}})) << name;
    EXPECT_EQ(read.loss.reasons.size(), 0u) << name;
    ASSERT_EQ(read.processes.size(), 1u);
    EXPECT_EQ(read.processes[0].pid, 500u);
    EXPECT_EQ(read.stack_of_first,
              (std::vector<std::string>{"forward.py:12 forward", "train.py:12 train"}));
  }
}

}  // namespace
}  // namespace gpumemprof
