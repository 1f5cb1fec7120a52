#include "analysis/host/host_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/size.h"
#include "trace/tables.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kLeastToTell = 64 * kMiB;
/// Less is true and harmless, where every program has some.
constexpr uint64_t kWorthAWarning = 256 * kMiB;
/// A garbage collection writes to the header of every object, those of imported modules too: 40 MiB
/// in a fork of a program that imported PyTorch 2.13 and no more (docs/problems/fork-copy-on-write.md).
constexpr uint64_t kCopiedByAnyWorker = 40 * kMiB;

constexpr uint64_t kLeastStaged = 64 * kMiB, kLeastHolder = 64 << 10;

constexpr std::array<std::string_view, 6> kSavers = {
    "/torch/distributed/checkpoint/staging.py",
    "/torch/distributed/checkpoint/_state_dict_stager.py",
    "/torch/distributed/checkpoint/state_dict_saver.py",
    "/torch/distributed/checkpoint/_async_executor.py",
    "/torch/distributed/checkpoint/_async_thread_executor.py",
    "/torch/distributed/checkpoint/_async_process_executor.py"};
constexpr std::array<std::string_view, 3> kCopiers = {"_offload_state_dict_to_cpu",
                                                      "_copy_state_dict", "_create_cpu_state_dict"};
constexpr std::array<std::string_view, 3> kSaves = {"save", "_save", "_legacy_save"};

Severity severity_of(uint64_t bytes) {
  return bytes >= kWorthAWarning ? Severity::kWarning : Severity::kInfo;
}

Finding of_host(FindingKind kind, Severity severity, std::optional<uint64_t> bytes,
                std::string title, std::string fix, std::vector<std::pair<std::string, uint64_t>> figures) {
  return {.kind = kind,
          .severity = severity,
          .title = std::move(title),
          .bytes = bytes,
          .evidence = std::move(figures),
          .fix = std::move(fix),
          .device = kOfTheHost};
}

void put(const char* name, const HostTerm& term, Finding* out) {
  if (term.bytes) out->evidence.emplace_back(name, *term.bytes);
}

/// The process that had most: at the run's last sample, or, where the program outlived the kill,
/// each at its own last sample, as the killed one has none at the run's.
const HostProcess* largest_when_killed(const HostRun& run, bool is_over_by_kill) {
  const HostProcess* out = nullptr;
  for (const HostProcess& one : run.processes) {
    if (is_over_by_kill && one.last_time_ns != run.last_sample_with_processes_ns) continue;
    if (!out || one.last_resident_bytes > out->last_resident_bytes) out = &one;
  }
  return out;
}

const char* largest_class(const HostMoment& moment) {
  const uint64_t anonymous = moment.anonymous.bytes.value_or(0);
  const uint64_t file = moment.file.bytes.value_or(0), shared = moment.shared.bytes.value_or(0);
  if (std::max({anonymous, file, shared}) == 0) return "";
  if (anonymous >= file && anonymous >= shared) return "anonymous memory";
  return shared >= file ? "shared memory" : "file pages";
}

/// What of the cgroup the kernel could not drop.
std::optional<uint64_t> kept_by_cgroup(const CgroupMoment& moment) {
  if (!moment.used.bytes || !moment.reclaimable.bytes) return std::nullopt;
  return *moment.used.bytes - std::min(*moment.used.bytes, *moment.reclaimable.bytes);
}

