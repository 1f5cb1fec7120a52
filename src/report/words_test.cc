#include "report/words.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gpumemprof {
namespace {

TEST(Wrapped, KeepsANumberAndItsUnitOnOneLine) {
  EXPECT_EQ(wrapped("of all (37.9 %) and 12.0 MiB, that is all", 13),
            (std::vector<std::string>{"of all", "(37.9 %) and", "12.0 MiB,", "that is all"}));
  EXPECT_EQ(wrapped("in 5 steps", 4), (std::vector<std::string>{"in 5", "steps"}));
}

TEST(Words, WhatCouldSteerATerminalIsReplaced) {
  EXPECT_EQ(printable("a\x1b[31mb\nc\x7f"),
            "a\xef\xbf\xbd[31mb\xef\xbf\xbd"
            "c\xef\xbf\xbd");
  EXPECT_EQ(printable("naïve/日本.py 🙂"), "naïve/日本.py 🙂");
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            "a\xef\xbf\xbd"
            "b")
      << "right-to-left override";
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m"),
            "\xef\xbf\xbd"
            "1m")
      << "the one-character CSI";
}

TEST(Words, WhatIsNotUtf8IsReplacedByteByByte) {
  for (std::string bad :
       {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"}) {
    std::string expected;
    for (size_t i = 0; i < bad.size(); ++i) expected += "\xef\xbf\xbd";
    EXPECT_EQ(printable("x" + bad), "x" + expected);
  }
}

TEST(Words, JsonStringsAreWhatAnotherParserReadsBack) {
  for (std::string text : {std::string("plain"), std::string("q\"b\\s/\t\n\x01\x7f\0z", 13),
                           std::string("日本 🙂"), std::string("\xe2\x80\xa8")}) {
    std::string json;
    append_json_string(&json, text);
    EXPECT_EQ(nlohmann::json::parse(json).get<std::string>(), text);
  }
  std::string json;
  append_json_string(&json, "a\xff");
  EXPECT_EQ(nlohmann::json::parse(json).get<std::string>(), "a\xef\xbf\xbd");
}

TEST(Words, NumbersReadAsPeopleWriteThem) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(UINT64_MAX), "18,446,744,073,709,551,615");
  EXPECT_EQ(format_percent(1, 3), "33.3 %");
  EXPECT_EQ(format_percent(1, 100000), "< 0.1 %");
  EXPECT_EQ(format_percent(5, 0), "0 %");
  EXPECT_EQ(format_plural(1, "process"), "1 process");
  EXPECT_EQ(format_plural(2, "process"), "2 processes");
}

TEST(Words, AProcessIsNamedByItsProgramAndCutBetweenCharacters) {
  EXPECT_EQ(process_label({.pid = 3, .command = "/usr/bin/python a.py"}),
            "process 3 (python a.py)");
  EXPECT_EQ(process_label({.pid = 3, .command = "ééééé"}, 3), "process 3 (éé…)");
  EXPECT_EQ(process_label({.pid = 3, .command = "python -c a\nb"}), "process 3 (python -c a b)");
  EXPECT_EQ(process_label({.pid = 3}), "process 3");
  EXPECT_EQ(process_label({.pid = 3, .command = "python a.py", .rank = 0}), "rank 0 (process 3)");
  EXPECT_EQ(process_label({.host = "node7"}), "a process on node7");
  EXPECT_EQ(process_label({}), "a process");
}

TEST(Words, PathsAreShortenedFromTheLeft) {
  EXPECT_EQ(short_path("/opt/job/a/b.py", "/opt/job"), "a/b.py");
  EXPECT_EQ(short_path("/opt/jobs/b.py", "/opt/job"), "/opt/jobs/b.py");
  EXPECT_EQ(short_path("/v/lib/python3.11/site-packages/torch/x.py", ""), "…/torch/x.py");
  EXPECT_EQ(short_path("/aaaaaaaaaaaaaaaaaaaaaaaaaaaa/bbbbbbbbbbbbbbbbbbbbbbbbbb/c.py", ""),
            "…/bbbbbbbbbbbbbbbbbbbbbbbbbb/c.py");
  EXPECT_EQ(short_path("/tmp/ipykernel_12/271823389.py", ""), "<cell 271823389>");
  EXPECT_EQ(short_path("C:\\Temp\\ipykernel_3\\271823389.py", ""), "<cell 271823389>");
  EXPECT_EQ(short_path("/tmp/ipykernel_12/train.py", ""), "/tmp/ipykernel_12/train.py");
  EXPECT_EQ(short_path("C:\\v\\Lib\\site-packages\\torch\\x.py", ""), "…\\torch\\x.py");
  EXPECT_EQ(short_path("C:\\aaaaaaaaaaaaaaaaaaaaaaaaaaa\\bbbbbbbbbbbbbbbbbbbbbbbbbb\\c.py", ""),
            "…\\bbbbbbbbbbbbbbbbbbbbbbbbbb\\c.py");
}

TEST(Fitted, ALongLineGoesOnBelowTheLastColumnThatBeginsInItsFirstHalf) {
  EXPECT_EQ(fitted("   59.0 MiB  63.0 %  train.py:10 step  hist.append(model(x))  # kept\n\nshort\n", 50),
            "   59.0 MiB  63.0 %  train.py:10 step\n" + std::string(21, ' ') +
                "hist.append(model(x))  # kept\n\nshort\n");
  EXPECT_EQ(fitted("one two three", 7), "one two\nthree");
  EXPECT_EQ(fitted("takes 12.0 MiB", 10), "takes\n12.0 MiB") << "a number keeps its unit";
  EXPECT_EQ(fitted("/a/path/of/one/word x", 10), "/a/path/of/one/word\nx");
  EXPECT_EQ(fitted("\x1b[1mwarning\x1b[0m  a bc", 12), "\x1b[1mwarning\x1b[0m  a\nbc");
  EXPECT_EQ(fitted("\x1b[1mwarning\x1b[0m  a bc", 13), "\x1b[1mwarning\x1b[0m  a bc");
}

}  // namespace
}  // namespace gpumemprof
