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
  std::string of_rank;
  for (const char c : kTraceback) of_rank += c == '\n' ? "\r\n[rank3]: " : std::string(1, c);
  EXPECT_EQ(text_of(traceback_line(of_rank)), "/me/ooms.py|7|knn|d = torch.cdist(x, x)");
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
        "le \"/me/a.py\", line 1, in f\n    g()\nE: ", "  File \"/me/a.py\", line 1, in f\nE: "})
    EXPECT_EQ(traceback_line(before).file, "") << before;
}

}  // namespace
}  // namespace gpumemprof
