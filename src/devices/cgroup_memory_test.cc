// Classes of a cgroup, and pages of a process, from made-up files of the kernel.
#include "devices/cgroup_memory.h"

#include "devices/fake_root.h"
#include "devices/process_memory.h"

namespace gpumemprof {
namespace {

class CgroupMemoryFiles : public FakeRoot {};

TEST_F(CgroupMemoryFiles, OfVersion2SharedMemoryIsTakenOutOfFiles) {
  put("/proc/self/cgroup", "0::/job\n");
  const std::string folder = "/sys/fs/cgroup/job/";
  put(folder + "memory.max", "1000000\n");
  put(folder + "memory.current", "900\n");
  put(folder + "memory.swap.current", "11\n");
  put(folder + "memory.stat",
      "anon 300\nfile 500\nkernel 60\nsock 4\nshmem 120\nfile_mapped 1\ninactive_file 200\n"
      "active_file 100\n");
  put(folder + "memory.events", "low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\n");
  const CgroupMemory memory = read_cgroup_memory(read_host_memory(root_));
  EXPECT_EQ(memory.usage.bytes, 900u);
  EXPECT_EQ(memory.anonymous.bytes, 300u);
  EXPECT_EQ(memory.file.bytes, 380u);
  EXPECT_EQ(memory.shared.bytes, 120u);
  EXPECT_EQ(memory.kernel.bytes, 64u);
  EXPECT_EQ(memory.reclaimable.bytes, 300u);
  EXPECT_EQ(memory.swapped.bytes, 11u);
  EXPECT_EQ(memory.limit_hits.value, 7u);
  EXPECT_EQ(memory.kills.value, 1u);
}

TEST_F(CgroupMemoryFiles, OlderKernelsTellTheirMemoryInParts) {
  put("/proc/self/cgroup", "0::/\n");
  put("/sys/fs/cgroup/memory.current", "900\n");
  put("/sys/fs/cgroup/memory.stat", "anon 1\nfile 2\nshmem 0\nkernel_stack 5\nslab 7\n");
  const CgroupMemory memory = read_cgroup_memory(read_host_memory(root_));
  EXPECT_EQ(memory.kernel.bytes, 12u);
  EXPECT_FALSE(memory.reclaimable);
  EXPECT_EQ(memory.limit_hits.absent_because, "the cgroup does not count it");
}

TEST_F(CgroupMemoryFiles, OfVersion1TheSumsOfTheTreeCount) {
  put("/proc/self/cgroup", "4:memory:/x\n");
  const std::string folder = "/sys/fs/cgroup/memory/x/";
  put(folder + "memory.usage_in_bytes", "700\n");
  put(folder + "memory.kmem.usage_in_bytes", "50\n");
  put(folder + "memory.failcnt", "3\n");
  put(folder + "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  put(folder + "memory.stat",
      "cache 1\nrss 1\ntotal_cache 400\ntotal_rss 200\ntotal_shmem 150\ntotal_swap 9\n"
      "total_inactive_file 90\ntotal_active_file 10\n");
  const CgroupMemory memory = read_cgroup_memory(read_host_memory(root_));
  EXPECT_EQ(memory.usage.bytes, 700u);
  EXPECT_EQ(memory.anonymous.bytes, 200u);
  EXPECT_EQ(memory.file.bytes, 250u);
  EXPECT_EQ(memory.shared.bytes, 150u);
  EXPECT_EQ(memory.kernel.bytes, 50u);
  EXPECT_EQ(memory.reclaimable.bytes, 100u);
  EXPECT_EQ(memory.swapped.bytes, 9u);
  EXPECT_EQ(memory.limit_hits.value, 3u);
  EXPECT_EQ(memory.kills.value, 2u);
}

TEST_F(CgroupMemoryFiles, WithoutACgroupThereIsAReason) {
  const CgroupMemory memory = read_cgroup_memory(read_host_memory(root_));
  EXPECT_FALSE(memory.usage);
  EXPECT_EQ(memory.kernel.absent_because, "no cgroup counts this process's memory");
}

TEST_F(CgroupMemoryFiles, CopiesOfPagesOfFilesAreThoseOfPrivateMappingsWithoutCode) {
  put("/proc/7/smaps_rollup",
      "0-1 ---p 0 0 0 [rollup]\nRss: 90 kB\nPss: 70 kB\nPss_Anon: 40 kB\nPss_File: 20 kB\n"
      "Pss_Shmem: 10 kB\nPrivate_Clean: 3 kB\nPrivate_Dirty: 41 kB\nLocked: 2 kB\n");
  put("/proc/7/smaps",
      "10-20 r-xp 00000000 08:01 5 /lib/libx.so\nAnonymous: 4 kB\n"
      "20-30 rw-p 00001000 08:01 5 /lib/libx.so\nAnonymous: 100 kB\n"
      "30-40 rw-p 00000000 08:01 6 /data/model 1.bin\nRss: 64 kB\nAnonymous: 24 kB\n"
      "40-50 rw-p 00000000 08:01 6 /data/model 1.bin\nAnonymous: 8 kB\n"
      "50-60 rw-s 00000000 00:18 7 /dev/shm/torch_1\nAnonymous: 16 kB\n"
      "60-70 rw-p 00000000 00:00 0 [heap]\nAnonymous: 500 kB\n"
      "70-80 rw-p 00000000 00:00 0 \nAnonymous: 500 kB\n"
      "80-90 rw-p 00000000 08:01 8 /data/small\nAnonymous: 1 kB\nVmFlags: rd wr mr\n");
  const ProcessPages pages = read_process_pages(root_ + "/proc", 7);
  EXPECT_EQ(pages.proportional.bytes, 70u * 1024);
  EXPECT_EQ(pages.proportional_anonymous.bytes, 40u * 1024);
  EXPECT_EQ(pages.proportional_shared.bytes, 10u * 1024);
  EXPECT_EQ(pages.private_dirty.bytes, 41u * 1024);
  EXPECT_EQ(pages.locked.bytes, 2u * 1024);
  EXPECT_EQ(pages.copied_file.bytes, 33u * 1024);
  EXPECT_EQ(pages.most_copied, "/data/model 1.bin");
  EXPECT_FALSE(read_process_pages(root_ + "/proc", 8).copied_file) << "there is no such process";
}

}  // namespace
}  // namespace gpumemprof
