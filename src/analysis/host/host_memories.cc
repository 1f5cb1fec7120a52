#include "analysis/host/host_memories.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/driver/driver_memories.h"
#include "base/no_gpu_driver.h"
#include "recording/holders_file.h"
#include "recording/samples_file.h"
#include "trace/tables.h"

namespace gpumemprof {
namespace {

using HostPoint = RecordedSamples::Point;

constexpr size_t kMostHostProcesses = 4096;   // of one file: a fork storm
constexpr size_t kMostWalks = 1'000'000;      // of one file
constexpr size_t kMostLevels = 4'000'000;     // of one file's processes
constexpr std::string_view kCompileWorker = "compile_worker/__main__.py";
constexpr const char* kNotWalked = "the pages were not walked at this sample";
constexpr const char* kNotTold = "not reported at this sample";
constexpr const char* kNotAsked = "malloc was not asked at this sample";
constexpr const char* kArenasNotAsked = "Python was not asked at this sample";
constexpr const char* kNotSaid = "the program did not report it";

constexpr size_t kFields = std::size(kHostTerms);
constexpr size_t kResident = 0, kAnonymous = 1, kFile = 2, kShared = 3;  // of these
constexpr std::pair<const char*, HostTerm CgroupMoment::*> kCgroupTerms[] = {
    {"limit_bytes", &CgroupMoment::limit},
    {"cgroup_used_bytes", &CgroupMoment::used},
    {"cgroup_anonymous_bytes", &CgroupMoment::anonymous},
    {"cgroup_file_bytes", &CgroupMoment::file},
    {"cgroup_reclaimable_bytes", &CgroupMoment::reclaimable},
    {"cgroup_shared_bytes", &CgroupMoment::shared},
    {"cgroup_kernel_bytes", &CgroupMoment::kernel},
    {"cgroup_swapped_bytes", &CgroupMoment::swapped},
};
constexpr size_t kCgroupUsed = 1;
constexpr const char* kKernelsMaximum = "peak_resident_bytes";

std::optional<uint64_t> number_of(const HostPoint* point) {
  return point && point->kind == SampledKind::kNumber ? std::optional(point->number) : std::nullopt;
}

void note_resident(uint64_t bytes, uint64_t time_ns, HostProcess* process) {
  if (bytes <= process->most_resident_bytes) return;
  process->most_resident_bytes = bytes, process->most_resident_ns = time_ns;
}

/// What a sample's processes have together.
struct Sums {
  explicit Sums(uint64_t time_ns) : resident{.time_ns = time_ns}, proportional{.time_ns = time_ns} {}

  void add(uint64_t bytes, std::optional<uint64_t> pss) {
    // A walk takes a while, in which more pages may come.
    add_to(std::max(bytes, pss.value_or(0)), &resident);
    if (pss) add_to(*pss, &proportional);
  }
  void keep_highest(std::optional<HostSum>* of_resident,
                    std::optional<HostSum>* of_proportional) const {
    keep(resident, of_resident);
    if (proportional.processes == resident.processes) keep(proportional, of_proportional);
  }
  HostSum resident, proportional;

 private:
  static void add_to(uint64_t bytes, HostSum* sum) {
    if (!__builtin_add_overflow(sum->bytes, bytes, &sum->bytes)) ++sum->processes;
  }
  static void keep(const HostSum& sum, std::optional<HostSum>* highest) {
    if (sum.processes == 0) return;
    const uint64_t samples = *highest ? (*highest)->samples + 1 : 1;
    if (!*highest || sum.bytes > (*highest)->bytes) *highest = sum;
    (*highest)->samples = samples;
  }
};

/// Walks once over the samples of one file.
class HostOfFile {
 public:
  HostOfFile(const RecordedSamples& samples, const Tables& tables, const DriverMemories* driver,
             bool hides_names)
      : samples_(samples), tables_(tables), driver_(driver), hides_names_(hides_names) {
    for (size_t i = 0; i < samples.series.size(); ++i) {
      const SampleKey& key = samples.series[i];
      if (key.device != "host" && key.device != "accelerators") continue;
      for (const HostPoint& point : samples.points[i]) changes_.emplace_back(i, &point);
    }
    std::ranges::stable_sort(changes_, {}, [](const auto& change) { return change.second->look; });
  }

