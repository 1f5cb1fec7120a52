#include "run/device_sampler.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <optional>
#include <thread>

#include "base/host_name.h"
#include "devices/accelerators.h"
#include "devices/proc_text.h"
#include "recording/refusal_watch.h"
#include "recording/samples_writer.h"
#include "run/folder.h"
#include "run/machine_sample.h"

namespace gpumemprof {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kDevicePeriod = milliseconds(1000);
constexpr auto kOomLook = milliseconds(50);  // how late a refused request may be seen
constexpr auto kLeastOomPause = milliseconds(100);
constexpr auto kWaitForDriver = milliseconds(2000);
// A walk through page tables holds a lock of the process's while the kernel looks at a part of them.
constexpr int kWalkCostShare = 50;  // of the CPU time, as of the looks for processes: at most 2 %
constexpr int kNice = 10;

uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

/// This process is the one that samples.
SamplesOrigin own_origin() {
  SamplesOrigin out;
  out.pid = static_cast<uint32_t>(getpid()), out.parent_pid = static_cast<uint32_t>(getppid());
  out.monotonic_ns = clock_ns(CLOCK_MONOTONIC), out.realtime_ns = clock_ns(CLOCK_REALTIME);
  if (const auto stat = parse_stat(read_proc_text("/proc/self/stat")))
    out.start_ticks = stat->id.start_ticks;
  char host[256] = {}, clean[sizeof host];
  if (gethostname(host, sizeof host - 1) != 0) host[0] = 0;
  copy_host_name(host, clean, sizeof clean);
  out.host = clean;
  out.boot_id = read_proc_text("/proc/sys/kernel/random/boot_id");
  out.boot_id.resize(std::min(out.boot_id.size(), out.boot_id.find('\n')));
  return out;
}

}  // namespace

void WatchedProcesses::set(std::vector<ProcessId> processes, bool gpu_driver_seen) {
  std::lock_guard lock(mutex_);
  processes_ = std::move(processes);
  if (gpu_driver_seen) gpu_driver_seen_ = true;
}

std::vector<ProcessId> WatchedProcesses::get() const {
  std::lock_guard lock(mutex_);
  return processes_;
}

struct DeviceSampler::Shared {
  DeviceSamplerOptions options;
  std::shared_ptr<WatchedProcesses> processes;
  std::mutex mutex;
  std::condition_variable wake, ended;
  bool is_stopping = false, has_ended = false;
  std::string problem;
  std::thread thread;

  std::optional<SamplesWriter> writer;
  uint64_t next_walk_ns = 0;
  std::optional<AcceleratorReader> reader;  // made when it is needed: it opens libraries

  void take(SampleCause cause) {
    TakenSample sample;
    sample.time_ns = clock_ns(CLOCK_MONOTONIC), sample.cause = cause;
    add_host(&sample);
    if (!reader && processes->gpu_driver_seen()) reader.emplace(options.devices);
    if (reader)
      add_accelerator_values(reader->read(Depth::kEverything), &sample);
    else
      add_no_accelerators(kNoGpuDriver, &sample);
    if (auto done = writer->add(sample); !done) tell(done.error().message);
  }
  /// With a walk as often as it is cheap enough.
  void add_host(TakenSample* sample) {
    const bool walks = sample->time_ns >= next_walk_ns;
    const uint64_t before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    add_host_values(options.devices.root, processes->get(), walks ? Walk::kPages : Walk::kNo,
                    sample);
    const uint64_t cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
    if (walks) next_walk_ns = sample->time_ns + cost_ns * kWalkCostShare;
  }
  void watch_files(RefusalWatch* refusals) const {
    for (const std::string& name : recorded_files(options.folder))
      refusals->add(options.folder + '/' + name);
  }
  void tell(std::string what) {
    std::lock_guard lock(mutex);
    if (problem.empty()) problem = "machine samples are missing: " + std::move(what);
  }
  bool is_to_stop_by(steady_clock::time_point until) {
    std::unique_lock lock(mutex);
    return wake.wait_until(lock, until, [this] { return is_stopping; });
  }

  void work() {
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
    auto made = SamplesWriter::create(options.folder, own_origin(), options.most_bytes);
    if (!made) return tell(made.error().message);
    writer.emplace(std::move(*made));
    RefusalWatch refusals;
    take(SampleCause::kStart);
    auto next = steady_clock::now() + kDevicePeriod;
    auto next_oom = steady_clock::now();
    while (!is_to_stop_by(std::min(next, steady_clock::now() + kOomLook))) {
      const auto now = steady_clock::now();
      if (now >= next) {
        watch_files(&refusals);
        take(SampleCause::kPeriod);
        // What was late is not caught up with.
        next = std::max(next + kDevicePeriod, steady_clock::now());
      }
      if (now >= next_oom && refusals.any_new()) {
        take(SampleCause::kOom);
        next_oom = steady_clock::now() + kLeastOomPause;
      }
    }
    watch_files(&refusals);
    take(refusals.any_new() ? SampleCause::kOom : SampleCause::kEnd);
  }
};

DeviceSampler::DeviceSampler(DeviceSamplerOptions options,
                             std::shared_ptr<WatchedProcesses> processes)
    : shared_(std::make_shared<Shared>()) {
  shared_->options = std::move(options), shared_->processes = std::move(processes);
  shared_->thread = std::thread([shared = shared_] {
    shared->work();
    std::lock_guard lock(shared->mutex);
    shared->has_ended = true;
    shared->ended.notify_all();
  });
}

void DeviceSampler::stop() {
  if (!shared_->thread.joinable()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->is_stopping = true;
  shared_->wake.notify_all();
  const bool has_ended =
      shared_->ended.wait_for(lock, kWaitForDriver, [this] { return shared_->has_ended; });
  if (!has_ended && shared_->problem.empty())
    shared_->problem = "machine samples are missing: the last one took longer than 2 s";
  lock.unlock();
  if (has_ended)
    shared_->thread.join();
  else
    shared_->thread.detach();
}

std::string DeviceSampler::problem() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->problem;
}

}  // namespace gpumemprof