std::optional<Finding> killed(const HostRun& run, const ProgramEnd& end) {
  const bool is_program = was_killed_by_the_kernel(end);
  const bool is_other = !is_program && end.kills_are_of_cgroup && end.kernel_kills.value_or(0) != 0;
  const bool is_told = end.exit_code || !end.signal.empty();
  // Neither the program nor `run` has an end, and the cgroup was full: both were killed.
  const auto kept = run.cgroup_last ? kept_by_cgroup(*run.cgroup_last) : std::nullopt;
  const auto limit = run.cgroup_last ? run.cgroup_last->limit.bytes : std::nullopt;
  const bool is_run = !is_told && !run.has_end && run.is_over && kept && limit &&
                      *kept >= *limit - *limit / 10;
  if (!is_program && !is_other && !is_run) return std::nullopt;
  std::string title =
      is_program ? "the kernel's OOM killer ended the program"
      : is_other ? fmt::format("the kernel's OOM killer ended {} of the cgroup's processes",
                               *end.kernel_kills)
                 : "the recorder and the program were killed; at the last sample the cgroup was "
                   "full";
  const auto allowed = end.memory_limit_bytes ? end.memory_limit_bytes : limit;
  if (allowed) title += fmt::format("; the cgroup's limit is {}", format_bytes(*allowed));
  const HostProcess* largest = largest_when_killed(run, !is_other);
  if (largest) {
    title += fmt::format("; {} was the largest with {}", name_of(*largest),
                         format_bytes(largest->last_resident_bytes));
    if (const std::string of = largest_class(largest->highest); !of.empty())
      title += ", mostly " + of;
  }
  Finding out = of_host(FindingKind::kKilledByTheKernel, Severity::kCritical, std::nullopt,
                        std::move(title),
                        "raise the limit of the container or job, or use less memory in the "
                        "largest process",
                        {});
  if (is_run) out.confidence = 0.8;
  if (allowed) out.evidence.emplace_back("limit_bytes", *allowed);
  if (end.kernel_kills) out.evidence.emplace_back("kills", *end.kernel_kills);
  if (run.limit_hits) out.evidence.emplace_back("limit_hits", *run.limit_hits);
  if (run.cgroup_last) {
    put("cgroup_used_bytes", run.cgroup_last->used, &out);
    put("cgroup_reclaimable_bytes", run.cgroup_last->reclaimable, &out);
  }
  if (largest) {
    out.bytes = largest->last_resident_bytes;
    out.evidence.emplace_back("largest_pid", static_cast<uint64_t>(largest->pid));
    out.evidence.emplace_back("largest_resident_bytes", largest->last_resident_bytes);
    put("largest_anonymous_bytes", largest->highest.anonymous, &out);
    put("largest_file_bytes", largest->highest.file, &out);
    put("largest_shared_bytes", largest->highest.shared, &out);
  }
  return out;
}

std::optional<Finding> page_cache(const HostRun& run) {
  if (!run.cgroup_highest || run.kills.value_or(0) != 0) return std::nullopt;
  const CgroupMoment& at = *run.cgroup_highest;
  const auto kept = kept_by_cgroup(at);
  if (!kept || !at.limit.bytes) return std::nullopt;
  const uint64_t limit = *at.limit.bytes, used = *at.used.bytes;
  const uint64_t droppable = used - *kept;
  if (used < limit - limit / 5 || droppable < used / 2 || *kept > limit / 2) return std::nullopt;
  return of_host(
      FindingKind::kPageCacheIsNotALeak, Severity::kInfo, droppable,
      fmt::format("the cgroup used {} of its limit of {}; {} of that was page cache, which the "
                  "kernel drops when memory is needed; only {} could not be dropped",
                  format_bytes(used), format_bytes(limit), format_bytes(droppable),
                  format_bytes(*kept)),
      "watch the working set (used minus reclaimable file pages) instead of the used memory",
      {{"cgroup_used_bytes", used},
       {"limit_bytes", limit},
       {"reclaimable_bytes", droppable},
       {"working_set_bytes", *kept}});
}

/// What malloc has is all in memory, as far as the kernel's count allows: not where malloc_trim gave
/// back the pages of free blocks.
bool is_all_resident(const HostMoment& said) {
  uint64_t both = 0;
  return said.malloc_live.bytes && said.malloc_kept.bytes &&
         !__builtin_add_overflow(*said.malloc_live.bytes, *said.malloc_kept.bytes, &both) &&
         both <= *said.anonymous.bytes;
}

