#include "run/watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kTorch = "7f0-7f1 r-xp 0 fe:00 1  /site-packages/torch/lib/libtorch_cpu.so\n";
const std::string kProbe = "7f2-7f3 r-xp 0 fe:00 1  /opt/libgpumemprof_probe.so\n";

TEST(ParseStat, NamesMayHoldAnything) {
  std::string rest = " S 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 987654321 100";
  auto stat = parse_stat("42 (a) b (c\n) d)" + rest);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->id, (ProcessId{42, 12345}));
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->virtual_bytes, 987654321u);
  EXPECT_FALSE(parse_stat(""));
  EXPECT_FALSE(parse_stat("42 (x) S 7"));
  EXPECT_FALSE(parse_stat("42 (x) S y 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 1"));
}

TEST(NoteMapping, KnowsPyTorchInAllItsShapes) {
  auto has_torch = [](std::string_view path) {
    Mappings mappings;
    note_mapping("7f0-7f1 r-xp 00000000 fe:00 123   " + std::string(path), &mappings);
    return mappings.torch;
  };
  EXPECT_TRUE(has_torch("/x/torch/lib/libc10.so"));
  EXPECT_TRUE(has_torch("/x/libtorch_python.so"));
  EXPECT_TRUE(has_torch("/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13 (deleted)"));
  EXPECT_TRUE(has_torch("/x/torch/_C.cpython-311-x86_64-linux-gnu.so"));
  EXPECT_FALSE(has_torch("/x/numpy/_C.cpython-311-x86_64-linux-gnu.so"));
  EXPECT_FALSE(has_torch("/data/libtorch/weights.bin"));
  EXPECT_FALSE(has_torch("/x/libtorch_notes.txt"));
  EXPECT_FALSE(has_torch("[heap]"));
}

TEST(NoteMapping, KnowsDriversAndRunTimesOfGpus) {
  auto has_gpu = [](std::string_view path) {
    Mappings mappings;
    note_mapping("7f0-7f1 r-xp 00000000 fe:00 123   " + std::string(path), &mappings);
    return mappings.gpu;
  };
  EXPECT_TRUE(has_gpu("/usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01"));
  EXPECT_TRUE(has_gpu("/x/nvidia/cuda_runtime/lib/libcudart.so.12"));
  EXPECT_TRUE(has_gpu("/opt/rocm/lib/libamdhip64.so.6"));
  EXPECT_FALSE(has_gpu("/x/torch/lib/libtorch_cpu.so"));
  EXPECT_FALSE(has_gpu("/data/libcuda_notes.txt"));
  // Our stand-in is in every program of a machine with a driver, whether it uses the driver or not.
  EXPECT_FALSE(has_gpu("/usr/lib/gpumemprof/libgpumemprof_cuda.so"));
}

/// A made-up /proc and recording.
class WatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "watcherXXXXXX";
    proc_ = mkdtemp(pattern.data());
    folder_ = proc_ + "/recording";
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(proc_); }

  void environment(int pid, const std::string& first, const std::string& second) {
    std::ofstream(proc_ + '/' + std::to_string(pid) + "/environ")
        << first << '\0' << second << '\0';
  }
  void process(int pid, int parent, uint64_t ticks, const std::string& maps, uint64_t bytes = 1,
               char state = 'S') {
    std::string base = proc_ + '/' + std::to_string(pid);
    fs::create_directory(base);
    std::ofstream(base + "/stat") << pid << " (python) " << state << ' ' << parent
                                  << " 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " << ticks << ' '
                                  << bytes << " 1\n";
    std::ofstream(base + "/maps") << "7f8-7f9 r--p 0 fe:00 1  /bin/python\n" << maps;
    std::ofstream(base + "/cmdline") << "python" << '\0' << "train.py" << '\0';
    std::ofstream(base + "/status")
        << "Name:\tpython\nUid:\t" << user_ << '\t' << user_ << "\t0\t0\nNSpid:\t" << pid << "\t"
        << pid % 1000 << "\nX:\t1\n";
    std::ofstream(base + "/limits")
        << "Limit                     Soft Limit           Hard Limit           Units\n"
        << "Max file size             " << file_limit_ << "            unlimited            bytes\n"
        << "Max open files            " << descriptors_ << "                 4096         files\n";
    fs::create_directory(base + "/fd");
    for (int fd : {0, 1, 2}) std::ofstream(base + "/fd/" + std::to_string(fd)) << "";
    if (!root_.empty()) {
      fs::remove(base + "/root");  // of the process before, where its number comes again
      fs::create_directory_symlink(root_, base + "/root");
    }
  }
  /// Why the process is said not to be recorded.
  std::string reason() {
    process(100, 1, 5, "");
    process(101, 100, 6, kTorch + kProbe);
    DescendantWatcher watcher(100, folder_, proc_);
    watcher.look();
    watcher.look();
    auto found = watcher.not_recorded();
    return found.size() == 1 ? found[0].reason : std::to_string(found.size()) + " reasons";
  }
  void gone(int pid) { fs::remove_all(proc_ + '/' + std::to_string(pid)); }
  void recorded(const std::string& name) { std::ofstream(folder_ + '/' + name) << "x"; }
  std::vector<int> named(const DescendantWatcher& watcher) {
    std::vector<int> pids;
    for (const NotRecorded& one : watcher.not_recorded()) pids.push_back(one.pid);
    return pids;
  }

  std::string proc_, folder_;
  uint64_t user_ = geteuid();
  std::string file_limit_ = "unlimited", descriptors_ = "1024", root_ = "/";
};

