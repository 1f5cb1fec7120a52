#include "readers/traceback_line.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

constexpr std::string_view kTraceback =
    "rows 9\n"
    "Traceback (most recent call last):\n"
    "  File \"/me/ooms.py\", line 20, in <module>\n"
    "    main(9)\n"
    "  File \"/me/ooms.py\", line 7, in knn\n"
    "    d = torch.cdist(x, x)\n"
    "        ^^^^^^^^^^^^^^^^^\n"
    "  File \"/v/lib/python3.11/site-packages/torch/functional.py\", line 1535, in cdist\n"
    "    return _VF.cdist(x1, x2, p, None)\n"
    "           ^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
    "RuntimeError: [enforce fail] ";

std::string text_of(const TracebackLine& line) {
  return line.file + '|' + std::to_string(line.line) + '|' + line.function + '|' + line.code;
}

TEST(TracebackLine, IsTheInnermostOneOfTheProgram) {
  EXPECT_EQ(text_of(traceback_line(kTraceback)), "/me/ooms.py|7|knn|d = torch.cdist(x, x)");
}

TEST(TracebackLine, IsFoundBehindWhatALoggerPutsBeforeEachLine) {
  for (std::string_view prefix :
       {"[rank3]: ", "[default0]:", "2026-03-01T10:00:07.123456789Z ", "worker-1  | ",
        "[trainer.Trainer 2026-03-01 10:00:07,123 ERROR] "}) {
    std::string log;
    for (const char c : kTraceback) {
      log += c;
      if (c == '\n') log.insert(log.size() - 1, "\r"), log += prefix;
    }
    EXPECT_EQ(text_of(traceback_line(log)), "/me/ooms.py|7|knn|d = torch.cdist(x, x)") << prefix;
  }
}

TEST(TracebackLine, WithoutItsCodeIsTheLineAlone) {
  EXPECT_EQ(text_of(traceback_line("\n  File \"<stdin>\", line 1, in <module>\n"
                                   "  File \"/x/site-packages/a.py\", line 2, in f\n    g()\nE: ")),
            "<stdin>|1|<module>|");
}

TEST(TracebackLine, IsNotTakenFromSomethingElse) {
  for (std::string_view before :
       {"", "E: ", "\n", "\nsaid:\nE: ", "\n  step 3\nE: ",
        "\n  File \"/me/a.py\", line 1, in f\n    g()\nother words\nE: ",
        "le \"/me/a.py\", line 1, in f\n    g()\nE: ",
        "\n  File \"/me/a.py\", line 1, in f\n10:07 MyError: ",
        "  File \"/me/a.py\", line 1, in f\nE: "})
    EXPECT_EQ(traceback_line(before).file, "") << before;
}

}  // namespace
}  // namespace gpumemprof