/// What the heap grew by between two looks and is free at the second: what rose and fell meanwhile
/// was not taken out of what was kept at the first.
uint64_t taken_meanwhile(const HostMoment& before, const HostMoment& after) {
  const auto heap = [](const HostMoment& at) { return *at.malloc_live.bytes + *at.malloc_kept.bytes; };
  const auto more = [](uint64_t now, uint64_t then) { return now - std::min(now, then); };
  return std::min(more(*after.malloc_kept.bytes, *before.malloc_kept.bytes),
                  more(heap(after), heap(before)));
}

/// Free memory that malloc kept from one look to the next: at one alone it may have been on its way.
std::optional<Finding> retention(const HostProcess& process, const ProgramEnds& ends,
                                 const SwingSince& swing) {
  uint64_t most = 0, used_again = 0;
  const HostMoment* at = nullptr;
  for (size_t i = 1; i < process.asked.size(); ++i) {
    const HostMoment &before = process.asked[i - 1], &after = process.asked[i];
    if (!is_all_resident(before) || !is_all_resident(after)) continue;
    const uint64_t kept = std::min(*before.malloc_kept.bytes, *after.malloc_kept.bytes);
    // A step that frees and asks again is what malloc keeps it for, but for what it took from the
    // kernel meanwhile.
    const TensorSwing used =
        swing ? swing(process.pid, before.time_ns, after.time_ns) : TensorSwing{0, 0};
    const uint64_t rest = used.whole_bytes - std::min(used.whole_bytes, taken_meanwhile(before, after));
    const uint64_t again = std::min({kept, rest, used.above_bytes});
    if (kept - again > most) most = kept - again, used_again = again, at = &after;
  }
  if (!at || most < kLeastToTell || most < *at->resident.bytes / 4) return std::nullopt;
  Finding out = of_host(
      FindingKind::kMallocRetention, severity_of(most), most,
      fmt::format("glibc's malloc keeps {} of free memory in {}, which has {} resident",
                  format_bytes(most), name_of(process), format_bytes(*at->resident.bytes)),
      "call malloc_trim(0) after phases that free much, or set MALLOC_ARENA_MAX=2 and "
      "MALLOC_TRIM_THRESHOLD_=131072",
      {{"malloc_kept_bytes", most},
       {"malloc_live_bytes", *at->malloc_live.bytes},
       {"used_again_bytes", used_again},
       {"resident_bytes", *at->resident.bytes}});
  // Looked at while what was live then was still there.
  const auto refused = std::ranges::find_if(ends.refused, [&](const RefusedRequest& one) {
    return one.process.pid == static_cast<uint64_t>(process.pid) && is_host_refusal(one) &&
           one.requested && one.requested->most_bytes <= most && one.live_bytes &&
           *one.live_bytes <= *at->malloc_live.bytes;
  });
  if (refused != ends.refused.end()) {
    out.severity = Severity::kWarning;
    out.title += fmt::format("; it found no room in them for the {} that were refused",
                             format_bytes(refused->requested->bytes));
  }
  return out;
}

std::optional<Finding> copied_weights(const HostRun& run) {
  uint64_t sum = 0, most = 0, processes = 0;
  const HostProcess* first = nullptr;
  for (const HostProcess& one : run.processes) {
    const uint64_t copied = one.most_copied_file_bytes;
    if (copied < kLeastToTell) continue;
    sum += copied, ++processes;
    if (copied > most) most = copied, first = &one;
  }
  if (!first) return std::nullopt;
  const std::string file =
      first->most_copied_file.empty() ? "a mapped file" : first->most_copied_file;
  Finding out = of_host(
      FindingKind::kWeightsCopiedPrivately, Severity::kWarning, sum,
      fmt::format("{} wrote to {} of pages mapped from {} and now has private copies of them",
                  name_of(*first), format_bytes(most), file),
      "do not change mapped tensors in place: copy a tensor before you change it, or load weights "
      "straight to the device",
      {{"copied_file_bytes", sum}, {"processes", processes}});
  out.facts = {{"file", first->most_copied_file}};
  return out;
}

