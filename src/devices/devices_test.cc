// What the kernel's files say, from files of our own making.
#include <gtest/gtest.h>

#include <filesystem>

#include "devices/fake_root.h"
#include "devices/host_memory.h"
#include "devices/oom_kills.h"
#include "devices/process_memory.h"

namespace gpumemprof {
namespace {

TEST_F(FakeRoot, AMachineWithoutALimitIsItsOwnLimit) {
  const HostMemory host = read_host_memory(root_);
  EXPECT_EQ(host.total.bytes, 1000u * 1024);
  EXPECT_EQ(host.used.bytes, 600u * 1024);
  EXPECT_FALSE(host.limit);
  EXPECT_EQ(host.limit.absent_because, "no cgroup limits this process");
  EXPECT_STREQ(usable_memory(host).basis, "machine");
  EXPECT_EQ(usable_memory(host).free.bytes, 400u * 1024);
}

TEST_F(FakeRoot, TheCgroupWithTheLeastRoomCountsAndItsCacheDoesNot) {
  put("/proc/self/cgroup", "0::/a/b\n");
  put("/sys/fs/cgroup/a/b/memory.max", "max\n");
  put("/sys/fs/cgroup/a/memory.max", "512000\n");
  put("/sys/fs/cgroup/a/memory.current", "300000\n");
  put("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 100000\n");
  const UsableMemory usable = usable_memory(read_host_memory(root_));
  EXPECT_STREQ(usable.basis, "cgroup");
  EXPECT_EQ(usable.total.bytes, 512000u);
  EXPECT_EQ(usable.used.bytes, 200000u);
  // The child has a lower limit, and more room.
  put("/sys/fs/cgroup/a/b/memory.max", "400000\n");
  put("/sys/fs/cgroup/a/b/memory.current", "10000\n");
  EXPECT_EQ(usable_memory(read_host_memory(root_)).total.bytes, 512000u);
  put("/sys/fs/cgroup/a/b/memory.current", "390000\n");
  EXPECT_EQ(usable_memory(read_host_memory(root_)).free.bytes, 10000u);
  EXPECT_EQ(read_host_memory(root_).limited_by, "b");
}

TEST_F(FakeRoot, AMachineWithLessRoomThanTheCgroupIsTheLimit) {
  put("/proc/self/cgroup", "0::/a\n");
  put("/sys/fs/cgroup/a/memory.max", "900000\n");
  put("/sys/fs/cgroup/a/memory.current", "0\n");
  EXPECT_STREQ(usable_memory(read_host_memory(root_)).basis, "machine");
}

TEST_F(FakeRoot, CgroupsMountedElsewhereAreFound) {
  put("/proc/self/cgroup", "4:memory:/docker/x\n0::/\n");
  put("/proc/self/mountinfo", "30 1 0:2 /docker/x /cg rw - cgroup cgroup rw,memory\n");
  put("/cg/memory.limit_in_bytes", "5000\n");
  put("/cg/memory.usage_in_bytes", "2000\n");
  EXPECT_EQ(usable_memory(read_host_memory(root_)).used.bytes, 2000u);
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

TEST_F(FakeRoot, KillsForWantOfMemoryAreCountedFromTheBeginning) {
  put("/proc/vmstat", "nr_free 5\noom_kill 7\n");
  OomKills kills(root_);
  EXPECT_EQ(kills.new_kills(), 0u);
  put("/proc/vmstat", "nr_free 5\noom_kill 9\n");
  EXPECT_EQ(kills.new_kills(), 2u);
  EXPECT_EQ(kills.new_kills(), 0u);
  EXPECT_FALSE(kills.is_of_cgroup());
  put("/sys/fs/cgroup/memory.events", "low 0\noom 4\noom_kill 1\n");
  EXPECT_EQ(OomKills(root_).all(), 1u) << "our own cgroup is nearer than the machine";
}

TEST_F(FakeRoot, KillsAreThoseOfTheCgroupThatWeAreIn) {
  put("/proc/vmstat", "oom_kill 7\n");
  put("/proc/self/cgroup", "5:memory:/jobs/7\n0::/user\n");
  put("/sys/fs/cgroup/memory/jobs/7/memory.oom_control",
      "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  OomKills old_version(root_);
  EXPECT_TRUE(old_version.is_of_cgroup());
  EXPECT_EQ(old_version.all(), 2u);
  put("/sys/fs/cgroup/user/memory.events", "oom 1\noom_kill 1\noom_group_kill 0\n");
  EXPECT_EQ(OomKills(root_).all(), 1u);
}

TEST_F(FakeRoot, AKillInAnotherCgroupIsTheMachinesAlone) {
  put("/proc/vmstat", "oom_kill 7\n");
  put("/proc/self/cgroup", "0::/user\n");
  put("/sys/fs/cgroup/user/memory.events", "oom_kill 2\n");
  OomKills kills(root_);
  put("/proc/vmstat", "oom_kill 8\n");
  EXPECT_EQ(kills.new_kills(), 0u);
  EXPECT_EQ(kills.kills_of_machine(), 1u);
}

}  // namespace
}  // namespace gpumemprof
