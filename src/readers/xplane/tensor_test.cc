#include "readers/xplane/tensor.h"

#include <gtest/gtest.h>

namespace gpumemprof::xplane {
namespace {

TEST(TensorText, IsTypeAndShape) {
  EXPECT_EQ(tensor_text(1, "[32,64]"), "float32[32,64]");
  EXPECT_EQ(tensor_text(9, "[]"), "int64[]");
  EXPECT_EQ(tensor_text(21, "[?,3]"), "variant[?,3]");
  EXPECT_EQ(tensor_text(30, "[1]"), "uint4[1]");
}

TEST(TensorText, OfAnUnknownTypeSaysItsNumberAndOfNoneNothing) {
  EXPECT_EQ(tensor_text(99, "[2]"), "type 99 [2]");
  EXPECT_EQ(tensor_text(-7, "[2]"), "type -7 [2]");
  EXPECT_EQ(tensor_text(0, "[2]"), "[2]");
}

TEST(TensorText, AnythingThatIsNoShapeIsUnknown) {
  for (std::string bad : {"", "[", "]", "2", "[2", "[a]", "[1\n2]", "[[1]]", "<b>"}) {
    EXPECT_EQ(tensor_text(1, bad), "") << bad;
  }
  EXPECT_EQ(tensor_text(1, "[" + std::string(100'000, '1') + "]"), "");
}

}  // namespace
}  // namespace gpumemprof::xplane
