#include "report/describe/source_text.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace gpumemprof {
namespace {

constexpr int64_t kLongAgoUs = 1'000'000'000'000'000;  // 2001

class SourceTextTest : public testing::Test {
 protected:
  SourceTextTest() {
    folder_ = std::filesystem::temp_directory_path() / "source_text_test.XXXXXX";
    std::string name = folder_.string();
    folder_ = mkdtemp(name.data());
  }
  ~SourceTextTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text, int64_t time_us) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    const timespec time{time_us / 1'000'000, 0};
    const timespec times[] = {time, time};
    utimensat(AT_FDCWD, path.c_str(), times, 0);
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(SourceTextTest, ALineIsShownWithoutItsIndentation) {
  const std::string file = write("a.py", "import x\n\n    loss.backward()  \r\nlast", kLongAgoUs);
  SourceText text(kLongAgoUs + 1);
  EXPECT_EQ(text.line(file, 3), "loss.backward()");
  EXPECT_EQ(text.line(file, 4), "last");
  EXPECT_EQ(text.line(file, 2), "");
  EXPECT_EQ(text.line(file, 0), "");
  EXPECT_EQ(text.line(file, 5), "");
}

TEST_F(SourceTextTest, AFileThatChangedAfterwardsIsNotShown) {
  const std::string file = write("a.py", "new\n", kLongAgoUs + 1'000'000);
  EXPECT_EQ(SourceText(kLongAgoUs).line(file, 1), "");
  EXPECT_EQ(SourceText(kLongAgoUs + 1'000'000).line(file, 1), "new");
}

TEST_F(SourceTextTest, OnlyRegularPythonFilesAreRead) {
  const std::string text = write("secret", "word\n", kLongAgoUs);
  const std::string pipe = (folder_ / "pipe.py").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  SourceText source(INT64_MAX);
  EXPECT_EQ(source.line(text, 1), "");
  EXPECT_EQ(source.line(pipe, 1), "");
  EXPECT_EQ(source.line((folder_ / "not_there.py").string(), 1), "");
  EXPECT_EQ(source.line("relative.py", 1), "");
}

TEST_F(SourceTextTest, ALongLineIsCutBetweenCharacters) {
  std::string line(71, 'x');
  const std::string file = write("a.py", line + "\xc3\xa9" + "tail\n", kLongAgoUs);
  EXPECT_EQ(SourceText(INT64_MAX).line(file, 1), line + "…");
}

}  // namespace
}  // namespace gpumemprof
