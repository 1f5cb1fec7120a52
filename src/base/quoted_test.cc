#include "base/quoted.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(Quoted, ControlCharactersAreReplacedAndTheRestStays) {
  EXPECT_EQ(quoted("llama"), "\"llama\"");
  EXPECT_EQ(quoted(""), "\"\"");
  EXPECT_EQ(quoted(std::string_view("a\nb\0c\x7f\x1b[1m", 10)), "\"a?b?c??[1m\"");
  EXPECT_EQ(quoted("größe"), "\"größe\"");
}

TEST(Quoted, WhatIsTooLongEndsAtACharacter) {
  EXPECT_EQ(quoted("abcdef", 6), "\"abcdef\"");
  EXPECT_EQ(quoted("abcdef", 5), "\"abcde…\"");
  EXPECT_EQ(quoted("aöb", 2), "\"a…\"") << "ö has two bytes";
  EXPECT_EQ(quoted("aöbc", 3), "\"aö…\"");
  EXPECT_EQ(quoted("\x80\x80\x80", 2), "\"…\"");
}

}  // namespace
}  // namespace gpumemprof
