// The host's memory by arithmetic over made-up samples.
#include "analysis/host/host_memories.h"

#include <gtest/gtest.h>

#include "analysis/driver/driver_memories.h"
#include "analysis/host/host_findings.h"
#include "base/size.h"
#include "recording/holders_file.h"
#include "recording/samples_file.h"
#include "recording/samples_writer.h"
#include "recording/test_reading.h"
#include "trace/tables.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kHostSecond = 1'000'000'000;

using Values = std::vector<std::pair<SampleKey, SampledValue>>;

void say(const char* field, uint64_t bytes, int64_t pid, Values* out) {
  out->emplace_back(SampleKey{"/proc", "host", field, pid}, SampledValue::of(bytes));
}

struct Said {
  uint64_t anonymous, file, shared, pss = 0, pss_anonymous = 0, private_dirty = 0;
  int64_t parent = 1;
};

void say_process(int64_t pid, const Said& said, Values* out) {
  say("resident_bytes", said.anonymous + said.file + said.shared, pid, out);
  say("anonymous_bytes", said.anonymous, pid, out);
  say("file_bytes", said.file, pid, out);
  say("shared_bytes", said.shared, pid, out);
  say("parent", static_cast<uint64_t>(said.parent), pid, out);
  out->emplace_back(SampleKey{"/proc", "host", "program", pid},
                    SampledValue::of_text("python train.py"));
  if (said.pss == 0) return;
  say("proportional_bytes", said.pss, pid, out);
  say("proportional_anonymous_bytes", said.pss_anonymous, pid, out);
  say("private_dirty_bytes", said.private_dirty, pid, out);
}

void say_cgroup(uint64_t limit, uint64_t anonymous, uint64_t file, uint64_t kernel, Values* out) {
  say("limit_bytes", limit, 0, out);
  say("cgroup_used_bytes", anonymous + file + kernel, 0, out);
  say("cgroup_anonymous_bytes", anonymous, 0, out);
  say("cgroup_file_bytes", file, 0, out);
  say("cgroup_shared_bytes", 0, 0, out);
  say("cgroup_kernel_bytes", kernel, 0, out);
  say("cgroup_reclaimable_bytes", file, 0, out);
}

SamplesOrigin sampled_on(const char* host) {
  SamplesOrigin out;
  out.pid = 3, out.host = host;
  return out;
}

RecordedSamples host_samples(const std::vector<Values>& looks) {
  for_tests::TempFolder folder;
  auto writer = SamplesWriter::create(folder.path(), sampled_on("h"), 0);
  EXPECT_TRUE(writer);
  uint64_t time_ns = kHostSecond;
  for (const Values& values : looks) {
    EXPECT_TRUE(writer->add({time_ns, SampleCause::kPeriod, values}));
    time_ns += kHostSecond;
  }
  auto read = read_samples_file(writer->path());
  EXPECT_TRUE(read);
  return read ? *read : RecordedSamples{};
}

HostRun only_run(const std::vector<Values>& looks, const DriverMemories* driver = nullptr,
                 const Tables& tables = {}) {
  const auto found = host_memories({host_samples(looks)}, tables, driver, nullptr, false);
  EXPECT_TRUE(found);
  EXPECT_EQ(found->runs.size(), 1u);
  return found->runs.at(0);
}

std::vector<Finding> findings_of_looks(const std::vector<Values>& looks, const ProgramEnds& ends = {}) {
  const auto found = host_memories({host_samples(looks)}, {}, nullptr, nullptr, false);
  return host_findings(*found, ends);
}

const Finding* finding_of(const std::vector<Finding>& findings, FindingKind kind) {
  for (const Finding& one : findings)
    if (one.kind == kind) return &one;
  return nullptr;
}

uint64_t evidence(const Finding& finding, std::string_view name) {
  for (const auto& [key, value] : finding.evidence)
    if (key == name) return value;
  return UINT64_MAX;
}

