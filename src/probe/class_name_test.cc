#include "probe/class_name.h"

#include <gtest/gtest.h>

#include <string>
#include <typeinfo>

namespace gpumemprof::probe::generated {
struct WithATable {
  virtual ~WithATable() = default;
};
template <class T>
struct OfA : WithATable {};
}  // namespace gpumemprof::probe::generated

namespace gpumemprof::probe {
namespace {

std::string last(const std::string& mangled) {
  char out[64];
  return {out, last_part(mangled.c_str(), out, sizeof(out))};
}

TEST(ClassName, AnObjectTellsItsClass) {
  generated::OfA<int> object;
  const generated::WithATable& base = object;
  EXPECT_STREQ(mangled_class(&base), typeid(generated::OfA<int>).name());
  EXPECT_EQ(last(mangled_class(&base)), "OfA");
}

TEST(ClassName, TheLastPartIsTheClass) {
  EXPECT_EQ(last("N5torch8autograd9generated14AddmmBackward0E"), "AddmmBackward0");
  EXPECT_EQ(last("N5torch8autograd14AccumulateGradE"), "AccumulateGrad");
  EXPECT_EQ(last("4Node"), "Node");
  EXPECT_EQ(last("St9exception"), "exception");
  EXPECT_EQ(last("N5torch8autograd7CppNodeIN6vision3ops15ROIAlignFunctionEEE"), "CppNode");
}

TEST(ClassName, WhatIsNoNameOfThatFormIsNone) {
  for (const char* mangled :
       {"", "N", "NE", "i", "PKc", "N5tor", "N99999999999999999999xE", "0", "N0E", "Z4mainE3Foo"}) {
    EXPECT_EQ(last(mangled), "") << mangled;
  }
  EXPECT_EQ(last("N3abc100" + std::string(100, 'x') + "E"), "") << "longer than there is room for";
}

TEST(ClassName, EveryCutAndEveryFlippedByteStaysInside) {
  const std::string whole = "N5torch8autograd9generated14AddmmBackward0E";
  for (size_t length = 0; length < whole.size(); ++length) last(whole.substr(0, length));
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int flip = 1; flip < 256; ++flip) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      EXPECT_LE(last(damaged).size(), whole.size());
    }
  }
}

}  // namespace
}  // namespace gpumemprof::probe
