#include "run/stand_in.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gpumemprof {
namespace {

// What it writes is loaded and called in tests/driver/test_new_functions.py.

TEST(StandIn, OfWhatHasNoSparesNoneCanBeMade) {
  const std::string path = testing::TempDir() + "stand_in_of_nothing.so";
  for (const char* file : {"/no/such/library", "/dev/null", "/proc/self/exe"}) {
    const Status done = write_stand_in_with(file, {"cuNew"}, path);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(done.error().message,
              "exports 1 functions unknown to this version (cuNew, …), which has room for 0");
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

}  // namespace
}  // namespace gpumemprof
