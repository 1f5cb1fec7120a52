#include "analysis/leak_passes.h"

#include "analysis/leak_evidence.h"

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

}  // namespace

Passes passes_of(const ProcessHistory& history, const Period& period, const Tables& tables,
                 const absl::flat_hash_set<uint32_t>& grows) {
  Passes out;
  uint64_t bytes = 0, larger_bytes = 0;
  for (const SiteHistory& site : history.sites) {
    const bool is_backward = is_in_backward(tables, site.stack);
    out.have_backward |= is_backward;
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