TEST(HostIdentity, AddsUpToTheResidentMemoryWithASign) {
  HostMoment moment;
  moment.resident = HostTerm::of(1000), moment.shared = HostTerm::of(300);
  moment.file = HostTerm::of(100), moment.pinned = HostTerm::of(120);
  moment.malloc_live = HostTerm::of(500), moment.malloc_kept = HostTerm::of(150);
  const HostIdentity sum = host_identity(moment);
  EXPECT_EQ(sum.shared.bytes, 180u);
  EXPECT_EQ(sum.rest_bytes, 1000 - 120 - 180 - 100 - 500 - 150);
  moment.python_arenas = HostTerm::of(40);
  EXPECT_EQ(host_identity(moment).rest_bytes, *sum.rest_bytes - 40);
}

TEST(HostIdentity, WhatIsNotKnownStaysInTheRest) {
  HostMoment moment;
  moment.resident = HostTerm::of(1000), moment.shared = HostTerm::of(100);
  moment.file = HostTerm::unknown("x"), moment.pinned = HostTerm::of(101);
  const HostIdentity sum = host_identity(moment);
  EXPECT_FALSE(sum.pinned.bytes) << "more than all shared pages";
  EXPECT_EQ(sum.rest_bytes, 900);
  moment.resident = HostTerm::unknown("gone");
  EXPECT_FALSE(host_identity(moment).rest_bytes);
}

TEST(HostIdentity, OfACgroupNamesWhatIsInNoClass) {
  CgroupMoment moment;
  moment.used = HostTerm::of(100), moment.anonymous = HostTerm::of(40);
  moment.file = HostTerm::of(30), moment.shared = HostTerm::of(20);
  moment.kernel = HostTerm::of(15);
  EXPECT_EQ(rest_of(moment), -5);
  moment.kernel = HostTerm::unknown("x");
  EXPECT_FALSE(rest_of(moment));
}

TEST(HostMemories, TellsWhenEachProcessAndAllTogetherWereHighest) {
  Values first, second, third;
  say_process(7, {.anonymous = 50, .file = 10, .shared = 40, .pss = 70}, &first);
  say_process(8, {.anonymous = 5, .file = 1, .shared = 40, .pss = 30}, &first);
  say_process(7, {.anonymous = 60, .file = 10, .shared = 40}, &second);
  say_process(8, {.anonymous = 5, .file = 1, .shared = 40}, &second);
  say_process(7, {.anonymous = 20, .file = 10, .shared = 0, .pss = 25}, &third);
  const HostRun run = only_run({first, second, third});
  ASSERT_EQ(run.processes.size(), 2u);
  EXPECT_EQ(run.processes[0].pid, 7);
  EXPECT_EQ(run.processes[0].program, "python train.py");
  EXPECT_EQ(run.processes[0].highest.time_ns, 2 * kHostSecond);
  EXPECT_EQ(run.processes[0].highest.anonymous.bytes, 60u);
  EXPECT_EQ(run.processes[0].highest.proportional.why, "the pages were not walked at this sample");
  ASSERT_TRUE(run.processes[0].walked);
  EXPECT_EQ(run.processes[0].walked->time_ns, kHostSecond);
  EXPECT_EQ(run.processes[0].last_resident_bytes, 30u);
  EXPECT_EQ(run.highest_resident->bytes, 110u + 46);
  EXPECT_EQ(run.highest_resident->time_ns, 2 * kHostSecond);
  EXPECT_EQ(run.highest_resident->samples, 3u);
  EXPECT_EQ(run.highest_proportional->bytes, 100u) << "shared pages count once";
  EXPECT_EQ(run.highest_proportional->samples, 2u) << "the second has no walk";
}

