#include "probe/modules.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace gpumemprof::probe {
namespace {

/// As much of a PyTypeObject as is read: tp_name at 24.
struct Type {
  uint64_t head[3] = {};
  const char* name;
};

std::string text_of(uint32_t number) {
  char out[kMostModuleText];
  return {out, module_text(number, out)};
}
const void* at(uint64_t address) { return reinterpret_cast<const void*>(address); }

TEST(Modules, AnObjectHasOneNumberAndItsClassInTheText) {
  Type linear{{}, "Linear"}, relu{{}, "ReLU"};
  const uint32_t number = module_number(at(0x7f21c0a3d010), &linear);
  ASSERT_NE(number, 0u);
  EXPECT_EQ(module_number(at(0x7f21c0a3d010), &linear), number);
  EXPECT_EQ(text_of(number), "Linear@7f21c0a3d010");
  const uint32_t other = module_number(at(0x7f21c0a3d010), &relu);  // its address was used again
  EXPECT_NE(other, number);
  EXPECT_EQ(text_of(other), "ReLU@7f21c0a3d010");
  char direct[kMostModuleText];
  EXPECT_EQ(std::string(direct, module_text(at(0x10), &relu, direct)), "ReLU@10");
}

TEST(Modules, ALongNameIsCutWithTheAddressWhole) {
  const std::string long_name(500, 'L');
  Type type{{}, long_name.c_str()};
  EXPECT_EQ(text_of(module_number(at(0xfedcba9876543210), &type)),
            std::string(kMostClassName, 'L') + "@fedcba9876543210");
}

TEST(Modules, NoNumberIsNoText) {
  EXPECT_EQ(text_of(0), "");
  EXPECT_EQ(text_of(kModules + 1), "");
}

TEST(Modules, AFullTableAnswersUnknownAndKeepsWhatItHas) {
  Type type{{}, "Layer"};
  std::vector<uint32_t> numbers;
  std::set<uint32_t> distinct;
  for (uint64_t i = 1; i <= 2 * kModules; ++i) {
    numbers.push_back(module_number(at(i * 0x10000), &type));
    if (numbers.back()) distinct.insert(numbers.back());
  }
  EXPECT_GT(distinct.size(), kModules * 9 / 10);
  size_t known = 0;
  for (uint32_t number : numbers) known += number != 0;
  EXPECT_EQ(known, distinct.size()) << "two objects never share a number";
  for (uint64_t i = 1; i <= 2 * kModules; ++i) {
    EXPECT_EQ(module_number(at(i * 0x10000), &type), numbers[i - 1]);
  }
}

}  // namespace
}  // namespace gpumemprof::probe
