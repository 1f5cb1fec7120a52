#include "run/preload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

const ProbeSettings kPlain = {.library = "/lib/probe.so", .folder = "/data/run"};

TEST(ProbeEnvironment, AddsWhatTheProbeReadsAndKeepsTheRest) {
  EXPECT_THAT(probe_environment({"A=1", "EMPTY="}, kPlain),
              ElementsAre("A=1", "EMPTY=", "LD_PRELOAD=/lib/probe.so", "GPUMEMPROF_DIR=/data/run",
                          "GPUMEMPROF_STACKS=python"));
  ProbeSettings all = kPlain;
  all.stacks = "both", all.free_stacks = true, all.record_cpu = false, all.max_disk_bytes = 4096;
  EXPECT_THAT(
      probe_environment({}, all),
      ElementsAre("LD_PRELOAD=/lib/probe.so", "GPUMEMPROF_DIR=/data/run", "GPUMEMPROF_STACKS=both",
                  "GPUMEMPROF_FREE_STACKS=1", "GPUMEMPROF_NO_CPU=1", "GPUMEMPROF_MAX_DISK=4096"));
}

TEST(ProbeEnvironment, LibrariesThatWerePreloadedStayFirst) {
  EXPECT_THAT(probe_environment({"LD_PRELOAD=libjemalloc.so.2"}, kPlain),
              Contains("LD_PRELOAD=libjemalloc.so.2:/lib/probe.so"));
  EXPECT_THAT(probe_environment({"LD_PRELOAD=a.so b.so"}, kPlain),
              Contains("LD_PRELOAD=a.so b.so:/lib/probe.so"));
  EXPECT_THAT(probe_environment({"LD_PRELOAD="}, kPlain), Contains("LD_PRELOAD=/lib/probe.so"));
}

TEST(ProbeEnvironment, ARunInsideARunIsNotTwice) {
  auto outer =
      probe_environment({}, {.library = "/lib/probe.so",
                             .folder = "/outer",
                             .record_cpu = false,
                             .runtimes = {"/lib/libgpumemprof_host.so"}});
  auto inner = probe_environment(outer, kPlain);
  EXPECT_THAT(inner, ElementsAre("LD_PRELOAD=/lib/probe.so", "GPUMEMPROF_DIR=/data/run",
                                 "GPUMEMPROF_STACKS=python"));
}

class PreloadTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "preloadXXXXXX";
    folder_ = fs::canonical(mkdtemp(pattern.data()));
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string put(const std::string& subfolder) {
    fs::create_directories(folder_ + '/' + subfolder);
    std::string path = folder_ + '/' + subfolder + '/' + kProbeLibrary;
    std::ofstream(path) << "library";
    return path;
  }
  std::string folder_;
};

TEST_F(PreloadTest, ProbeIsFoundNearTheExecutableNearestFirst) {
  std::string executable = folder_ + "/bin/gpumemprof";
  fs::create_directories(folder_ + "/bin");
  EXPECT_FALSE(find_probe(nullptr, executable));
  std::string deep = put("lib/gpumemprof");
  EXPECT_EQ(find_probe(nullptr, executable), deep);
  std::string lib = put("lib");
  EXPECT_EQ(find_probe("", executable), lib);
  std::string beside = put("bin");
  EXPECT_EQ(find_probe(nullptr, executable), beside);
  std::string other = put("other");
  EXPECT_EQ(find_probe(other.c_str(), executable), other);
  EXPECT_FALSE(find_probe("/no/such/library.so", executable));  // named, so nothing else is taken
}

TEST_F(PreloadTest, ThePackageIsThatOfTheEnvironmentOfTheExecutable) {
  const std::string executable = folder_ + "/bin/gpumemprof";
  fs::create_directories(folder_ + "/bin");
  const auto put_package = [&](const std::string& folder) {
    fs::create_directories(folder_ + '/' + folder + "/_gpumemprof_recorded");
    std::ofstream(folder_ + '/' + folder + "/_gpumemprof_recorded/__init__.py") << "";
    return folder_ + '/' + folder;
  };
  EXPECT_EQ(find_package(executable), "");
  const std::string elsewhere = put_package("clone");
  fs::create_directories(folder_ + "/lib/python3.9/site-packages");
  std::ofstream(folder_ + "/lib/python3.9/site-packages/gpumemprof.pth") << elsewhere << "\nimport os\n";
  EXPECT_EQ(find_package(executable), elsewhere);
  const std::string installed = put_package("lib/python3.9/site-packages");
  EXPECT_EQ(find_package(executable), installed);
}

TEST_F(PreloadTest, APathTheLoaderWouldSplitGetsALinkThatGoesAway) {
  for (const char* name : {"a b", "a:b", "a$LIB"}) {
    std::string probe = put(name);
    std::string link;
    {
      auto path = ProbePath::make(probe);
      ASSERT_TRUE(path) << path.error().message;
      link = path->path();
      EXPECT_FALSE(path_needs_alias(link));
      EXPECT_EQ(fs::read_symlink(link), probe);
      EXPECT_EQ(fs::status(fs::path(link).parent_path()).permissions(), fs::perms::owner_all);
    }
    EXPECT_FALSE(fs::exists(fs::path(link).parent_path()));
  }
}

TEST_F(PreloadTest, APlainPathIsTakenAsItIs) {
  std::string probe = put("plain");
  auto path = ProbePath::make(probe);
  ASSERT_TRUE(path);
  EXPECT_EQ(path->path(), probe);
}

TEST_F(PreloadTest, AKeptLinkStays) {
  auto path = ProbePath::make(put("a b"));
  ASSERT_TRUE(path);
  std::string link = path->path();
  path->keep();
  {
    ProbePath gone = std::move(*path);
  }
  EXPECT_TRUE(fs::is_symlink(link));
  fs::remove_all(fs::path(link).parent_path());
}

}  // namespace
}  // namespace gpumemprof
