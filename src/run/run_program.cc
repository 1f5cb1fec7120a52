#include "run/run_program.h"

#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <memory>

#include "base/size.h"
#include "base/steady_clock.h"
#include "devices/host_memory.h"
#include "devices/oom_kills.h"
#include "devices/proc_text.h"
#include "devices/process_memory.h"
#include "recording/seal.h"
#include "run/arena_keeping.h"
#include "run/child.h"
#include "run/driver.h"
#include "run/folder.h"
#include "run/housekeeper.h"
#include "run/preload.h"
#include "run/program.h"
#include "run/sharing.h"
#include "run/shm_files.h"
#include "run/watcher.h"

namespace gpumemprof {
namespace {

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

int64_t now_unix_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string link_target(const char* path) {
  char target[PATH_MAX];
  ssize_t n = readlink(path, target, sizeof target);
  return n > 0 ? std::string(target, static_cast<size_t>(n)) : std::string();
}

std::string working_directory() {
  char path[PATH_MAX];
  return getcwd(path, sizeof path) ? path : "";
}

std::vector<std::string> own_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; entry && *entry; ++entry) result.emplace_back(*entry);
  return result;
}

void say_at_start(const RunOptions& options, const Program& program) {
  std::string line =
      "gpumemprof: not recorded: " + options.command[0] + " is " + program.unrecordable;
  if (program.children_recordable) line += "; what it starts is";
  line += '\n';
  [[maybe_unused]] ssize_t n = write(STDERR_FILENO, line.data(), line.size());
}

/// What of --max-disk the samples of the machine may take; the events have the rest. 0: no limit.
uint64_t samples_limit(uint64_t max_disk_bytes) {
  constexpr uint64_t kShare = 32, kLeast = 16 << 10, kMost = 64 << 20;
  return max_disk_bytes == 0 ? 0 : std::clamp(max_disk_bytes / kShare, kLeast, kMost);
}
uint64_t events_limit(uint64_t max_disk_bytes) {
  const uint64_t taken = samples_limit(max_disk_bytes);
  return max_disk_bytes > 2 * taken ? max_disk_bytes - taken : max_disk_bytes;
}

/// At which a process stops to record. Sealing takes its time, and the program is never made to
/// wait: what it writes meanwhile lies above the limit until then.
uint64_t process_limit(uint64_t max_disk_bytes) {
  constexpr uint64_t kAhead = 256 << 20;
  return max_disk_bytes == 0 ? 0 : events_limit(max_disk_bytes) + kAhead;
}

/// All that is settled before the program starts.
struct Plan {
  Program program;
  std::string folder;  ///< absolute
  std::string typed_folder;
  std::string library;                ///< of the probe, where it lies
  std::optional<ProbePath> probe;     ///< none: started without
  std::string host_library;           ///< of --host; empty: not wanted
  std::optional<DriverLinks> driver;  ///< none: no driver here, or it is to be left alone
  std::string driver_failure;         ///< why there is none, where that is our fault
  std::vector<std::string> runtimes;  ///< libraries that record HIP, where it is here
  std::vector<std::string> environment;
  std::vector<std::string> files_before;  // other runs', in the same folder
  RunMeta meta;
  std::optional<MetaFile> meta_file;
  std::unique_ptr<ArenaKeeping> arena;  ///< none: the system has no such memory
};

Status choose_probe(Plan* plan) {
  plan->environment = own_environment();
  if (!plan->program.unrecordable.empty() && !plan->program.children_recordable) return {};
  auto library = find_probe(getenv("GPUMEMPROF_PROBE"), link_target("/proc/self/exe"));
  if (!library) return std::unexpected(library.error());
  auto path = ProbePath::make(*library);
  if (!path) return std::unexpected(path.error());
  plan->library = std::move(*library);
  plan->probe.emplace(std::move(*path));
  return {};
}

/// The driver is an extra: where it cannot be had, the rest is recorded.
void choose_driver(const RunOptions& options, Plan* plan) {
  if (!options.record_driver || !plan->probe) return;
  plan->runtimes = runtime_proxies_beside(plan->library);
  if (std::ranges::any_of(plan->runtimes, path_needs_alias)) {
    plan->driver_failure =
        plan->runtimes.front() + ": LD_PRELOAD cannot hold this path: the run time is not recorded";
    plan->runtimes.clear();
  }
  const std::string driver = find_driver();
  if (driver.empty()) return;
  const std::string proxy = driver_proxy_beside(plan->library);
  if (proxy.empty() && getenv("GPUMEMPROF_PROBE")) return;  // another probe than ours, on purpose
  if (proxy.empty()) {
    plan->driver_failure =
        std::string(kDriverProxyLibrary) +
        ": not beside the probe: the CUDA driver is not recorded: install it again";
    return;
  }
  auto links = DriverLinks::make(proxy, driver);
  if (links) {
    plan->driver.emplace(std::move(*links));
  } else {
    plan->driver_failure = links.error().message + ": the CUDA driver is not recorded";
  }
}