std::optional<Finding> compile_workers(const HostRun& run) {
  if (!run.compile_workers || !run.highest_resident) return std::nullopt;
  const HostSum& sum = *run.compile_workers;
  if (sum.bytes < 512 * kMiB && sum.bytes < run.highest_resident->bytes / 2) return std::nullopt;
  if (sum.bytes < kLeastToTell) return std::nullopt;
  Finding out = of_host(
      FindingKind::kCompileWorkers, Severity::kInfo, sum.bytes,
      fmt::format("{} compile workers of torch.compile had {} resident in total", sum.processes,
                  format_bytes(sum.bytes)),
      "set TORCHINDUCTOR_COMPILE_THREADS to fewer workers",
      {{"processes", sum.processes}, {"resident_bytes", sum.bytes}});
  if (const auto& once = run.compile_workers_proportional) {
    out.title += fmt::format(", {} with shared pages counted once", format_bytes(once->bytes));
    out.bytes = once->bytes;
    out.evidence.emplace_back("proportional_bytes", once->bytes);
  }
  return out;
}

std::optional<Finding> copy_on_write(const HostRun& run) {
  const auto copies = copies_of_workers(run.processes);
  if (!copies) return std::nullopt;
  const uint64_t usual = kCopiedByAnyWorker * std::max<uint64_t>(1, copies->workers_that_copied);
  if (copies->copied_bytes < std::max(usual, copies->shared_at_first_bytes / 10))
    return std::nullopt;
  const HostProcess& parent = run.processes[copies->parent];
  const bool is_one = copies->workers == 1;
  Finding out = of_host(
      FindingKind::kForkCopyOnWrite, severity_of(copies->copied_bytes), copies->copied_bytes,
      fmt::format("{} of the {} that {} with {} were copied, because {} wrote to those pages",
                  format_bytes(copies->copied_bytes), format_bytes(copies->shared_at_first_bytes),
                  is_one ? "a forked process shared"
                         : fmt::format("{} forked processes shared", copies->workers),
                  name_of(parent), is_one ? "one of the two" : "some of them"),
      "do not write to data that is shared with forked processes; reading a Python object writes "
      "its reference count, so keep what workers read in arrays, tensors or mapped files, or call "
      "gc.freeze() before the workers start",
      {{"copied_bytes", copies->copied_bytes},
       {"shared_at_first_bytes", copies->shared_at_first_bytes},
       {"workers", copies->workers},
       {"proportional_rise_bytes", copies->proportional_rise_bytes},
       {"own_rise_bytes", copies->own_rise_bytes}});
  out.confidence = 0.8;
  return out;
}

std::optional<Finding> left_in_shm(const ProgramEnd& end) {
  uint64_t bytes = 0, own = 0;
  for (const LeftFile& file : end.left_in_shm) bytes += file.bytes, own += file.is_own ? 1 : 0;
  if (own == 0 && bytes < kMiB) return std::nullopt;  // semaphores of whatever runs beside
  const LeftFile& largest = *std::ranges::max_element(end.left_in_shm, {}, &LeftFile::bytes);
  const std::string name = largest.name.empty() ? "(no name)" : largest.name;
  // Files name their makers at best, and another program may run beside this one.
  const std::string by_whom = own != 0 ? "" : ", perhaps by another program,";
  Finding out = of_host(
      FindingKind::kShmLeftBehind, own != 0 ? Severity::kWarning : Severity::kInfo, bytes,
      end.left_in_shm.size() == 1
          ? fmt::format("1 file in /dev/shm ({}) was made during the run{} and not removed: {}",
                        format_bytes(bytes), by_whom, name)
          : fmt::format("{} files in /dev/shm ({}) were made during the run{} and not removed; the "
                        "largest is {}",
                        end.left_in_shm.size(), format_bytes(bytes), by_whom, name),
      own != 0 ? "remove files that no process uses; let workers end by themselves, or unlink "
                 "shared memory in a finally block"
               : "find out which program made it before removing it; if this one did, unlink "
                 "shared memory in a finally block",
      {{"left_bytes", bytes}, {"files", end.left_in_shm.size()}, {"own_files", own}});
  if (own == 0) out.confidence = 0.5;
  return out;
}

}  // namespace

