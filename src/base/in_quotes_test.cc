#include "base/in_quotes.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(Quoted, ControlCharactersAreReplacedAndTheRestStays) {
  EXPECT_EQ(in_quotes("llama"), "\"llama\"");
  EXPECT_EQ(in_quotes(""), "\"\"");
  EXPECT_EQ(in_quotes(std::string_view("a\nb\0c\x7f\x1b[1m", 10)), "\"a?b?c??[1m\"");
  EXPECT_EQ(in_quotes("größe"), "\"größe\"");
}

TEST(Quoted, WhatIsTooLongEndsAtACharacter) {
  EXPECT_EQ(in_quotes("abcdef", 6), "\"abcdef\"");
  EXPECT_EQ(in_quotes("abcdef", 5), "\"abcde…\"");
  EXPECT_EQ(in_quotes("aöb", 2), "\"a…\"") << "ö has two bytes";
  EXPECT_EQ(in_quotes("aöbc", 3), "\"aö…\"");
  EXPECT_EQ(in_quotes("\x80\x80\x80", 2), "\"…\"");
}

}  // namespace
}  // namespace gpumemprof
