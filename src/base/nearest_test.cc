#include "base/nearest.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(Nearest, TwoLettersMayDiffer) {
  const std::vector<std::string> names = {"category", "module", "line"};
  EXPECT_EQ(nearest("catgory", names), "category");
  EXPECT_EQ(nearest("caetgory", names), "category") << "swapped letters are one change";
  EXPECT_EQ(nearest("modules", names), "module");
  EXPECT_EQ(nearest("catgry", names), "category");
  EXPECT_EQ(nearest("catry", names), "") << "three are missing";
  EXPECT_EQ(nearest("", names), "");
}

}  // namespace
}  // namespace gpumemprof