SwingSince swing_of_tensors(const Analysis& analysis, const Tables& tables) {
  return [&](int64_t pid, uint64_t since_ns, uint64_t at_ns) {
    TensorSwing swing{0, 0};
    for (const DeviceAnalysis& device : analysis.devices) {
      const Device& of = tables.devices[device.device];
      if (!is_host_memory(of) || tables.processes[of.process].pid != pid) continue;
      const Timeline& time = device.timeline;
      if (time.buckets().empty()) return TensorSwing{};
      uint64_t highest = 0, lowest = UINT64_MAX, at = 0;
      for (size_t i = 0; i < time.buckets().size(); ++i) {
        const uint64_t end_ns = time.start_ns() + (i + 1) * time.bucket_ns();
        if (end_ns <= since_ns) continue;
        highest = std::max(highest, time.buckets()[i].max_bytes);
        lowest = std::min(lowest, time.buckets()[i].min_bytes);
        if (end_ns - time.bucket_ns() <= at_ns) at = time.buckets()[i].min_bytes;
      }
      if (lowest < highest) swing.whole_bytes = std::max(swing.whole_bytes, highest - lowest);
      if (at < highest) swing.above_bytes = std::max(swing.above_bytes, highest - at);
    }
    return swing;
  };
}

std::vector<Finding> host_findings(const HostMemories& memories, const ProgramEnds& ends,
                                   const SwingSince& swing) {
  std::vector<Finding> out;
  const auto add = [&](std::optional<Finding> found) {
    if (found) out.push_back(std::move(*found));
  };
  for (const ProgramEnd& end : ends.runs) add(left_in_shm(end));
  for (const HostRun& run : memories.runs) {
    for (const ProgramEnd& end : ends.runs) {
      if (end.run_pid == run.run_pid && (run.host.empty() || end.host == run.host))
        add(killed(run, end));
    }
    add(page_cache(run));
    for (const HostProcess& process : run.processes) add(retention(process, ends, swing));
    add(copied_weights(run));
    add(compile_workers(run));
    add(copy_on_write(run));
  }
  return out;
}

bool is_saving(std::string_view file, std::string_view function) {
  const auto is_one_of = [&](const auto& names) {
    return std::ranges::find(names, function) != names.end();
  };
  if (file.ends_with("/torch/serialization.py")) return is_one_of(kSaves);
  if (file.ends_with("/torch/distributed/_state_dict_utils.py")) return is_one_of(kCopiers);
  return std::ranges::any_of(kSavers, [&](std::string_view one) { return file.ends_with(one); });
}

std::vector<Finding> checkpoint_staging(const Analysis& analysis, const Tables& tables) {
  const auto is_save = [&](const Frame& frame) {
    return is_saving(tables.strings.get(frame.file), tables.strings.get(frame.function));
  };
  std::vector<Finding> out;
  for (const DeviceAnalysis& device : analysis.devices) {
    if (!is_host_memory(tables.devices[device.device])) continue;
    const uint64_t peak = device.figures.peak_bytes;
    uint64_t bytes = 0, count = 0, most = 0;
    uint32_t stack = 0;
    for (const Holder& holder : device.holders_at_peak) {
      if (holder.bytes < kLeastHolder) break;  // the largest come first
      if (tables.stacks.find_node(holder.stack, is_save) == 0) continue;
      bytes += holder.bytes, count += holder.count;
      if (holder.bytes > most) most = holder.bytes, stack = holder.stack;
    }
    if (bytes < kLeastStaged || bytes < peak / 4) continue;
    out.push_back(
        {.kind = FindingKind::kCheckpointStaging,
         .severity = Severity::kWarning,
         .title = format_bytes(bytes) + " of the peak of " + format_bytes(peak) +
                  " were copies in host memory for saving a checkpoint",
         .bytes = bytes,
         .evidence = {{"staged_bytes", bytes}, {"blocks", count}, {"peak_bytes", peak}},
         .stack = stack,
         .fix = "save in parts or one rank of a node at a time, or have an asynchronous save reuse "
                "one staging buffer",
         .device = device.device});
  }
  return out;
}

}  // namespace gpumemprof
