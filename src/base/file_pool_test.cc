#include "base/file_pool.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace gpumemprof {
namespace {

class FilePoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/file_pool_XXXXXX";
    folder_ = mkdtemp(name);
    for (int i = 0; i < 20; ++i) write(i, std::to_string(i + 100));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(int i) const { return folder_ + '/' + std::to_string(i); }
  void write(int i, const std::string& text) { std::ofstream(path(i)) << text; }
  /// How many descriptors of this process are of the folder.
  int open_count() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      count += std::filesystem::read_symlink(entry, gone).string().starts_with(folder_ + '/');
    }
    return count;
  }
  static std::string text_of(File& file) {
    char text[8] = {};
    auto got = file.read_at(0, text, sizeof(text));
    return got ? std::string(text, *got) : got.error().message;
  }

  std::string folder_;
};

TEST_F(FilePoolTest, ReadsMoreFilesThanItHasOpen) {
  FilePool pool(3);
  std::vector<std::unique_ptr<File>> files;
  for (int i = 0; i < 20; ++i) files.push_back(std::move(*pool.open(path(i), FileMode::kRead)));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(text_of(*files[i]), std::to_string(i + 100));
    EXPECT_EQ(open_count(), 3);
  }
  files.clear();
  EXPECT_EQ(open_count(), 0);
}

TEST_F(FilePoolTest, NeverTakesAnotherFileForTheOneThatItOpened) {
  FilePool pool(1);
  auto first = std::move(*pool.open(path(0), FileMode::kRead));
  auto second = std::move(*pool.open(path(1), FileMode::kRead));
  write(7, "other");
  std::filesystem::rename(path(7), path(0));
  EXPECT_EQ(text_of(*first), path(0) + ": it was replaced while being read");
}

TEST_F(FilePoolTest, KeepsAFileOpenThatIsLockedForWriting) {
  FilePool pool(1);
  auto locked = std::move(*pool.open(path(0), FileMode::kReadWrite));
  ASSERT_TRUE(locked->lock(true));
  auto other = std::move(*pool.open(path(1), FileMode::kRead));
  EXPECT_EQ(text_of(*other), "101");
  auto rival = std::move(*open_file(path(0), FileMode::kReadWrite));
  EXPECT_FALSE(rival->lock(true));
  locked->unlock();
  EXPECT_TRUE(rival->lock(true));
}

}  // namespace
}  // namespace gpumemprof
