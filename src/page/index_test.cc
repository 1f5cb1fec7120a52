// An index gives back the run that it was written of, or is refused: never anything between.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "page/index_archive.h"
#include "page/index_file.h"
#include "page/index_key.h"

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;

class PageIndexTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpumemprof-index-XXXXXX";
    folder_ = mkdtemp(name);
    run_ = (folder_ / "run.jsonl").string(), index_ = (folder_ / "index").string();
    fs::copy_file(kRecording, run_ = (folder_ / "run.gmp").string());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<PageFile> load() {
    auto file = PageFile::load({run_}, {.uses_index = false});
    return file ? std::move(*file) : nullptr;
  }
  std::string bytes() const {
    std::ifstream in(index_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& bytes) const {
    std::ofstream(index_, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::unique_ptr<PageFile> read(std::string* why) const {
    return PageIndex::read(index_, "key", why);
  }

  const std::string kRecording = std::string(GPUMEMPROF_SOURCE_DIR) + "/tests/fixtures/recordings";
  fs::path folder_;
  std::string run_, index_;
};

}  // namespace
}  // namespace gpumemprof
