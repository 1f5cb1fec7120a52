// What the kernel's files say, from files of our own making.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "devices/alerts.h"
#include "devices/host_memory.h"
#include "devices/oom_kills.h"
#include "devices/process_memory.h"
#include "devices/sampler.h"

namespace gpumemprof {
namespace {

/// A root folder in which a test makes its own /proc and /sys.
class FakeRoot : public ::testing::Test {
 protected:
  FakeRoot() {
    char folder[] = "/tmp/devices-test-XXXXXX";
    root_ = mkdtemp(folder);
    put("/proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n");
  }
  ~FakeRoot() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void put_process(int pid, const std::string& status, int pages) {
    const std::string folder = "/proc/" + std::to_string(pid);
    put(folder + "/status", status);
    put(folder + "/statm", "9999 " + std::to_string(pages) + " 1 1 0 1 0\n");
    std::string stat = std::to_string(pid) + " (py thon) S 1";
    for (int field = 5; field <= 52; ++field) stat += field == 22 ? " 777" : " 0";
    put(folder + "/stat", stat + "\n");
    put(folder + "/cmdline", std::string("python\0train.py", 15));
  }
  std::string root_;
};

TEST_F(FakeRoot, AMachineWithoutALimitIsItsOwnLimit) {
  const HostMemory host = read_host_memory(root_);
  EXPECT_EQ(host.total.bytes, 1000u * 1024);
  EXPECT_EQ(host.used.bytes, 600u * 1024);
  EXPECT_FALSE(host.limit);
  EXPECT_EQ(host.limit.absent_because, "no cgroup limits this process");
  EXPECT_STREQ(usable_memory(host).basis, "machine");
  EXPECT_EQ(usable_memory(host).free.bytes, 400u * 1024);
}

TEST_F(FakeRoot, TheLowestLimitOnTheWayUpCountsAndItsCacheDoesNot) {
  put("/proc/self/cgroup", "0::/a/b\n");
  put("/sys/fs/cgroup/a/b/memory.max", "max\n");
  put("/sys/fs/cgroup/a/memory.max", "512000\n");
  put("/sys/fs/cgroup/a/memory.current", "300000\n");
  put("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 100000\n");
  const UsableMemory usable = usable_memory(read_host_memory(root_));
  EXPECT_STREQ(usable.basis, "cgroup");
  EXPECT_EQ(usable.total.bytes, 512000u);
  EXPECT_EQ(usable.used.bytes, 200000u);
}

TEST_F(FakeRoot, VersionOneOfCgroupsIsUnderstood) {
  put("/proc/self/cgroup", "5:cpu,memory:/x\n1:name=systemd:/\n");
  put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(read_host_memory(root_).limit) << "that number means: none";
  put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "4096\n");
  put("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1024\n");
  EXPECT_EQ(usable_memory(read_host_memory(root_)).used.bytes, 1024u);
}

TEST_F(FakeRoot, AFileThatIsNotThereIsAReasonAndNoZero) {
  put("/proc/meminfo", "MemTotal: 1 kB\n");
  const HostMemory host = read_host_memory(root_);
  EXPECT_FALSE(host.available);
  EXPECT_FALSE(host.used);
  EXPECT_FALSE(host.used.absent_because.empty());
}

TEST_F(FakeRoot, AProcessIsReadWithItsParts) {
  put_process(12,
              "Name:\tpython\nVmSize:\t 90 kB\nVmHWM:\t 50 kB\nRssAnon:\t 30 kB\n"
              "RssFile:\t 9 kB\nRssShmem:\t 1 kB\nVmSwap:\t 0 kB\n",
              10);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  ProcessMemory memory = read_process_memory(root_ + "/proc", 12, true);
  EXPECT_TRUE(memory.exists);
  EXPECT_EQ(memory.resident.bytes, 10 * page);
  EXPECT_EQ(memory.peak_resident.bytes, 50u * 1024);
  EXPECT_EQ(memory.anonymous.bytes, 30u * 1024);
  EXPECT_EQ(memory.swapped.bytes, 0u);
  EXPECT_FALSE(memory.proportional) << "there is no smaps_rollup";
  put("/proc/12/smaps_rollup", "0-1 ---p 0 0 0 [rollup]\nRss: 4 kB\nPss:    7 kB\n");
  EXPECT_EQ(read_process_memory(root_ + "/proc", 12, true).proportional.bytes, 7u * 1024);
  EXPECT_FALSE(read_process_memory(root_ + "/proc", 13, true).exists);
  put("/proc/14/status", "Name:\tzombie\nState:\tZ (zombie)\n");
  EXPECT_FALSE(read_process_memory(root_ + "/proc", 14, true).exists);
}

TEST_F(FakeRoot, AProcessThatIsNotRecordedIsItsRss) {
  put_process(12, "Name:\tpython\nVmSize:\t 90 kB\n", 10);
  auto sampler = Sampler::open({.pid = 12, .root = root_});
  ASSERT_TRUE(sampler) << sampler.error().message;
  EXPECT_EQ(sampler->subject(), "process 12 (python train.py), not recorded: its RSS");
  const auto events = sampler->sample();
  ASSERT_EQ(events.size(), 1u);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(events[0].allocated_bytes, 10 * page);
  EXPECT_EQ(events[0].change_bytes, 0) << "the first sample is where counting begins";
  EXPECT_EQ(events[0].used_bytes, 600u * 1024);
  EXPECT_EQ(events[0].device_id, -1);
  EXPECT_NE(events[0].metadata.find("\"basis\":\"process_rss\""), std::string::npos);
  put_process(12, "Name:\tpython\nVmSize:\t 90 kB\n", 14);
  EXPECT_EQ(sampler->sample()[0].change_bytes, static_cast<int64_t>(4 * page));
  std::filesystem::remove_all(root_ + "/proc/12");
  EXPECT_TRUE(sampler->sample().empty());
  EXPECT_EQ(sampler->state(), WatchState::kEnded);
}

TEST_F(FakeRoot, WithoutARecordedProcessItIsTheMachine) {
  auto sampler = Sampler::open({.root = root_});
  ASSERT_TRUE(sampler);
  const auto events = sampler->sample();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].pid, -1);
  EXPECT_EQ(events[0].allocated_bytes, 600u * 1024);
  EXPECT_FALSE(Sampler::open({.pid = 99, .root = root_})) << "there is no such process";
}