/// Asked for by name, so where it is missing nothing is started.
Status choose_host(const RunOptions& options, Plan* plan) {
  if (!options.record_host || !plan->probe) return {};
  plan->host_library = host_library_beside(plan->library);
  if (plan->host_library.empty()) {
    return fail(ErrorCode::kSystem, "--host: " + std::string(kHostLibrary) +
                                        " is not beside the probe: install it again");
  }
  if (path_needs_alias(plan->host_library)) {
    return fail(ErrorCode::kSystem,
                "--host: " + plan->host_library + ": LD_PRELOAD cannot hold this path");
  }
  return {};
}

RunMeta describe(const RunOptions& options, const Plan& plan, int64_t start_unix_ns) {
  RunMeta meta = {.command = options.command,
                  .program = plan.program.path,
                  .gpumemprof_version = options.version,
                  .working_directory = working_directory(),
                  .stacks = options.stacks,
                  .free_stacks = options.free_stacks,
                  .record_cpu = options.record_cpu,
                  .record_host = options.record_host,
                  .max_disk_bytes = options.max_disk_bytes,
                  .start_unix_ns = start_unix_ns,
                  .run_pid = getpid(),
                  .environment = plan.environment};
  if (!plan.program.unrecordable.empty()) {
    meta.not_recorded.push_back({0, options.command[0], "it is " + plan.program.unrecordable});
  }
  return meta;
}