  HostRun walk() {
    size_t next = 0;
    for (size_t look = 0; look < samples_.looks.size(); ++look) {
      for (; next < changes_.size() && changes_[next].second->look == look; ++next)
        apply(samples_.series[changes_[next].first], *changes_[next].second);
      take(samples_.looks[look].time_ns);
    }
    out_.host = hides_names_ ? "" : samples_.host;
    out_.run_pid = samples_.run_pid;
    if (!samples_.looks.empty()) {
      out_.last_time_ns = samples_.looks.back().time_ns;
      out_.has_end = samples_.looks.back().cause == SampleCause::kEnd;
    }
    for (auto& [pid, one] : alive_) finish(&one);
    std::ranges::stable_sort(out_.processes, std::greater{}, [](const HostProcess& one) {
      return one.highest.resident.bytes.value_or(0);
    });
    return std::move(out_);
  }
  size_t left_out() const { return left_out_; }

  /// What the driver had pinned of the recorded process with this PID at its time.
  void add_pinned(int64_t pid, HostMoment* out) const {
    if (const auto step = pinned_at(pid, out->time_ns)) {
      out->pinned = HostTerm::of(step->pinned_bytes);
      out->registered = HostTerm::of(step->registered_bytes);
      return;
    }
    out->pinned = out->registered =
        HostTerm::unknown(driver_ ? "no pinned memory of this process was recorded at this moment"
                                  : "the calls of the GPU's driver were not recorded");
  }

 private:
  struct ProcessNow {
    HostProcess out;
    const HostPoint* of[kFields] = {};
    const HostPoint *most_copied = nullptr, *kernels_maximum = nullptr;
    bool is_told = false;
  };

  void apply(const SampleKey& key, const HostPoint& change) {
    const HostPoint* point = change.kind == SampledKind::kGone ? nullptr : &change;
    if (key.device == "accelerators") {
      if (key.field == "devices") {
        const bool is_absent = point && point->kind == SampledKind::kAbsent;
        const std::string why = is_absent ? samples_.texts[point->number] : "";
        has_no_driver_ = why == kNoGpuDriver || why == kNoGpuDriverHere;
      }
      return;
    }
    if (key.pid != 0) return apply_process(key, point);
    for (size_t i = 0; i < std::size(kCgroupTerms); ++i)
      if (key.field == kCgroupTerms[i].first) cgroup_[i] = point;
    if (key.field == "cgroup_limit_hits") count(point, &first_hits_, &out_.limit_hits);
    if (key.field == "cgroup_kills") count(point, &first_kills_, &out_.kills);
  }

  /// The kernel counts since the cgroup was made, we since the run began.
  static void count(const HostPoint* point, std::optional<uint64_t>* first,
                    std::optional<uint64_t>* since) {
    const auto number = number_of(point);
    if (!number) return;
    if (!*first) *first = number;
    *since = *number >= **first ? *number - **first : 0;
  }

  void apply_process(const SampleKey& key, const HostPoint* point) {
    auto at = alive_.find(key.pid);
    if (at == alive_.end()) {
      if (point == nullptr) return;
      if (alive_.size() + out_.processes.size() >= kMostHostProcesses) {
        left_out_ += key.field == kHostTerms[kResident].first ? 1 : 0;
        return;
      }
      at = alive_.emplace(key.pid, ProcessNow{}).first;
      at->second.out.pid = key.pid;
    }
    ProcessNow& now = at->second;
    for (size_t i = 0; i < kFields; ++i)
      if (key.field == kHostTerms[i].first) now.of[i] = point;
    if (key.field == "most_copied_file") now.most_copied = point;
    if (key.field == kKernelsMaximum) now.kernels_maximum = point;
    if (key.field == "parent") {
      if (const auto parent = number_of(point); parent && *parent <= INT32_MAX)
        now.out.parent = static_cast<int64_t>(*parent);
    }
    if (const std::string* text = name_of(point); text && key.field == "program")
      now.out.program = *text;
  }

  /// Null where it is none, or names are hidden.
  const std::string* name_of(const HostPoint* point) const {
    const bool is_told = point && point->kind == SampledKind::kText && !hides_names_;
    return is_told ? &samples_.texts[point->number] : nullptr;
  }

  HostTerm term(const HostPoint* point, const char* why_not) const {
    if (point == nullptr) return HostTerm::unknown(why_not);
    if (point->kind == SampledKind::kNumber) return HostTerm::of(point->number);
    return HostTerm::unknown(samples_.texts[point->number]);
  }

  /// Nothing where it is unknown.
  std::optional<DriverHost::Step> pinned_at(int64_t pid, uint64_t time_ns) const {
    if (driver_ != nullptr) {
      for (const DriverHost& host : driver_->hosts) {
        const Process& process = tables_.processes[host.process];
        if (process.pid != pid || process.host != samples_.host) continue;
        const auto later =
            std::ranges::upper_bound(host.steps, time_ns, {}, &DriverHost::Step::time_ns);
        if (later == host.steps.end() && host.has_more_steps) break;
        return later == host.steps.begin() ? DriverHost::Step{} : *(later - 1);
      }
    }
    return has_no_driver_ ? std::optional(DriverHost::Step{}) : std::nullopt;
  }

