#include "readers/torch_snapshot/stacks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace gpumemprof::torch_snapshot {
namespace {

/// Lists like the one before and lists like none: each way to find a stack gives the same one.
TEST(Stacks, AListHasOneStackWhateverCameBefore) {
  StackTable table;
  Stacks stacks(table);
  std::map<std::vector<uint32_t>, uint32_t> known;
  std::mt19937_64 random(1);
  std::vector<uint32_t> frames;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 4 == 0 || frames.empty()) {
      frames.resize(1 + random() % 20);
      for (uint32_t& frame : frames) frame = static_cast<uint32_t>(1 + random() % 3);
    } else {
      frames.front() = static_cast<uint32_t>(1 + random() % 40);
      if (random() % 3 == 0) frames.insert(frames.begin(), 7);
      if (random() % 3 == 0) frames.erase(frames.begin());
    }
    const uint32_t stack = stacks.intern(frames);
    ASSERT_EQ(known.try_emplace(frames, stack).first->second, stack);
    std::vector<uint32_t> read;
    stacks.frames_of(stack, &read);
    ASSERT_EQ(read, frames);
  }
  EXPECT_EQ(stacks.intern({}), 0u);
}

}  // namespace
}  // namespace gpumemprof::torch_snapshot