/// The folder comes last: an error before it leaves nothing behind.
Result<Plan> prepare(const RunOptions& options) {
  if (options.command.empty()) return fail(ErrorCode::kUsage, "no command given: put it after --");
  Plan plan;
  const char* search_path = getenv("PATH");
  auto program = inspect_program(options.command[0], search_path ? search_path : kDefaultPath,
                                 current_caller());
  if (!program) return std::unexpected(program.error());
  plan.program = std::move(*program);
  if (auto chosen = choose_probe(&plan); !chosen) return std::unexpected(chosen.error());
  if (auto chosen = choose_host(options, &plan); !chosen) return std::unexpected(chosen.error());
  int64_t start_unix_ns = now_unix_ns();
  plan.typed_folder = options.folder;
  if (plan.typed_folder.empty()) {
    plan.typed_folder =
        default_folder_name(options.command, start_unix_ns / 1'000'000'000, getpid());
  }
  auto folder = prepare_folder(plan.typed_folder);
  if (!folder) return std::unexpected(folder.error());
  plan.folder = std::move(*folder);
  auto may = may_record_into(plan.typed_folder, plan.environment);
  if (options.force || (!may && has_recorded_nothing(plan.folder))) {
    may = remove_recording(plan.folder);
  }
  if (!may) return std::unexpected(may.error());
  plan.files_before = recorded_files(plan.folder);
  plan.meta = describe(options, plan, start_unix_ns);
  auto meta_file = MetaFile::create(plan.folder, plan.meta);
  if (!meta_file) {
    rmdir(plan.folder.c_str());  // only where it is ours and empty
    return std::unexpected(meta_file.error());
  }
  plan.meta_file.emplace(std::move(*meta_file));
  if (plan.probe) {
    choose_driver(options, &plan);
    if (auto arena = ArenaKeeping::start(plan.folder, plan.meta_file->path()))
      plan.arena = std::move(*arena);
    if (!plan.host_library.empty()) plan.runtimes.push_back(plan.host_library);
    plan.environment = probe_environment(plan.environment,
                                         {.library = plan.probe->path(),
                                          .folder = plan.folder,
                                          .arena = plan.arena ? plan.arena->address() : "",
                                          .stacks = options.stacks,
                                          .free_stacks = options.free_stacks,
                                          .record_cpu = options.record_cpu,
                                          .max_disk_bytes = process_limit(options.max_disk_bytes),
                                          .explain_leaks = options.explain_leaks,
                                          .attribution = options.attribution,
                                          .package = find_package(link_target("/proc/self/exe")),
                                          .driver_links = plan.driver ? plan.driver->folder() : "",
                                          .driver = plan.driver ? plan.driver->driver() : "",
                                          .runtimes = plan.runtimes});
  }
  return plan;
}

void note_failure(const Status& status, RunOutcome* outcome) {
  if (!status) outcome->warnings.push_back(status.error().message);
}

/// Everything that processes without a file counted themselves. They know why better than whoever
/// looked at them from outside.
void take_from_arena(ArenaKeeping* arena, RunOutcome* outcome) {
  arena->finish();
  std::erase_if(outcome->not_recorded,
                [&](const NotRecorded& one) { return arena->counts(one.pid); });
  for (NotRecorded& one : arena->take_not_recorded())
    outcome->not_recorded.push_back(std::move(one));
}

/// What other runs of a job record into the same folder meanwhile is not in the arena. Where none
/// could be had, whatever is new counts.
std::vector<std::string> recorded_by_this_run(const Plan& plan) {
  const bool is_shared = meta_files(plan.folder).size() > 1 || !plan.files_before.empty();
  std::vector<std::string> files;
  for (const std::string& name : recorded_files(plan.folder)) {
    if (std::ranges::find(plan.files_before, name) != plan.files_before.end()) continue;
    if (is_shared && plan.arena && !plan.arena->files().contains(name)) continue;
    files.push_back(plan.typed_folder + '/' + name);
  }
  if (!is_shared && !files.empty()) return {plan.typed_folder};
  return files;
}

/// Of the program and of the processes that have a file.
std::vector<int> known_pids(const Plan& plan) {
  std::vector<int> pids = {plan.meta.pid};
  for (const std::string& name : recorded_files(plan.folder)) {
    for (const std::string& process : processes_named_by(name)) {
      const auto pid = whole_number(process.substr(0, process.find('.')));
      if (pid && *pid <= INT32_MAX) pids.push_back(static_cast<int>(*pid));
    }
  }
  return pids;
}

/// The program may have been in a cgroup of its own, of which ours knows nothing.
KernelKills kills_now(OomKills* kills, int wait_status) {
  if (!kills->all()) return {};
  KernelKills out = {.count = kills->new_kills(), .is_of_cgroup = kills->is_of_cgroup()};
  const bool was_killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
  if (const uint64_t elsewhere = kills->kills_of_machine();
      was_killed && *out.count == 0 && elsewhere != 0)
    return {.count = elsewhere, .is_of_cgroup = false};
  if (auto host = read_host_memory(); out.is_of_cgroup && host.limit)
    out.limit_bytes = *host.limit.bytes;
  return out;
}

/// From the start of the program to its end.
Status run_and_watch(Plan* plan, FolderSealer* sealer, RunOutcome* outcome) {
  SignalScope signals;
  OomKills kills;
  const std::vector<ShmFile> shm_before = shm_files();
  // The program begins with what fork() copies of it. getrusage() has also what this process had
  // before exec(), and so what its own parent had.
  const Quantity copied = read_process_memory("/proc", getpid(), false).peak_resident;
  auto pid = launch(plan->program.path, plan->meta.command, plan->environment, signals);
  if (!pid) {
    unlink(plan->meta_file->path().c_str());
    rmdir(plan->folder.c_str());
    return std::unexpected(pid.error());
  }
  release_standard_streams();
  plan->meta.pid = *pid;
  note_failure(plan->meta_file->rewrite(plan->meta), outcome);
  if (plan->arena) plan->arena->begin(*pid);
  DescendantWatcher watcher(*pid, plan->folder);
  auto processes = std::make_shared<WatchedProcesses>();
  processes->set({{*pid, 0}}, false);
  DeviceSampler sampler(
      {.folder = plan->folder, .most_bytes = samples_limit(plan->meta.max_disk_bytes)}, processes);
  {
    Housekeeper housekeeper(sealer, &watcher, processes.get(), plan->meta.max_disk_bytes != 0);
    uint64_t most_resident_bytes = 0;
    outcome->wait_status = wait_for_program(*pid, signals, &most_resident_bytes);
    if (copied && most_resident_bytes > *copied.bytes)
      outcome->most_resident_bytes = most_resident_bytes;
  }
  sampler.stop();
  if (!sampler.problem().empty()) outcome->warnings.push_back(sampler.problem());
  watcher.root_ended();
  watcher.look();
  // Before the sealing, which may take seconds: a second Ctrl-C then costs nothing that is not on
  // disk.
  plan->meta.ended = true;
  plan->meta.end_unix_ns = now_unix_ns();
  plan->meta.end_time_ns = steady_now_ns();
  plan->meta.wait_status = outcome->wait_status;
  plan->meta.kernel_kills = outcome->kernel_kills = kills_now(&kills, outcome->wait_status);
  plan->meta.left_in_shm = left_in_shm(shm_before, known_pids(*plan), [&watcher] {
    watcher.look();
    return watcher.any_at_work() ? Others::kAtWork
           : watcher.any_alive() ? Others::kAtRest
                                 : Others::kNone;
  });
  plan->meta.exits = outcome->exits = watcher.exits();
  outcome->not_recorded = watcher.not_recorded();
  if (plan->arena) take_from_arena(plan->arena.get(), outcome);
  for (const NotRecorded& one : outcome->not_recorded) plan->meta.not_recorded.push_back(one);
  note_failure(plan->meta_file->rewrite(plan->meta), outcome);
  outcome->torch_seen = watcher.torch_seen();
  outcome->allocated_nothing = watcher.allocated_nothing();
  outcome->unreadable_command = watcher.unreadable_command();
  outcome->is_any_alive = watcher.any_alive();
  if (watcher.any_alive() && plan->probe) plan->probe->keep();
  if (watcher.any_alive() && plan->driver) plan->driver->keep();
  return {};
}

/// A folder that has our name, so that nobody else knows of it, and no recording.
void leave_no_empty_folder(const RunOptions& options, const Plan& plan, RunOutcome* outcome) {
  const bool is_of_use = !outcome->recorded.empty() || !outcome->not_recorded.empty() ||
                         !outcome->oom_bundles.empty() || outcome->is_any_alive;
  if (!options.folder.empty() || is_of_use) return;
  std::error_code error;
  const auto all = std::distance(std::filesystem::directory_iterator(plan.folder, error), {});
  if (error || static_cast<size_t>(all) != files_of_recording(plan.folder).size()) return;
  if (!remove_recording(plan.folder)) return;
  if (rmdir(plan.folder.c_str()) == 0) outcome->folder.clear();
}

}  // namespace

