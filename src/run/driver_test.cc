#include "run/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "run/preload.h"

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;

TEST(DriverLinks, LeadToTheStandInAndToTheDriver) {
  std::string folder;
  {
    auto links = DriverLinks::make("/lib/libgpumemprof_cuda.so", "/usr/lib/libcuda.so.550");
    ASSERT_TRUE(links);
    folder = links->folder();
    for (const char* name : {"libgpumemprof_cuda.so", "libcuda.so", "libcuda.so.1"})
      EXPECT_EQ(fs::read_symlink(folder + '/' + name), "/lib/libgpumemprof_cuda.so");
    EXPECT_EQ(fs::read_symlink(folder + "/driver"), "/usr/lib/libcuda.so.550");
    EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  }
  EXPECT_FALSE(fs::exists(folder));
}

TEST(DriverLinks, CanOutliveTheRun) {
  std::string folder;
  {
    auto links = DriverLinks::make("/a", "/b");
    ASSERT_TRUE(links);
    folder = links->folder();
    links->keep();
  }
  EXPECT_TRUE(fs::is_symlink(folder + "/driver"));
  fs::remove_all(folder);
}

TEST(DriverLinks, ATemporaryFolderThatIsNotThereIsAnError) {
  const char* before = getenv("TMPDIR");
  const std::string kept = before ? before : "";
  setenv("TMPDIR", "/no/such/folder", 1);
  auto links = DriverLinks::make("/a", "/b");
  before ? setenv("TMPDIR", kept.c_str(), 1) : unsetenv("TMPDIR");
  ASSERT_FALSE(links);
  EXPECT_THAT(links.error().message, testing::StartsWith("/no/such/folder/gpumemprof-driver-"));
}

TEST(FindDriver, ARecordedProgramKnowsIt) {
  const std::string path = testing::TempDir() + "a_driver.so";
  std::ofstream(path) << "library";
  setenv("GPUMEMPROF_DRIVER", path.c_str(), 1);
  EXPECT_EQ(find_driver(), path);
  setenv("GPUMEMPROF_DRIVER", "/no/such/driver", 1);
  EXPECT_EQ(find_driver(), "");
  unsetenv("GPUMEMPROF_DRIVER");
  fs::remove(path);
}

TEST(FindDriver, NeverAnswersWithAStandIn) {
  const std::string folder = testing::TempDir() + "stand_in";
  fs::create_directories(folder);
  const std::string proxy = folder + "/libgpumemprof_cuda.so", link = folder + "/libcuda.so.1";
  std::ofstream(proxy) << "library";
  fs::create_symlink(proxy, link);
  for (const std::string& path : {proxy, link}) {
    setenv("GPUMEMPROF_DRIVER", path.c_str(), 1);
    EXPECT_EQ(find_driver(), "");
  }
  unsetenv("GPUMEMPROF_DRIVER");
  fs::remove_all(folder);
}

const ProbeSettings kDriven = {.library = "/lib/probe.so",
                               .folder = "/data/run",
                               .driver_links = "/tmp/links",
                               .driver = "/usr/lib/libcuda.so.1"};

TEST(DriverEnvironment, TheStandInComesLastAndItsLinksFirst) {
  EXPECT_THAT(probe_environment({"LD_PRELOAD=a.so", "LD_LIBRARY_PATH=/x:/y"}, kDriven),
              ElementsAre("LD_LIBRARY_PATH=/tmp/links:/x:/y",
                          "LD_PRELOAD=a.so:/lib/probe.so:/tmp/links/libgpumemprof_cuda.so",
                          "GPUMEMPROF_DIR=/data/run", "GPUMEMPROF_STACKS=python",
                          "GPUMEMPROF_DRIVER=/usr/lib/libcuda.so.1"));
  EXPECT_THAT(probe_environment({}, kDriven), Contains("LD_LIBRARY_PATH=/tmp/links"));
}

TEST(DriverEnvironment, OfAnOuterRecordingNothingIsLeft) {
  const ProbeSettings plain = {.library = "/lib/probe.so", .folder = "/data/inner"};
  for (const auto& before :
       {std::vector<std::string>{}, std::vector<std::string>{"LD_LIBRARY_PATH=/x:/y"}}) {
    EXPECT_EQ(probe_environment(probe_environment(before, kDriven), plain),
              probe_environment(before, plain));
  }
}

TEST(DriverEnvironment, APathOfTheProgramsStaysAsItWas) {
  const ProbeSettings plain = {.library = "/lib/probe.so", .folder = "/data/run"};
  EXPECT_THAT(probe_environment({"LD_LIBRARY_PATH=/x"}, plain), Contains("LD_LIBRARY_PATH=/x"));
  EXPECT_THAT(probe_environment({"LD_LIBRARY_PATH="}, plain), Contains("LD_LIBRARY_PATH="));
}

}  // namespace
}  // namespace gpumemprof
