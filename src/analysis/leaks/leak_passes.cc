#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "analysis/leaks/leak_evidence.h"
#include "analysis/leaks/leak_period.h"

namespace gpumemprof {
namespace {

/// Lengths at random differ by less between two thirds of a run, nearly always.
constexpr double kLarger = 1.1;
constexpr double kLeastShare = 0.25;

struct Allocated {
  uint64_t blocks = 0, bytes = 0;
  void add(const HeldCell& cell) { blocks += cell.allocs, bytes += cell.alloc_bytes; }
  double mean_bytes() const { return static_cast<double>(bytes) / static_cast<double>(blocks); }
};

/// What a table grows by is a block that was made: a row, or all of them together.
bool is_joined_from(const std::vector<double>& made, std::vector<double> grown) {
  constexpr double kAlike = 0.1;  // rows of lengths at random are alike on average
  grown.push_back(std::accumulate(grown.begin(), grown.end(), 0.0));
  return std::ranges::any_of(made, [&](double block) {
    return std::ranges::any_of(
        grown, [&](double bytes) { return std::abs(block - bytes) <= kAlike * bytes; });
  });
}

/// As Passes has it. One stack that grows and nothing made beside it tells nothing.
bool rounds_work_on_more(const ProcessHistory& history, const GrowingStacks& grows) {
  constexpr uint64_t kSmaller = 4;  // a row is a small part of its table
  constexpr uint64_t kOften = 8;    // of lengths at random few are the largest so far
  std::vector<double> made, grown;  // bytes of a block; a round
  const auto is_made = [&](const SiteHistory& site, uint64_t bytes, uint64_t blocks) {
    if (blocks == 0) return;
    made.push_back(static_cast<double>(site.other_block_bytes));
    made.push_back(static_cast<double>(bytes) / static_cast<double>(blocks));
  };
  for (const SiteHistory& site : history.sites) {
    const bool goes_on = 3 * site.last_alloc >= 2 * history.allocs;
    if (site.alloc_count < kLeastRounds || !goes_on) continue;
    if (site.larger_count < kLeastRounds || site.larger_count * kOften < site.alloc_count) {
      is_made(site, site.alloc_bytes, site.alloc_count);
      continue;
    }
    const uint64_t rest = site.alloc_count - site.larger_count;
    const uint64_t rest_bytes = site.alloc_bytes - site.larger_bytes;
    const bool rest_is_small = rest == 0 || rest_bytes * kSmaller < site.largest_bytes * rest;
    const auto known = grows.find(site.stack);
    if (known == grows.end() || !rest_is_small) return true;
    is_made(site, rest_bytes, rest);
    grown.push_back(known->second);
  }
  return (grown.size() > 1 || !made.empty()) && !is_joined_from(made, grown);
}

}  // namespace

Passes passes_of(const ProcessHistory& history, const Period& period, const Tables& tables,
                 const GrowingStacks& grows) {
  Passes out{.rounds_work_on_more = rounds_work_on_more(history, grows)};
  uint64_t bytes = 0, larger_bytes = 0;
  for (const SiteHistory& site : history.sites) {
    const bool is_backward = is_in_backward(tables, site.stack);
    out.have_backward |= is_backward;
    // The first window may begin before the rounds do.
    out.have_backward_in_steps |=
        is_backward && std::ranges::any_of(site.cells, [&](const HeldCell& cell) {
          return cell.allocs != 0 && cell.window > period.first_window;
        });
    if (!is_backward && !is_in_module(tables, site.stack)) continue;
    if (grows.contains(site.stack)) continue;
    Allocated first, last;
    for (const HeldCell& cell : site.cells) {
      if (cell.window < period.first_window || cell.window >= period.done.size()) continue;
      const uint64_t done = period.done[cell.window];
      if (3 * done <= period.steps()) first.add(cell);
      if (3 * done > 2 * period.steps()) last.add(cell);
    }
    if (first.blocks == 0 || last.blocks == 0) continue;
    bytes += last.bytes;
    if (last.mean_bytes() > kLarger * first.mean_bytes()) larger_bytes += last.bytes;
  }
  out.a_size_rises = larger_bytes > 0;
  out.sizes_rise = larger_bytes > 0 &&
                   static_cast<double>(larger_bytes) >= kLeastShare * static_cast<double>(bytes);
  return out;
}

}  // namespace gpumemprof