TEST_F(WatcherTest, TheReasonIsWhatKeepsAProcessFromMakingAFile) {
  EXPECT_THAT(reason(), HasSubstr("no event arrived"));
  fs::remove_all(proc_ + "/100"), fs::remove_all(proc_ + "/101");
  file_limit_ = "1024";
  EXPECT_EQ(reason(), "its file size limit is 1024 bytes");
  fs::remove_all(proc_ + "/100"), fs::remove_all(proc_ + "/101");
  file_limit_ = "unlimited", descriptors_ = "3";
  EXPECT_EQ(reason(), "its descriptor limit is reached");
  fs::remove_all(proc_ + "/100"), fs::remove_all(proc_ + "/101");
  root_ = proc_;
  EXPECT_EQ(reason(), "it cannot see the recording's folder: it has another root or other mounts");
  fs::remove_all(proc_ + "/100"), fs::remove_all(proc_ + "/101");
  user_ = geteuid() + 65534;
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_EQ(reason(), "it runs as user " + std::to_string(user_) +
                          ", who may not write to the recording's folder");
}

TEST_F(WatcherTest, TorchWithoutTheProbeIsNamedWithItsCommand) {
  process(100, 1, 5, "");
  process(101, 100, 6, kTorch);
  process(200, 1, 7, kTorch);  // not ours
  DescendantWatcher watcher(100, folder_, proc_);
  watcher.look();
  auto found = watcher.not_recorded();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, 101);
  EXPECT_EQ(found[0].command, "python train.py");
  EXPECT_THAT(found[0].reason, HasSubstr("without LD_PRELOAD"));
  EXPECT_TRUE(watcher.torch_seen());
}

TEST_F(WatcherTest, AProcessWithAFileIsRecorded) {
  process(1100, 1, 5, kTorch + kProbe);
  process(1101, 1100, 6, kTorch + kProbe);
  recorded("my.host.1100.5.gmp");
  recorded("my.host.101.6.1.gmp");  // under the PID it has in its own namespace
  DescendantWatcher watcher(1100, folder_, proc_);
  watcher.look();
  watcher.look();
  EXPECT_THAT(named(watcher), IsEmpty());
  EXPECT_TRUE(watcher.torch_seen());
}

TEST_F(WatcherTest, AProbeWithoutEventsIsNamedWhenItIsSeenTwice) {
  process(100, 1, 5, "");
  process(101, 100, 6, kTorch + kProbe);
  DescendantWatcher watcher(100, folder_, proc_);
  watcher.look();
  EXPECT_THAT(named(watcher), IsEmpty());  // may be between fork and exec
  watcher.look();
  EXPECT_THAT(named(watcher), ElementsAre(101));
  EXPECT_THAT(watcher.not_recorded()[0].reason, HasSubstr("-Bsymbolic"));
}

