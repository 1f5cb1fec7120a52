// A program that does nothing but allocate and free, at a given rate, for bench/live_load.py:
//   load_writer EVENTS_PER_SECOND SECONDS
// Says what it did in one line of JSON, then holds what it has until its input ends.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>

namespace c10 {
void* alloc_cpu(size_t);
void free_cpu(void*);
}  // namespace c10

namespace {

constexpr uint64_t kLive = 64;  // blocks held at any time
constexpr uint64_t kSizeBytes = 256;
constexpr uint64_t kTurnNs = 2'000'000;

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const uint64_t rate = strtoull(argv[1], nullptr, 10);
  const uint64_t wanted = static_cast<uint64_t>(static_cast<double>(rate) * atof(argv[2]));
  void* live[kLive] = {};
  uint64_t allocs = 0, frees = 0;
  const uint64_t begin_ns = now_ns();
  while (allocs + frees < wanted) {
    // What was not done in time is caught up with, so that the rate holds where there is time at
    // all.
    const uint64_t due = (now_ns() - begin_ns) / 1000 * rate / 1'000'000;
    while (allocs + frees < due && allocs + frees < wanted) {
      void*& slot = live[allocs % kLive];
      if (slot) c10::free_cpu(slot), ++frees;
      slot = c10::alloc_cpu(kSizeBytes), ++allocs;
    }
    timespec pause{0, kTurnNs};
    nanosleep(&pause, nullptr);
  }
  const uint64_t took_ns = now_ns() - begin_ns;
  printf("{\"pid\": %d, \"allocs\": %llu, \"frees\": %llu, \"seconds\": %.3f}\n", getpid(),
         static_cast<unsigned long long>(allocs), static_cast<unsigned long long>(frees),
         static_cast<double>(took_ns) * 1e-9);
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
}
