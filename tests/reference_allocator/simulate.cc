// The simulator, run as the reference is: the same lists of calls, the same lines printed.
//
//   simulate_allocator calls RELEASE SETTINGS CAPACITY [FRACTION]   reference.cc says what a call
//   is simulate_allocator replay FILE.json [RELEASE]                   under the recorded settings
//   simulate_allocator whatif FILE.json RELEASE SETTINGS CAPACITY   one line of JSON a device
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "allocator/layout.h"
#include "allocator/replay.h"
#include "readers/torch_snapshot/read.h"

using namespace gpumemprof;

namespace {

[[noreturn]] void die(const std::string& why) {
  fprintf(stderr, "simulate_allocator: %s\n", why.c_str());
  exit(2);
}

AllocatorConfig config_of(const char* settings, const Release& release, const char* capacity,
                          const char* fraction) {
  auto config = parse_settings(settings, release);
  if (!config) die(config.error().message);
  if (capacity != nullptr && atoll(capacity) > 0)
    config->capacity_bytes = strtoull(capacity, nullptr, 0);
  if (fraction != nullptr) config->memory_fraction = atof(fraction);
  return *config;
}

AllocatorSnapshot open(const char* path) {
  auto snapshot = read_torch_snapshot(path);
  if (!snapshot) die(snapshot.error().message);
  return *std::move(snapshot);
}

/// The list of calls. record_stream is PyTorch's part outside the simulator: each stream that used
/// a block has a queue of its frees, and an allocation first takes what is done off the fronts.
class Calls {
 public:
  Calls(const AllocatorConfig& config, const Release& release) : simulator_(config, release) {
    simulator_.keep_driver_calls(true);
  }

  void run(const char* line) {
    uint64_t id = 0, a = 0, b = 0;
    sscanf(line + 1, "%" SCNu64 " %" SCNu64 " %" SCNu64, &id, &a, &b);
    switch (line[0]) {
      case 'a':
        allocate(id, a, b);
        break;
      case 'f':
        free(id);
        break;
      case 'u':
        if (live_.contains(id) && stream_of_[id] != a) uses_[id].insert(a);
        break;
      case 'c':
        unready_.erase(id);
        break;
      case 'e':
        simulator_.empty_cache();
        drop_completed();
        break;
      case 'p':
        pool_ = static_cast<uint16_t>(id);
        break;
      case 'q':
        pool_ = 0;
        break;
      case 'x':
        simulator_.release_pool(static_cast<uint16_t>(id));
        break;
      default:
        break;
    }
    print_calls();
  }

  void print_statistics() const {
    const AllocatorStatistics& s = simulator_.statistics();
    printf("{\"peak_reserved\": %" PRIu64 ", \"reserved\": %" PRIu64
           ", \"peak_allocated\": %" PRIu64 ", \"allocated\": %" PRIu64
           ", \"peak_active\": %" PRIu64 ", \"active\": %" PRIu64 ", \"peak_requested\": %" PRIu64
           ", \"segments\": %zu, \"num_alloc_retries\": %" PRIu64 ", \"num_ooms\": %" PRIu64 "}\n",
           s.reserved.peak, s.reserved.current, s.allocated.peak, s.allocated.current,
           s.active.peak, s.active.current, s.requested.peak, segments(simulator_).size(),
           s.num_alloc_retries, s.num_ooms);
  }

 private:
  void allocate(uint64_t id, uint64_t bytes, uint64_t stream) {
    if (pool_ == 0 || simulator_.release().retries_in_pools) complete_what_is_ready();
    const BlockId block = simulator_.malloc({bytes, static_cast<uint16_t>(stream), pool_});
    drop_completed();
    print_calls();
    if (block == kNoBlock) {
      printf("O %" PRIu64 "\n", id);
      return;
    }
    live_[id] = block;
    stream_of_[id] = stream;
    printf("A %" PRIu64 " %" PRIx64 "\n", id, simulator_.block(block).address);
  }

  void free(uint64_t id) {
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    const auto used = uses_.find(id);
    if (used == uses_.end()) {
      simulator_.free_completed(found->second);
    } else {
      simulator_.free_requested(found->second);
      waiting_[id] = {found->second, used->second.size()};
      unready_.insert(id);
      for (uint64_t stream : used->second) queues_[stream].push_back(id);
      uses_.erase(used);
    }
    live_.erase(found);
  }

  void complete_what_is_ready() {
    for (auto& [stream, queue] : queues_) {
      while (!queue.empty() && !unready_.contains(queue.front())) {
        const auto waiting = waiting_.find(queue.front());
        queue.pop_front();
        if (--waiting->second.second > 0) continue;
        simulator_.free_completed(waiting->second.first);
        waiting_.erase(waiting);
      }
    }
  }

