#include "run/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "run/meta.h"

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;
using testing::StartsWith;

std::string name_of(const std::vector<std::string>& command) {
  std::string name = default_folder_name(command, 0, 77);
  EXPECT_THAT(name, testing::EndsWith("-77"));
  return name.substr(0, name.size() - std::string("-19700101-000000-77").size());
}

TEST(DefaultFolderName, IsTheScriptsOrTheProgramsName) {
  EXPECT_EQ(name_of({"/usr/bin/torchrun", "x"}), "gpumemprof-torchrun");
  EXPECT_EQ(name_of({"python", "-u", "jobs/train.py", "--x"}), "gpumemprof-train");
  EXPECT_EQ(name_of({"python3.11", "-m", "pkg.main"}), "gpumemprof-pkg.main");
  EXPECT_EQ(name_of({"python3", "-c", "print(1)"}), "gpumemprof-python3");
  EXPECT_EQ(name_of({"python3"}), "gpumemprof-python3");
}

TEST(DefaultFolderName, KeepsNothingThatAShellOrAPathWouldMind) {
  EXPECT_EQ(name_of({"./my tool;rm"}), "gpumemprof-mytoolrm");
  EXPECT_EQ(name_of({"/x/"}), "gpumemprof-program");
  EXPECT_EQ(name_of({std::string(500, 'a')}), "gpumemprof-" + std::string(64, 'a'));
}

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "folderXXXXXX";
    folder_ = fs::canonical(mkdtemp(pattern.data()));
  }
  void TearDown() override { fs::remove_all(folder_); }
  nlohmann::json read(const std::string& path) {
    return nlohmann::json::parse(std::ifstream(path));
  }
  std::string folder_;
};

TEST_F(FolderTest, IsMadePrivateWithItsParents) {
  auto made = prepare_folder(folder_ + "/a/b/");
  ASSERT_TRUE(made);
  EXPECT_EQ(*made, folder_ + "/a/b");
  EXPECT_EQ(fs::status(*made).permissions(), fs::perms::owner_all);
}

TEST_F(FolderTest, ParentsOfOneThatCannotBeMadeAreRemovedAgain) {
  EXPECT_FALSE(prepare_folder(folder_ + "/a/b/" + std::string(300, 'x')));
  EXPECT_FALSE(prepare_folder(folder_ + "/c/" + std::string(300, 'x') + "/d"));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(FolderTest, AnEmptyFolderOrARecordingIsAccepted) {
  EXPECT_TRUE(prepare_folder(folder_));
  std::ofstream(folder_ + "/h.1.2.gmp") << "x";
  EXPECT_TRUE(prepare_folder(folder_));
  EXPECT_EQ(is_recording_folder(folder_), true);
}

TEST_F(FolderTest, AnythingElseIsRefused) {
  std::ofstream(folder_ + "/thesis.tex") << "x";
  for (std::string path :
       {folder_, folder_ + "/thesis.tex", folder_ + "/thesis.tex/a", std::string()}) {
    auto made = prepare_folder(path);
    ASSERT_FALSE(made) << path;
    EXPECT_EQ(made.error().code, ErrorCode::kUsage);
  }
  EXPECT_EQ(is_recording_folder(folder_), false);
  EXPECT_FALSE(is_recording_folder(folder_ + "/thesis.tex"));
  EXPECT_FALSE(is_recording_folder(folder_ + "/none"));
}

TEST_F(FolderTest, EachRunHasItsOwnMetaFile) {
  auto first = MetaFile::create(folder_, {.command = {"one"}, .run_pid = 11});
  auto second = MetaFile::create(folder_, {.command = {"two"}, .run_pid = 22});
  auto third = MetaFile::create(folder_, {.command = {"three"}, .run_pid = 22});
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->path(), folder_ + "/meta.json");
  EXPECT_EQ(second->path(), folder_ + "/meta.22.json");
  EXPECT_EQ(third->path(), folder_ + "/meta.22.1.json");
  EXPECT_EQ(read(first->path())["command"][0], "one");
  EXPECT_EQ(read(third->path())["command"][0], "three");
  EXPECT_EQ(fs::status(first->path()).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 3);  // nothing temporary is left
}

TEST_F(FolderTest, TheEndOfTheRunIsAddedInPlace) {
  RunMeta meta = {.command = {"x"}, .run_pid = 11};
  auto file = MetaFile::create(folder_, meta);
  ASSERT_TRUE(file);
  EXPECT_FALSE(read(file->path()).contains("exit"));
  meta.ended = true, meta.wait_status = 9;  // as waitpid says SIGKILL
  meta.end_unix_ns = 1'706'745'599'123'000'000;
  meta.not_recorded.push_back({5, "sudo python", "why"});
  ASSERT_TRUE(file->rewrite(meta));
  auto json = read(file->path());
  EXPECT_EQ(json["schema"], "gpumemprof.recording/1");
  EXPECT_EQ(json["exit"], nlohmann::json({{"signal", 9}, {"signal_name", "SIGKILL"}}));
  EXPECT_EQ(json["end_time"], "2024-01-31T23:59:59.123Z");
  EXPECT_EQ(json["not_recorded"][0],
            nlohmann::json({{"pid", 5}, {"command", "sudo python"}, {"reason", "why"}}));
}

TEST(Meta, OnlyAllowedVariablesAreWritten) {
  for (const char* name :
       {"CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "TF_GPU_ALLOCATOR", "LOCAL_RANK"}) {
    EXPECT_TRUE(is_allowed_environment_name(name)) << name;
  }
  for (const char* name : {"HOME", "AWS_SECRET_ACCESS_KEY", "TF_VAR_db", "NCCL_AUTH", "JAX_token",
                           "CUDA_VISIBLE_DEVICES_X", "XLA", ""}) {
    EXPECT_FALSE(is_allowed_environment_name(name)) << name;
  }
  auto json = nlohmann::json::parse(
      meta_json({.environment = {"HOME=/h", "RANK=3", "XLA_FLAGS=a=b", "odd"}}));
  EXPECT_EQ(json["environment"], nlohmann::json({{"RANK", "3"}, {"XLA_FLAGS", "a=b"}}));
}

TEST(Meta, BytesThatAreNoTextDoNotBreakTheJson) {
  auto json = nlohmann::json::parse(meta_json({.command = {"a\xff", "\"\n"}}));
  EXPECT_EQ(json["command"][0], "a\xef\xbf\xbd");
  EXPECT_EQ(json["command"][1], "\"\n");
}

TEST_F(FolderTest, BundlesAreWhatIsCalledSoInTheirFolder) {
  EXPECT_TRUE(oom_bundles(folder_).empty());
  for (const char* name : {"oom_dump_2", "oom_dump_1", ".oom_dump_3.tmp", "notes"})
    fs::create_directories(fs::path(folder_) / "oom_dumps" / name);
  EXPECT_EQ(oom_bundles(folder_), (std::vector<std::string>{"oom_dump_1", "oom_dump_2"}));
}

}  // namespace
}  // namespace gpumemprof