  HostMoment moment(const ProcessNow& now, uint64_t time_ns) const {
    HostMoment out;
    out.time_ns = time_ns;
    for (size_t i = 0; i < kFields; ++i)
      out.*kHostTerms[i].second = term(now.of[i], i < kFirstOfWalk ? kNotTold : kNotWalked);
    if (const std::string* file = name_of(now.most_copied)) out.most_copied_file = *file;
    out.malloc_live = out.malloc_kept = HostTerm::unknown(kNotAsked);
    out.python_arenas = HostTerm::unknown(kArenasNotAsked);
    add_pinned(now.out.pid, &out);
    return out;
  }

  void take(uint64_t time_ns) {
    Sums all(time_ns), compiling(time_ns);
    HostLevel level{.time_ns = time_ns, .anonymous = 0, .file = 0, .shared = 0, .pinned = 0};
    for (auto at = alive_.begin(); at != alive_.end();) {
      ProcessNow& now = at->second;
      const auto bytes = number_of(now.of[kResident]);
      if (now.of[kResident] == nullptr && now.is_told) {  // it has ended
        finish(&now);
        at = alive_.erase(at);
        continue;
      }
      if (bytes) {
        const auto pss = number_of(now.of[kFirstOfWalk]);
        all.add(*bytes, pss);
        if (now.out.program.ends_with(kCompileWorker)) compiling.add(*bytes, pss);
        add(time_ns, *bytes, pss.has_value(), &now);
        add_to_level(now, &level);
      }
      ++at;
    }
    if (all.resident.processes != 0) out_.last_sample_with_processes_ns = time_ns;
    all.keep_highest(&out_.highest_resident, &out_.highest_proportional);
    compiling.keep_highest(&out_.compile_workers, &out_.compile_workers_proportional);
    level.cgroup = number_of(cgroup_[kCgroupUsed]);
    if (all.resident.processes != 0) out_.levels.push_back(level);
    if (const auto used = number_of(cgroup_[kCgroupUsed])) {
      last_cgroup_.time_ns = time_ns;
      for (size_t i = 0; i < std::size(kCgroupTerms); ++i)
        last_cgroup_.*kCgroupTerms[i].second = term(cgroup_[i], kNotTold);
      if (!out_.cgroup_highest || *used > *out_.cgroup_highest->used.bytes)
        out_.cgroup_highest = last_cgroup_;
      if (all.resident.processes != 0) out_.cgroup_last = last_cgroup_;
    }
  }

  void add_to_level(const ProcessNow& now, HostLevel* level) const {
    const auto pinned = pinned_at(now.out.pid, level->time_ns);
    for (const auto& [sum, more] : {std::pair(&level->anonymous, number_of(now.of[kAnonymous])),
                                    std::pair(&level->file, number_of(now.of[kFile])),
                                    std::pair(&level->shared, number_of(now.of[kShared])),
                                    std::pair(&level->pinned, pinned ? std::optional(pinned->pinned_bytes)
                                                                     : std::nullopt)}) {
      uint64_t both = 0;
      const bool is_known = *sum && more && !__builtin_add_overflow(**sum, *more, &both);
      *sum = is_known ? std::optional(both) : std::nullopt;
    }
  }

  void add(uint64_t time_ns, uint64_t bytes, bool is_walked, ProcessNow* now) {
    HostProcess& out = now->out;
    if ((out.levels.empty() || out.levels.back().resident != bytes) && levels_ < kMostLevels) {
      ++levels_;
      out.levels.push_back({time_ns, bytes});
    }
    note_resident(std::max(bytes, number_of(now->kernels_maximum).value_or(0)), time_ns, &out);
    if (!now->is_told || bytes > *out.highest.resident.bytes) out.highest = moment(*now, time_ns);
    if (is_walked && (!out.walked || bytes > *out.walked->resident.bytes))
      out.walked = moment(*now, time_ns);
    const auto field = [&](size_t i) { return number_of(now->of[i]); };
    constexpr size_t kPssAnonymous = 6, kPrivateDirty = 10, kCopied = 12;
    if (field(kAnonymous) && field(kPssAnonymous) && field(kPrivateDirty) && walks_ < kMostWalks) {
      ++walks_;
      out.walks.push_back(
          {time_ns, *field(kAnonymous), *field(kPssAnonymous), *field(kPrivateDirty)});
    }
    if (const uint64_t copied = field(kCopied).value_or(0); copied > out.most_copied_file_bytes) {
      out.most_copied_file_bytes = copied;
      if (const std::string* file = name_of(now->most_copied)) out.most_copied_file = *file;
    }
    now->is_told = true;
    now->out.last_resident_bytes = bytes, now->out.last_time_ns = time_ns;
  }

