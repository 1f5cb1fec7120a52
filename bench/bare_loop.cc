// bare_loop FILE: the least that anything which follows a file's events can do, for the price of
// the caches alone; one line of JSON. Of each event one look-up in a table of live blocks, which an
// allocation fills and a free empties, and one in a table of sums by stack. Reading is not timed.
#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <vector>

#include "input/input.h"

namespace {

using namespace gpumemprof;

struct Event {
  uint64_t address;
  uint32_t stack;
  Action action;
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

Result<std::vector<Event>> events_of(const char* path) {
  auto input = open_input({path});
  if (!input) return std::unexpected(input.error());
  auto source = input->events();
  if (!source) return std::unexpected(source.error());
  std::vector<Event> events;
  EventBatch batch;
  for (;;) {
    const Result<bool> more = (*source)->next(&batch);
    if (!more) return std::unexpected(more.error());
    if (!*more) return events;
    for (size_t i = 0; i < batch.size(); ++i) {
      if (batch.action[i] == Action::kAlloc || is_free(batch.action[i]))
        events.push_back({batch.address[i], batch.stack[i], batch.action[i]});
    }
  }
}

/// Seconds; `live` keeps the work from being left out.
double loop(const std::vector<Event>& events, size_t* live) {
  const double begin = cpu_seconds();
  absl::flat_hash_map<uint64_t, uint32_t> blocks;  // by address
  absl::flat_hash_map<uint32_t, uint64_t> stacks;
  for (const Event& event : events) {
    if (event.action == Action::kAlloc) {
      blocks[event.address] = event.stack;
    } else {
      blocks.erase(event.address);
    }
    ++stacks[event.stack];
  }
  *live = blocks.size() + stacks.size();
  return cpu_seconds() - begin;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: bare_loop FILE\n"), 2;
  const auto events = events_of(argv[1]);
  if (!events) return std::fprintf(stderr, "%s\n", events.error().message.c_str()), 1;
  constexpr int kRuns = 3;
  size_t live = 0;
  double least = loop(*events, &live);
  for (int i = 1; i < kRuns; ++i) least = std::min(least, loop(*events, &live));
  std::printf("{\"seconds\": %.6f, \"events\": %zu, \"entries\": %zu}\n", least, events->size(),
              live);
}