TEST(HostMemories, TheMostResidentIsThatOfAllReadings) {
  Values first, second;
  say_process(7, {.anonymous = 50}, &first);
  say("peak_resident_bytes", 90, 7, &first);
  say_process(7, {.anonymous = 60}, &second);
  say("peak_resident_bytes", 90, 7, &second);
  ProcessHolders told{.pid = 7};
  const auto most = [&] {
    const std::vector<ProcessHolders> holders = {told};
    const auto found = host_memories({host_samples({first, second})}, {}, nullptr, &holders, false);
    const HostProcess& process = found->runs.at(0).processes.at(0);
    EXPECT_EQ(process.highest.resident.bytes, 60u) << "the highest sample stays a sample";
    return std::pair(process.most_resident_bytes, process.most_resident_ns);
  };
  EXPECT_EQ(most(), std::pair(uint64_t{90}, kHostSecond)) << "the kernel's own maximum";
  told.looks.resize(1);
  told.looks[0].time_ns = 1'500'000'000;
  told.looks[0].memory = MemoryAtLook{.resident_bytes = 95};
  EXPECT_EQ(most(), std::pair(uint64_t{95}, uint64_t{1'500'000'000})) << "what it said of itself";
}

TEST(HostMemories, HasTheSumsOfAllSamplesByClass) {
  Values first, second, third;
  say_process(7, {.anonymous = 50, .file = 10, .shared = 40}, &first);
  say_process(8, {.anonymous = 5, .file = 1, .shared = 40}, &first);
  first.emplace_back(SampleKey{"gpumemprof", "accelerators", "devices", 0},
                     SampledValue::absent(kNoGpuDriver));
  second = first;
  say_process(7, {.anonymous = 60, .file = 10, .shared = 40}, &third);
  say("anonymous_bytes", 9, 9, &third);
  say("resident_bytes", 9, 9, &third);
  const HostRun run = only_run({first, second, third});
  ASSERT_EQ(run.levels.size(), 3u);
  EXPECT_EQ(run.levels[1].time_ns, 2 * kHostSecond);
  EXPECT_EQ(run.levels[1].anonymous, 55u);
  EXPECT_EQ(run.levels[1].file, 11u);
  EXPECT_EQ(run.levels[1].shared, 80u);
  EXPECT_EQ(run.levels[1].pinned, 0u);
  EXPECT_EQ(run.levels[2].anonymous, 69u);
  EXPECT_FALSE(run.levels[2].file) << "unknown of one of them";
  EXPECT_FALSE(run.levels[2].pinned);
  EXPECT_FALSE(run.levels[2].cgroup);
  ASSERT_EQ(run.processes[0].levels.size(), 2u) << "where it changed";
  EXPECT_EQ(run.processes[0].levels[1].time_ns, 3 * kHostSecond);
  EXPECT_EQ(run.processes[0].levels[1].resident, 110u);
}

TEST(HostMemories, APidThatComesBackIsAnotherProcess) {
  Values first, second, third;
  say_process(7, {.anonymous = 50, .file = 0, .shared = 0}, &first);
  say_process(8, {.anonymous = 1, .file = 0, .shared = 0}, &second);
  say_process(7, {.anonymous = 20, .file = 0, .shared = 0}, &third);
  const HostRun run = only_run({first, second, third});
  ASSERT_EQ(run.processes.size(), 3u);
  EXPECT_EQ(run.processes[0].highest.anonymous.bytes, 50u);
  EXPECT_EQ(run.processes[1].highest.anonymous.bytes, 20u);
}

TEST(HostMemories, WhatTheDriverHadPinnedIsThatOfTheSamplesTime) {
  Tables tables;
  tables.processes.push_back({.pid = 7, .host = "h"});
  DriverMemories driver;
  driver.hosts.push_back({.process = 0});
  driver.hosts[0].steps = {{.time_ns = kHostSecond / 2, .pinned_bytes = 30, .registered_bytes = 4},
                           {.time_ns = kHostSecond * 3 / 2, .pinned_bytes = 90}};
  Values first;
  say_process(7, {.anonymous = 50, .file = 0, .shared = 40}, &first);
  const HostRun run = only_run({first}, &driver, tables);
  EXPECT_EQ(run.processes[0].highest.pinned.bytes, 30u);
  EXPECT_EQ(run.processes[0].highest.registered.bytes, 4u);
  EXPECT_EQ(host_identity(run.processes[0].highest).shared.bytes, 10u);
}

TEST(HostMemories, WhatAProcessSaysOfItselfIsASumOfItsOwn) {
  Tables tables;
  tables.processes.push_back({.pid = 7, .host = "h"});
  DriverMemories driver;
  driver.hosts.push_back({.process = 0});
  driver.hosts[0].steps = {{.time_ns = kHostSecond / 2, .pinned_bytes = 30}};
  Values first;
  say_process(7, {.anonymous = 50, .file = 0, .shared = 40}, &first);
  std::vector<ProcessHolders> holders{{.pid = 7, .looks = {{}, {}}}};
  holders[0].looks[0].memory = {.resident_bytes = 500, .anonymous_bytes = 400, .file_bytes = 60,
                                .shared_bytes = 40, .malloc_live_bytes = 200,
                                .malloc_kept_bytes = 50, .python_arenas_bytes = 120,
                                .pinned_used_bytes = 20, .pinned_cache_bytes = 30};
  holders[0].looks[0].time_ns = holders[0].looks[1].time_ns = kHostSecond;
  holders[0].looks[1].memory = {.resident_bytes = 500, .anonymous_bytes = 400,
                                .why_no_python_arenas = "why"};
  const auto found = host_memories({host_samples({first})}, tables, &driver, &holders, false);
  const auto& asked = found->runs.at(0).processes.at(0).asked;
  ASSERT_EQ(asked.size(), 2u);
  const HostIdentity sum = host_identity(asked[0]);
  EXPECT_EQ(sum.pinned.bytes, 30u);
  EXPECT_EQ(sum.shared.bytes, 10u);
  EXPECT_EQ(sum.rest_bytes, 500 - 30 - 10 - 60 - 200 - 50 - 120);
  EXPECT_EQ(asked[0].pinned_used.bytes, 20u);
  EXPECT_EQ(asked[0].pinned_cache.bytes, 30u);
  EXPECT_EQ(asked[1].python_arenas.why, "why");
  EXPECT_FALSE(asked[1].malloc_live.bytes);
  EXPECT_FALSE(asked[1].pinned_used.bytes);
  EXPECT_EQ(host_identity(asked[1]).rest_bytes, 470) << "what is pinned is known by the driver";
  EXPECT_TRUE(host_findings(*found, {}).empty());
}

TEST(HostMemories, WithoutADriverNothingIsPinnedByIt) {
  Values first;
  say_process(7, {.anonymous = 50, .file = 0, .shared = 40}, &first);
  const auto pinned = [&](const char* why_no_devices) {
    Values values = first;
    values.emplace_back(SampleKey{"gpumemprof", "accelerators", "devices", 0},
                        SampledValue::absent(why_no_devices));
    return only_run({values}).processes[0].highest.pinned.bytes;
  };
  EXPECT_FALSE(only_run({first}).processes[0].highest.pinned.bytes);
  EXPECT_EQ(pinned(kNoGpuDriver), 0u) << "no process loaded one";
  EXPECT_EQ(pinned("no NVIDIA driver (libnvidia-ml.so.1), and no amdgpu, i915 or xe under /sys/class/drm"), 0u)
      << "the machine has none";
  EXPECT_FALSE(pinned("NVIDIA: Driver/library version mismatch")) << "there is one";
}

/// Three processes share 300 MiB: the parent's RSS and that of two workers.
std::vector<Values> family(uint64_t copied_by_each, uint64_t asked_by_each) {
  std::vector<Values> looks(2);
  const uint64_t all = 300 * kMiB;
  for (const int64_t pid : {7, 8, 9})
    say_process(pid,
                {.anonymous = all, .file = 1, .shared = 0, .pss = all / 3, .pss_anonymous = all / 3,
                 .private_dirty = 0, .parent = pid == 7 ? 1 : 7},
                &looks[0]);
  const uint64_t left = all - copied_by_each;  // of what all three share
  for (const int64_t pid : {7, 8, 9}) {
    const bool is_parent = pid == 7;
    const uint64_t own = is_parent ? 0 : copied_by_each + asked_by_each;
    const uint64_t pss = left / 3 + own + (is_parent ? copied_by_each : 0);
    say_process(pid,
                {.anonymous = all + (is_parent ? 0 : asked_by_each), .file = 1, .shared = 0,
                 .pss = pss, .pss_anonymous = pss,
                 .private_dirty = own + (is_parent ? copied_by_each : 0),
                 .parent = is_parent ? 1 : 7},
                &looks[1]);
  }
  return looks;
}

TEST(HostFindings, WhatWorkersCopiedByWritingIsTold) {
  const auto found = findings_of_looks(family(120 * kMiB, 0));
  const Finding* copied = finding_of(found, FindingKind::kForkCopyOnWrite);
  ASSERT_TRUE(copied);
  EXPECT_EQ(copied->bytes, 240 * kMiB) << "120 MiB more in each of two: of 300 MiB, 540 are there";
  EXPECT_EQ(evidence(*copied, "shared_at_first_bytes"), 600 * kMiB);
  EXPECT_EQ(evidence(*copied, "workers"), 2u);
  EXPECT_EQ(copied->device, kOfTheHost);
}

/// One worker begins when another has copied 120 of 300 MiB, and copies 100 when that one is gone.
TEST(HostFindings, WorkersThatBeginAndEndAtOtherTimesCountTogether) {
  std::vector<Values> looks(3);
  const auto say = [&](size_t look, int64_t pid, uint64_t pss, uint64_t own) {
    say_process(pid,
                {.anonymous = 300 * kMiB, .file = 1, .shared = 0, .pss = pss * kMiB,
                 .pss_anonymous = pss * kMiB, .private_dirty = own * kMiB, .parent = pid == 7 ? 1 : 7},
                &looks[look]);
  };
  say(0, 7, 150, 0), say(0, 8, 150, 0);
  say(1, 7, 180 / 3 + 120 / 2, 0), say(1, 8, 180 / 3 + 120, 120), say(1, 9, 180 / 3 + 120 / 2, 0);
  say(2, 7, 200 / 2 + 100, 100), say(2, 9, 200 / 2 + 100, 100);
  const auto found = findings_of_looks(looks);
  const Finding* copied = finding_of(found, FindingKind::kForkCopyOnWrite);
  ASSERT_TRUE(copied);
  EXPECT_EQ(copied->bytes, (120 + 100) * kMiB);
  EXPECT_EQ(evidence(*copied, "shared_at_first_bytes"), 600 * kMiB);
  EXPECT_EQ(evidence(*copied, "workers"), 2u);
}

TEST(HostFindings, AWorkerThatEndsLeavesNoCopies) {
  std::vector<Values> looks(2);
  const auto say = [&](size_t look, int64_t pid, uint64_t pss) {
    say_process(pid,
                {.anonymous = 300 * kMiB, .file = 1, .shared = 0, .pss = pss * kMiB,
                 .pss_anonymous = pss * kMiB, .private_dirty = 0, .parent = pid == 7 ? 1 : 7},
                &looks[look]);
  };
  for (const int64_t pid : {7, 8, 9}) say(0, pid, 100);
  for (const int64_t pid : {7, 9}) say(1, pid, 150);
  EXPECT_FALSE(finding_of(findings_of_looks(looks), FindingKind::kForkCopyOnWrite));
}

TEST(HostFindings, WhatWorkersAskedForThemselvesIsNoCopy) {
  EXPECT_FALSE(finding_of(findings_of_looks(family(0, 120 * kMiB)), FindingKind::kForkCopyOnWrite));
}

TEST(HostFindings, WhatTheParentFreedIsNoCopy) {
  auto looks = family(0, 0);
  looks[1].clear();  // the parent has freed all of it: the workers share it among two
  say_process(7, {.anonymous = 0, .file = 1, .shared = 0, .pss = 1, .pss_anonymous = 0}, &looks[1]);
  for (const int64_t pid : {8, 9})
    say_process(pid,
                {.anonymous = 300 * kMiB, .file = 1, .shared = 0, .pss = 150 * kMiB,
                 .pss_anonymous = 150 * kMiB, .private_dirty = 0, .parent = 7},
                &looks[1]);
  EXPECT_FALSE(finding_of(findings_of_looks(looks), FindingKind::kForkCopyOnWrite));
}

TEST(HostFindings, AFullCgroupOfPageCacheIsNoLeak) {
  Values cache, anonymous;
  say_cgroup(1000, 200, 750, 10, &cache);
  const auto found = findings_of_looks({cache});
  const Finding* finding = finding_of(found, FindingKind::kPageCacheIsNotALeak);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->bytes, 750u);
  EXPECT_EQ(evidence(*finding, "working_set_bytes"), 210u);
  EXPECT_EQ(finding->severity, Severity::kInfo);
  say_cgroup(1000, 750, 200, 10, &anonymous);
  EXPECT_FALSE(finding_of(findings_of_looks({anonymous}), FindingKind::kPageCacheIsNotALeak));
}

TEST(HostFindings, WhatAnyWorkerOfAProgramWithPyTorchCopiesIsNotTold) {
  EXPECT_FALSE(finding_of(findings_of_looks(family(36 * kMiB, 0)), FindingKind::kForkCopyOnWrite));
  const auto found = findings_of_looks(family(45 * kMiB, 0));
  const Finding* copied = finding_of(found, FindingKind::kForkCopyOnWrite);
  ASSERT_TRUE(copied);
  EXPECT_EQ(copied->bytes, 90 * kMiB);
}

TEST(HostFindings, AKilledWorkerIsTheLargestAtItsOwnLastSample) {
  Values before, after;
  say_process(7, {.anonymous = 50, .file = 10, .shared = 40}, &before);
  say_process(8, {.anonymous = 500, .file = 10, .shared = 40}, &before);
  say_process(7, {.anonymous = 50, .file = 10, .shared = 40}, &after);
  ProgramEnd end{.host = "h", .pid = 7, .exit_code = 0, .kernel_kills = 1};
  end.kills_are_of_cgroup = true, end.memory_limit_bytes = 600, end.run_pid = 3;
  ProgramEnds ends;
  ends.runs = {end};
  const auto found = findings_of_looks({before, after}, ends);
  const Finding* killed = finding_of(found, FindingKind::kKilledByTheKernel);
  ASSERT_TRUE(killed);
  EXPECT_EQ(evidence(*killed, "largest_pid"), 8u);
  EXPECT_EQ(killed->bytes, 550u);
}

TEST(HostFindings, TheLargestProcessIsNamedWhereTheKernelKilled) {
  Values look;
  say_process(7, {.anonymous = 50, .file = 10, .shared = 40}, &look);
  say_process(8, {.anonymous = 500, .file = 10, .shared = 40}, &look);
  say_cgroup(600, 550, 20, 10, &look);
  ProgramEnd end{.host = "h", .pid = 7, .signal = "SIGKILL", .kernel_kills = 1};
  end.kills_are_of_cgroup = true, end.memory_limit_bytes = 600, end.run_pid = 3;
  ProgramEnds ends;
  ends.runs = {end};
  const auto found = findings_of_looks({look}, ends);
  const Finding* killed = finding_of(found, FindingKind::kKilledByTheKernel);
  ASSERT_TRUE(killed);
  EXPECT_EQ(evidence(*killed, "largest_pid"), 8u);
  EXPECT_EQ(evidence(*killed, "largest_anonymous_bytes"), 500u);
  EXPECT_EQ(evidence(*killed, "limit_bytes"), 600u);
  EXPECT_EQ(killed->title,
            "the kernel's OOM killer ended the program; the cgroup's limit is 600 B; python train.py (pid 8) "
            "was the largest with 550 B, mostly anonymous memory");
  ends.runs[0].kernel_kills = 0;
  EXPECT_FALSE(finding_of(findings_of_looks({look}, ends), FindingKind::kKilledByTheKernel));
}

TEST(HostFindings, ARecorderThatWasKilledIsSeenByItsLastSample) {
  Values full, half;
  say_process(7, {.anonymous = 900, .file = 0, .shared = 0}, &full);
  say_cgroup(1000, 950, 0, 10, &full);
  say_process(7, {.anonymous = 400, .file = 0, .shared = 0}, &half);
  say_cgroup(1000, 450, 500, 10, &half);
  ProgramEnds ends;
  ends.runs = {{.host = "h", .pid = 7, .run_pid = 3}};
  const auto killed = [&](const Values& last, bool is_over) {
    auto memories = host_memories({host_samples({last})}, {}, nullptr, nullptr, false);
    HostMemories changed = *memories;
    changed.runs[0].is_over = is_over;
    const auto found = host_findings(changed, ends);
    return finding_of(found, FindingKind::kKilledByTheKernel) != nullptr;
  };
  EXPECT_TRUE(killed(full, true));
  EXPECT_FALSE(killed(full, false)) << "it still runs";
  EXPECT_FALSE(killed(half, true)) << "what is page cache is no reason to kill";
}

TEST(HostFindings, MallocKeepsWhatTwoLooksInTurnSay) {
  Values look;
  say_process(7, {.anonymous = 400 * kMiB, .file = 0, .shared = 0}, &look);
  ProcessHolders said{.pid = 7};
  uint64_t anonymous = 380;
  const auto at = [&](uint64_t live, uint64_t kept) {
    HoldersLook one;
    one.memory = MemoryAtLook{.resident_bytes = 400 * kMiB,
                              .anonymous_bytes = anonymous * kMiB,
                              .malloc_live_bytes = live * kMiB,
                              .malloc_kept_bytes = kept * kMiB};
    return one;
  };
  uint64_t swing = 0, above = 1000, live_before = 100;
  const auto found = [&](uint64_t before, uint64_t after) {
    said.looks = {at(live_before, before), at(100, after)};
    const std::vector<ProcessHolders> holders = {said};
    const auto memories = host_memories({host_samples({look})}, {}, nullptr, &holders, false);
    return host_findings(*memories, {}, [&](int64_t pid, uint64_t, uint64_t) {
      EXPECT_EQ(pid, 7);
      return TensorSwing{swing * kMiB, above * kMiB};
    });
  };
  const auto kept = found(250, 200);
  const Finding* finding = finding_of(kept, FindingKind::kMallocRetention);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->bytes, 200 * kMiB);
  EXPECT_FALSE(finding_of(found(10, 250), FindingKind::kMallocRetention)) << "as the program ended";
  swing = 90;
  const auto partly = found(250, 200);
  ASSERT_TRUE(finding_of(partly, FindingKind::kMallocRetention));
  EXPECT_EQ(finding_of(partly, FindingKind::kMallocRetention)->bytes, 110 * kMiB);
  const auto grown = found(110, 200);
  ASSERT_TRUE(finding_of(grown, FindingKind::kMallocRetention)) << "the 90 came from the kernel, and stay";
  EXPECT_EQ(finding_of(grown, FindingKind::kMallocRetention)->bytes, 110 * kMiB);
  live_before = 190;
  EXPECT_FALSE(finding_of(found(110, 200), FindingKind::kMallocRetention)) << "the heap is as large as it was";
  live_before = 100, swing = 150;
  EXPECT_FALSE(finding_of(found(250, 200), FindingKind::kMallocRetention)) << "the next step asks for it again";
  swing = 5000, above = 40;
  const auto leaking = found(250, 200);
  ASSERT_TRUE(finding_of(leaking, FindingKind::kMallocRetention)) << "tensors rose by 5,000, and 40 are to come";
  EXPECT_EQ(finding_of(leaking, FindingKind::kMallocRetention)->bytes, 160 * kMiB);
  swing = 0, anonymous = 200;
  EXPECT_FALSE(finding_of(found(250, 200), FindingKind::kMallocRetention)) << "its pages were given back";
}

TEST(HostFindings, FilesLeftInDevShmAreTold) {
  Values look;
  say_process(7, {.anonymous = 1, .file = 0, .shared = 0}, &look);
  ProgramEnds ends;
  ends.runs = {{}};
  EXPECT_FALSE(finding_of(findings_of_looks({look}, ends), FindingKind::kShmLeftBehind));
  ends.runs[0].left_in_shm = {{"torch_7_1_0", 4096, true}, {"psm_a", 100, false}};
  const auto found = findings_of_looks({look}, ends);
  const Finding* left = finding_of(found, FindingKind::kShmLeftBehind);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->bytes, 4196u);
  EXPECT_EQ(evidence(*left, "own_files"), 1u);
  EXPECT_EQ(left->severity, Severity::kWarning);
  for (const uint64_t bytes : {kMiB - 1, kMiB}) {
    ends.runs[0].left_in_shm = {{"psm_a", bytes, false}};
    const auto others = findings_of_looks({look}, ends);
    EXPECT_EQ(finding_of(others, FindingKind::kShmLeftBehind) != nullptr, bytes == kMiB);
  }
}