TEST_F(FakeRoot, WhereTheRecordedProcessHasGoneBeforeTheFirstSampleItIsTheMachine) {
  put_process(77, "Name: python\nVmRSS: 8 kB\n", 2);
  put("/proc/77/maps", "7f00-7f10 rw-s 00000000 08:01 5   /rec/host.77.777.gmp\n");
  auto sampler = Sampler::open({.root = root_});
  ASSERT_TRUE(sampler);
  EXPECT_TRUE(sampler->subject().starts_with("process 77"));
  std::filesystem::remove_all(root_ + "/proc/77");
  const auto events = sampler->sample();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].allocated_bytes, 600u * 1024);
  EXPECT_EQ(sampler->state(), WatchState::kRunning);
}

TEST_F(FakeRoot, KillsForWantOfMemoryAreCountedFromTheBeginning) {
  put("/proc/vmstat", "nr_free 5\noom_kill 7\n");
  OomKills kills(root_);
  EXPECT_EQ(kills.new_kills(), 0u);
  put("/proc/vmstat", "nr_free 5\noom_kill 9\n");
  EXPECT_EQ(kills.new_kills(), 2u);
  EXPECT_EQ(kills.new_kills(), 0u);
  put("/sys/fs/cgroup/memory.events", "low 0\noom 4\noom_kill 1\n");
  EXPECT_EQ(kills.all(), 1u) << "our own cgroup is nearer than the machine";
}

TelemetryEvent at(uint64_t used, int64_t seconds) {
  TelemetryEvent event;
  event.timestamp_ns = seconds * 1'000'000'000;
  event.used_bytes = used, event.total_bytes = 100;
  return event;
}

TEST(Alerts, ComeOnceAndAgainOnlyAfterARealFall) {
  Alerts alerts({.warning_percent = 80, .critical_percent = 95, .least_pause_ns = 0});
  EXPECT_FALSE(alerts.look(at(79, 0)));
  EXPECT_EQ(alerts.look(at(80, 1))->event_type, "warning");
  EXPECT_FALSE(alerts.look(at(85, 2)));
  EXPECT_FALSE(alerts.look(at(78, 3))) << "within the hysteresis of 5";
  EXPECT_FALSE(alerts.look(at(81, 4)));
  EXPECT_FALSE(alerts.look(at(74, 5)));
  EXPECT_EQ(alerts.look(at(96, 6))->event_type, "critical");
  EXPECT_FALSE(alerts.look(at(96, 7)));
}

TEST(Alerts, AreNotMoreOftenThanThePause) {
  Alerts alerts({.least_pause_ns = 60'000'000'000});
  EXPECT_TRUE(alerts.look(at(81, 0)));
  EXPECT_FALSE(alerts.look(at(10, 10)));
  EXPECT_FALSE(alerts.look(at(81, 20)));
  EXPECT_FALSE(alerts.look(at(10, 70)));
  EXPECT_TRUE(alerts.look(at(81, 80)));
}

TEST(Alerts, LookAtTheMostOfAllFigures) {
  TelemetryEvent event = at(10, 0);
  event.allocated_bytes = 20, event.reserved_bytes = 90;
  EXPECT_EQ(used_percent(event), 90);
  event.total_bytes = std::nullopt;
  EXPECT_FALSE(used_percent(event));
}

}  // namespace
}  // namespace gpumemprof
