// A few long pieces of work on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace gpumemprof {

/// Calls `work(i)` for each i below `count` on up to `threads` threads, the caller's own among
/// them, and returns when all are done. `work` must not throw and shares nothing unlocked. Where no
/// thread can be started the caller does it all.
template <class Work>
void parallel_for(size_t count, unsigned threads, const Work& work) {
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> helpers;
  for (size_t i = 1; i < std::min<size_t>(threads, count); ++i) {
    try {
      helpers.emplace_back(take);
    } catch (...) {  // the system has no thread left
      break;
    }
  }
  take();
}

}  // namespace gpumemprof