TEST(HostRooms, AreWhatWasLeftAtTheLastSampleThatHasTheProcess) {
  const auto look = [](uint64_t available, uint64_t limit_used, bool is_there, bool is_limited) {
    Values values;
    say("total_bytes", 1000, 0, &values);
    say("available_bytes", available, 0, &values);
    if (is_limited) say("limit_bytes", 800, 0, &values);
    if (is_limited) say("limit_used_bytes", limit_used, 0, &values);
    if (is_there) say("resident_bytes", 200, 7, &values);
    return values;
  };
  for (const bool is_limited : {true, false}) {
    const std::vector<HostRoom> rooms =
        host_rooms({host_samples({look(600, 300, true, is_limited), look(500, 700, true, is_limited),
                                  look(950, 0, false, is_limited)})});
    ASSERT_EQ(rooms.size(), 1u);
    EXPECT_EQ(rooms[0].pid, 7u);
    EXPECT_EQ(rooms[0].host, "h");
    EXPECT_EQ(rooms[0].limit_bytes, is_limited ? 800u : 1000u);
    EXPECT_EQ(rooms[0].free_bytes, is_limited ? 100u : 500u);
  }
}

TEST(HostRooms, EndWhereAProcessMayMapNoMore) {
  Values values;
  say("total_bytes", 1000, 0, &values), say("available_bytes", 500, 0, &values);
  for (const int64_t pid : {7, 8}) {
    say("resident_bytes", 200, pid, &values);
    say("mapped_bytes", 2900, pid, &values);
    say("mapped_limit_bytes", pid == 7 ? 3000 : 9000, pid, &values);
  }
  const std::vector<HostRoom> rooms = host_rooms({host_samples({values})});
  ASSERT_EQ(rooms.size(), 2u);
  EXPECT_EQ(rooms[0].pid, 7u);
  EXPECT_EQ(rooms[0].limit_bytes, 3000u);
  EXPECT_EQ(rooms[0].free_bytes, 100u);
  EXPECT_TRUE(rooms[0].is_of_process);
  EXPECT_FALSE(rooms[1].is_of_process);
  EXPECT_EQ(rooms[1].limit_bytes, 1000u) << "the machine has less";
  EXPECT_EQ(rooms[1].free_bytes, 500u);
}

}  // namespace
}  // namespace gpumemprof