TEST_F(WatcherTest, AForkThatBecameAnotherProgramIsForgotten) {
  process(100, 1, 5, "");
  process(101, 100, 6, kTorch, 1000);
  DescendantWatcher watcher(100, folder_, proc_);
  watcher.look();
  process(101, 100, 6, "", 2000);
  watcher.look();
  gone(101);
  watcher.look();
  EXPECT_THAT(named(watcher), IsEmpty());
}

TEST_F(WatcherTest, AProcessThatEndedIsStillNamed) {
  process(100, 1, 5, "");
  process(101, 100, 6, kTorch);
  DescendantWatcher watcher(100, folder_, proc_);
  watcher.look();
  gone(101);
  gone(100);
  watcher.root_ended();
  watcher.look();
  EXPECT_THAT(named(watcher), ElementsAre(101));
  EXPECT_FALSE(watcher.any_alive());
}

TEST_F(WatcherTest, ADaemonStaysOursWhenItsParentIsGone) {
  process(100, 1, 5, "");
  process(101, 100, 6, "");
  DescendantWatcher watcher(100, folder_, proc_);
  watcher.look();
  gone(100);
  watcher.root_ended();
  process(101, 1, 6, kTorch, 99);
  process(102, 101, 8, kTorch);
  watcher.look();
  EXPECT_THAT(named(watcher), ElementsAre(101, 102));
  EXPECT_TRUE(watcher.any_alive());
}

TEST_F(WatcherTest, WhoLostItsParentsUnseenIsKnownByItsEnvironment) {
  process(100, 1, 5, "");
  process(101, 1, 6, kTorch);
  environment(101, "A=1", "GPUMEMPROF_DIR=" + folder_);
  process(102, 1, 6, kTorch);
  environment(102, "GPUMEMPROF_DIR=" + folder_ + "/other", "OLD_GPUMEMPROF_DIR=" + folder_);
  DescendantWatcher watcher(100, folder_, proc_);
  watcher.look();
  EXPECT_FALSE(watcher.torch_seen()) << "while the program lives, its descendants alone are read";
  gone(100);
  watcher.root_ended();
  watcher.look();
  EXPECT_THAT(named(watcher), ElementsAre(101));
  EXPECT_TRUE(watcher.any_alive());
  EXPECT_FALSE(watcher.any_at_work());
  gone(101);
  process(103, 1, 8, "", 1, 'R');
  environment(103, "GPUMEMPROF_DIR=" + folder_, "B=2");
  watcher.look();
  EXPECT_TRUE(watcher.any_at_work());
}

TEST_F(WatcherTest, APidThatComesBackIsAnotherProcess) {
  process(100, 1, 5, "");
  process(101, 100, 6, kTorch);
  DescendantWatcher watcher(100, folder_, proc_);
  watcher.look();
  process(101, 100, 9, kTorch + kProbe);
  recorded("h.101.9.gmp");
  watcher.look();
  EXPECT_THAT(named(watcher), ElementsAre(101));  // the first one
  process(101, 1, 12, kTorch);                    // a stranger's
  watcher.look();
  EXPECT_THAT(named(watcher), ElementsAre(101));
}

TEST_F(WatcherTest, OneThatEndsWhileItsMappingsAreReadIsNotJudgedByThePartThatWasLeft) {
  process(100, 1, 5, "7f3-7f4 r-xp 0 fe:00 1  /usr/lib/libcuda.so.1\n");
  DescendantWatcher watcher(100, folder_, proc_);
  watcher.look();  // sees the GPU's driver, so the next one reads mappings once
  process(101, 100, 6, "");
  const std::string base = proc_ + "/101", maps = base + "/maps";
  fs::remove(maps);
  ASSERT_EQ(mkfifo(maps.c_str(), 0600), 0);
  std::thread ends([&] {
    std::ofstream out(maps);  // waits until it is read
    for (const char* file : {"/stat", "/status", "/cmdline"}) fs::remove(base + file);
    out << kTorch;
  });
  watcher.look();
  ends.join();
  gone(101);
  watcher.look();
  EXPECT_THAT(named(watcher), IsEmpty());
}

TEST_F(WatcherTest, ACircleOfParentsEnds) {
  process(100, 1, 5, "");
  process(300, 301, 5, kTorch);
  process(301, 300, 5, kTorch);
  DescendantWatcher watcher(100, folder_, proc_);
  watcher.look();
  EXPECT_THAT(named(watcher), IsEmpty());
}

}  // namespace
}  // namespace gpumemprof