Result<RunOutcome> run_program(const RunOptions& options) {
  auto plan = prepare(options);
  if (!plan) return std::unexpected(plan.error());
  RunOutcome outcome = {.folder = plan->typed_folder, .has_recorded_cpu = options.record_cpu};
  if (!plan->program.unrecordable.empty()) {
    outcome.unrecordable = options.command[0] + " is " + plan->program.unrecordable;
    say_at_start(options, plan->program);
  }
  if (!plan->driver_failure.empty()) outcome.warnings.push_back(plan->driver_failure);
  FolderSealer sealer(plan->folder, {.max_disk_bytes = events_limit(options.max_disk_bytes)});
  const std::vector<std::string> older = oom_bundles(plan->folder);
  const std::vector<std::string> older_errors = uncaught_errors(plan->folder);
  if (auto ran = run_and_watch(&*plan, &sealer, &outcome); !ran)
    return std::unexpected(ran.error());
  note_failure(sealer.finish(options.on_finishing), &outcome);
  if (const uint64_t bytes = sealer.totals().above_limit_bytes; bytes != 0) {
    outcome.warnings.push_back("--max-disk is too small: what is live at the end and the names alone take " +
                               format_bytes(bytes) + "; leaks and types of memory may be unknown");
  }
  if (plan->arena) plan->arena->release();
  outcome.recorded = recorded_by_this_run(*plan);
  std::ranges::set_difference(oom_bundles(plan->folder), older,
                              std::back_inserter(outcome.oom_bundles));
  std::ranges::set_difference(uncaught_errors(plan->folder), older_errors,
                              std::back_inserter(outcome.uncaught));
  leave_no_empty_folder(options, *plan, &outcome);
  if (!outcome.folder.empty()) outcome.meta_path = plan->meta_file->path();
  return outcome;
}

std::string why_nothing_was_recorded(const RunOutcome& outcome, bool tells_of_host) {
  if (!outcome.not_recorded.empty()) {
    const NotRecorded& first = outcome.not_recorded[0];
    std::string text =
        "pid " + std::to_string(first.pid) + " (" + first.command + "): " + first.reason;
    const std::string lost = lost_text(first.processes, first.lost_events, first.lost_bytes);
    if (!lost.empty()) text += ": " + lost;
    size_t others = outcome.not_recorded.size() - 1;
    return others == 0 ? text : text + "; and " + std::to_string(others) + " more in meta.json";
  }
  if (!outcome.unrecordable.empty()) return outcome.unrecordable;
  if (outcome.allocated_nothing && !outcome.has_recorded_cpu)
    return "no tensor was allocated on an accelerator; --no-cpu records no others";
  if (outcome.allocated_nothing) return "PyTorch was loaded and no tensor was allocated";
  if (outcome.torch_seen)
    return "PyTorch, TensorFlow or JAX was loaded, but no tensor was recorded: none was allocated, "
           "or the library does not call its allocator through a table (-Bsymbolic or static "
           "build)";
  if (!outcome.unreadable_command.empty()) {
    return "no process loaded PyTorch, TensorFlow or JAX; '" + outcome.unreadable_command +
           "' runs as another user and could not be examined";
  }
  const char* more = "; run --host records blocks of malloc and maps of 64 KiB and more";
  return std::string("no process loaded PyTorch, TensorFlow or JAX") + (tells_of_host ? more : "");
}

}  // namespace gpumemprof