  /// A retry or empty_cache waited for all streams.
  void drop_completed() {
    if (waiting_.empty()) return;
    if (simulator_.block(waiting_.begin()->second.first).state !=
        SimulatedBlock::State::kCompletedEarly)
      return;
    for (const auto& [id, waiting] : waiting_) simulator_.free_completed(waiting.first);
    waiting_.clear();
    queues_.clear();
    unready_.clear();
  }

  void print_calls() {
    for (const DriverCall& call : simulator_.driver_calls()) {
      printf("%c %" PRIx64 " %" PRIu64 "\n", "MFPUX"[static_cast<int>(call.kind)], call.address,
             call.size_bytes);
    }
    simulator_.driver_calls().clear();
  }

  Simulator simulator_;
  uint16_t pool_ = 0;
  std::map<uint64_t, BlockId> live_;
  std::map<uint64_t, uint64_t> stream_of_;
  std::map<uint64_t, std::set<uint64_t>> uses_;
  std::map<uint64_t, std::pair<BlockId, size_t>> waiting_;  // and in how many queues
  std::map<uint64_t, std::deque<uint64_t>> queues_;
  std::set<uint64_t> unready_;
};

int calls(char** argv) {
  const auto release = find_release(argv[0]);
  if (!release) die(release.error().message);
  Calls calls(config_of(argv[1], *release, argv[2], argv[2] ? argv[3] : nullptr), *release);
  char line[256];
  while (fgets(line, sizeof line, stdin) != nullptr) calls.run(line);
  calls.print_statistics();
  return 0;
}

int replay(const char* path, const char* release) {
  const AllocatorSnapshot file = open(path);
  for (const AllocatorTrace& trace : file.traces) {
    const ReplayResult r =
        release == nullptr
            ? replay_unknown_release(trace, file.settings, file.info.writer_version_hint)
            : replay_recorded(trace, file.settings, *find_release(release));
    printf("{\"device\": %d, \"release\": \"%s\", \"alloc_addresses\": %" PRIu64
           ", \"matched\": %" PRIu64 ", \"segment_events\": %" PRIu64
           ", \"segment_events_matched\": %" PRIu64 ", \"end_blocks\": %" PRIu64
           ", \"end_blocks_matched\": %" PRIu64 ", \"impossible\": %" PRIu64
           ", \"peak_reserved\": %" PRIu64 ", \"peak_allocated\": %" PRIu64
           ", \"end_reserved\": %" PRIu64 ", \"first_mismatch\": %" PRId64
           ", \"reason\": \"%s\"}\n",
           trace.device, release_name(r.release).c_str(), r.alloc_addresses, r.matched,
           r.segment_events, r.segment_events_matched, r.end_blocks, r.end_blocks_matched,
           r.impossible_events, r.peak_reserved.bytes, r.peak_allocated.bytes, r.end.reserved_bytes,
           r.first_mismatch_event ? static_cast<int64_t>(*r.first_mismatch_event) : -1,
           r.mismatch_reason.c_str());
  }
  return 0;
}

int whatif(char** argv) {
  const AllocatorSnapshot file = open(argv[0]);
  const auto release = find_release(argv[1]);
  if (!release) die(release.error().message);
  for (const AllocatorTrace& trace : file.traces) {
    const WhatIfResult r = what_if(trace, config_of(argv[2], *release, argv[3], argv[4]), *release);
    printf("{\"device\": %d, \"peak_reserved\": %" PRIu64 ", \"end_reserved\": %" PRIu64
           ", \"peak_allocated\": %" PRIu64 ", \"segments\": %" PRIu64
           ", \"num_alloc_retries\": %" PRIu64 ", \"num_ooms\": %" PRIu64
           ", \"first_oom\": %" PRId64 ", \"fragmented_at_peak\": %" PRIu64 "}\n",
           trace.device, r.peak_reserved_bytes, r.end_reserved_bytes, r.peak_allocated_bytes,
           r.segments, r.num_alloc_retries, r.num_ooms,
           r.first_oom_event_index ? static_cast<int64_t>(*r.first_oom_event_index) : -1,
           r.fragmented_bytes_at_peak());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 5 && strcmp(argv[1], "calls") == 0) return calls(argv + 2);
  if (argc >= 3 && strcmp(argv[1], "replay") == 0)
    return replay(argv[2], argc > 3 ? argv[3] : nullptr);
  if (argc >= 6 && strcmp(argv[1], "whatif") == 0) return whatif(argv + 2);
  die("calls RELEASE SETTINGS CAPACITY [FRACTION] | replay FILE [RELEASE] | whatif FILE RELEASE "
      "SETTINGS CAPACITY");
}
