#include "recording/modules.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

class NativeModules : public testing::Test {
 protected:
  void add(uint64_t start, uint64_t end, const char* path) { list_.add({start, end, start, path}); }
  std::string at(uint64_t pc) {
    const Frame frame = tables_.stacks.frame(list_.frame(pc, &tables_));
    return std::string(tables_.strings.get(frame.function));
  }
  ModuleList list_{"another-host", 0};
  Tables tables_;
};

TEST_F(NativeModules, NameTheAddressesFromTheirFirstToTheirLast) {
  add(0x1000, 0x2000, "/lib/a.so");
  EXPECT_EQ(at(0xfff), "0xfff");
  EXPECT_EQ(at(0x1000), "0x0 in a.so");
  EXPECT_EQ(at(0x1fff), "0xfff in a.so");
  EXPECT_EQ(at(0x2000), "0x2000");
}

TEST_F(NativeModules, OfOverlappingOnesTheLatestCountsAndTheOthersKeepTheRest) {
  add(0x1000, 0x4000, "/lib/a.so");
  add(0x6000, 0x7000, "/lib/b.so");
  add(0x2000, 0x3000, "/lib/inside.so");
  add(0x3800, 0x6800, "/lib/across.so");
  EXPECT_EQ(at(0x1fff), "0xfff in a.so");
  EXPECT_EQ(at(0x2000), "0x0 in inside.so");
  EXPECT_EQ(at(0x3000), "0x2000 in a.so");
  EXPECT_EQ(at(0x37ff), "0x27ff in a.so");
  EXPECT_EQ(at(0x3800), "0x0 in across.so");
  EXPECT_EQ(at(0x67ff), "0x2fff in across.so");
  EXPECT_EQ(at(0x6800), "0x800 in b.so");
}

TEST_F(NativeModules, ThatIsSaidAgainDoesNotCoverWhatCameAfterIt) {
  add(0x1000, 0x4000, "/lib/a.so");
  add(0x2000, 0x3000, "/lib/inside.so");
  add(0x1000, 0x4000, "/lib/a.so");
  EXPECT_EQ(at(0x2000), "0x0 in inside.so");
}

TEST_F(NativeModules, ThatIsSaidLaterNamesWhatWasOutsideOfAll) {
  EXPECT_EQ(at(0x1000), "0x1000");
  add(0x1000, 0x2000, "/lib/late.so");
  EXPECT_EQ(at(0x1000), "0x0 in late.so");
}

}  // namespace
}  // namespace gpumemprof