  void finish(ProcessNow* now) {
    if (now->is_told) out_.processes.push_back(std::move(now->out));
  }

  const RecordedSamples& samples_;
  const Tables& tables_;
  const DriverMemories* driver_;
  bool hides_names_;
  std::vector<std::pair<size_t, const HostPoint*>> changes_;  // series, in order of the samples
  std::map<int64_t, ProcessNow> alive_;
  const HostPoint* cgroup_[std::size(kCgroupTerms)] = {};
  CgroupMoment last_cgroup_;
  std::optional<uint64_t> first_hits_, first_kills_;
  bool has_no_driver_ = false;
  size_t walks_ = 0, levels_ = 0, left_out_ = 0;
  HostRun out_;
};

/// `run` writes once a second.
bool is_over(const std::string& path) {
  constexpr time_t kSilent = 30;
  struct stat st;
  return stat(path.c_str(), &st) == 0 && time(nullptr) - st.st_mtime > kSilent;
}

HostTerm said_term(const std::optional<uint64_t>& bytes, const char* why) {
  return bytes ? HostTerm::of(*bytes) : HostTerm::unknown(why);
}

HostMoment said_moment(const MemoryAtLook& memory, uint64_t time_ns) {
  HostMoment said;
  said.time_ns = time_ns;
  said.resident = HostTerm::of(memory.resident_bytes);
  said.anonymous = HostTerm::of(memory.anonymous_bytes);
  said.file = said_term(memory.file_bytes, kNotSaid);
  said.shared = said_term(memory.shared_bytes, kNotSaid);
  constexpr const char* kNoMalloc = "glibc's malloc does not report it (before 2.33)";
  said.malloc_live = said_term(memory.malloc_live_bytes, kNoMalloc);
  said.malloc_kept = said_term(memory.malloc_kept_bytes, kNoMalloc);
  const std::string& why = memory.why_no_python_arenas;
  said.python_arenas = said_term(memory.python_arenas_bytes, why.empty() ? kNotSaid : why.c_str());
  constexpr const char* kNotCounted = "this release of PyTorch counts it wrongly";
  constexpr const char* kNoCache = "PyTorch did not report it: without CUDA it has no such cache";
  said.pinned_used = said_term(memory.pinned_used_bytes,
                               memory.pinned_cache_bytes ? kNotCounted : kNoCache);
  said.pinned_cache = said_term(memory.pinned_cache_bytes, kNoCache);
  return said;
}

/// What processes said of themselves goes to the one with that PID that lived then.
void add_asked(const std::vector<ProcessHolders>& holders, const HostOfFile& file, HostRun* run) {
  for (const ProcessHolders& one : holders) {
    for (HostProcess& process : run->processes) {
      if (process.pid != static_cast<int64_t>(one.pid)) continue;
      for (const HoldersLook& look : one.looks) {
        if (!look.memory) continue;
        process.asked.push_back(said_moment(*look.memory, look.time_ns));
        note_resident(look.memory->resident_bytes, look.time_ns, &process);
        file.add_pinned(process.pid, &process.asked.back());
      }
    }
  }
}

}  // namespace

std::string name_of(const HostProcess& process) {
  const std::string& program = process.program;
  return (program.empty() ? "a process" : program) + " (pid " + std::to_string(process.pid) + ')';
}

std::shared_ptr<const HostMemories> host_memories(const std::vector<RecordedSamples>& samples,
                                                  const Tables& tables,
                                                  const DriverMemories* driver,
                                                  const std::vector<ProcessHolders>* holders,
                                                  bool hides_names) {
  auto out = std::make_shared<HostMemories>();
  for (const RecordedSamples& one : samples) {
    HostOfFile file(one, tables, driver, hides_names);
    HostRun run = file.walk();
    if (run.processes.empty() && !run.cgroup_highest) continue;
    run.is_over = is_over(one.path);
    if (holders) add_asked(*holders, file, &run);
    if (file.left_out() != 0) {
      out->left_out.push_back(one.path + ": host memory of " + std::to_string(file.left_out()) +
                              " processes is left out: too many");
    }
    out->runs.push_back(std::move(run));
  }
  return out->runs.empty() ? nullptr : out;
}

}  // namespace gpumemprof
