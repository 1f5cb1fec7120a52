#include "analysis/ranks/job_pass.h"

#include <algorithm>
#include <set>

namespace gpumemprof {
namespace {

constexpr size_t kMostOpen = size_t{1} << 14;

}  // namespace

std::optional<uint64_t> end_in_job(const Tables& tables, const Process& process) {
  std::optional<uint64_t> end = process.end_time_ns;
  for (const Process& later : tables.processes) {
    const bool is_next_try = later.rank && process.rank &&
                             later.place.launcher == process.place.launcher &&
                             later.place.restarts > process.place.restarts;
    if (is_next_try) end = std::min(end.value_or(UINT64_MAX), later.first_time_ns);
  }
  return end;
}

JobPass::JobPass(const Tables& tables) : tables_(tables) {
  std::set<uint32_t> ranks;
  for (const Process& process : tables.processes) {
    if (process.rank) ranks.insert(*process.rank);
  }
  ranks_ = ranks.size();
}

void JobPass::meet(uint16_t device) {
  for (size_t i = devices_.size(); i <= device; ++i) {
    OfDevice& one = devices_.emplace_back();
    if (i >= tables_.devices.size()) continue;
    const Device& memory = tables_.devices[i];
    if (memory.process >= tables_.processes.size()) continue;
    const Process& process = tables_.processes[memory.process];
    if (!process.rank || memory.layer == Layer::kDriver || is_host_blocks(memory)) continue;
    one.kind = is_host_memory(memory) ? kHost : kAccelerator;
    if (const auto end = end_in_job(tables_, process))
      ends_.emplace(*end, static_cast<uint16_t>(i));
  }
  if (!ends_.empty()) next_end_ns_ = ends_.begin()->first;
}

void JobPass::end_processes(uint64_t time_ns) {
  while (!ends_.empty() && ends_.begin()->first < time_ns) {
    OfDevice& one = devices_[ends_.begin()->second];
    set_live(&one, &kinds_[one.kind], 0);
    ends_.erase(ends_.begin());
  }
  next_end_ns_ = ends_.empty() ? UINT64_MAX : ends_.begin()->first;
}

void JobPass::begin_batch(const EventBatch& batch) {
  for (const Mark& mark : batch.marks) {
    if (!mark.is_of_collective() || !mark.begins_collective()) continue;
    if (mark.thread >= tables_.threads.size()) continue;
    const uint32_t process = tables_.threads[mark.thread].process;
    const auto rank = process < tables_.processes.size() ? tables_.processes[process].rank
                                                         : std::optional<uint32_t>();
    if (!rank) continue;
    Entered& entered = open_[mark.collective()];
    entered.try_emplace(*rank, mark.time_ns);
    if (entered.size() < ranks_) {
      if (open_.size() > kMostOpen) open_.erase(open_.begin());
      continue;
    }
    end(entered, &sums_);
    open_.erase(mark.collective());
  }
}

void JobPass::end(const Entered& entered, JobSums* sums) {
  std::vector<std::pair<uint64_t, uint32_t>> in_order;
  for (const auto& [rank, time_ns] : entered) in_order.emplace_back(time_ns, rank);
  std::ranges::sort(in_order);
  const uint64_t first = in_order.front().first, last = in_order.back().first;
  if (sums->collectives++ == 0) sums->first_ns = first;
  sums->first_ns = std::min(sums->first_ns, first), sums->last_ns = std::max(sums->last_ns, last);
  const uint64_t waited = last - in_order[(in_order.size() - 1) / 2].first;
  RankArrivals& late = sums->arrivals[in_order.back().second];
  ++late.last, late.waited_for_ns += waited;
  late.longest_ns = std::max(late.longest_ns, waited);
}

JobPeak JobPass::peak_of(Kind kind) const {
  const OfKind& all = kinds_[kind];
  JobPeak out{.bytes = all.peak, .time_ns = all.time_ns};
  for (const OfDevice& one : devices_) {
    const bool is_of_it = one.kind == kind && all.peak != 0;
    out.by_device.push_back(!is_of_it ? 0 : one.epoch == all.epoch ? one.at_peak : one.live);
  }
  return out;
}

JobSums JobPass::finish() const {
  JobSums out = sums_;
  // Of a rank whose file is torn or empty nobody knows what it entered.
  std::set<uint32_t> seen;
  for (const auto& [number, entered] : open_)
    for (const auto& [rank, time_ns] : entered) seen.insert(rank);
  if (out.collectives == 0 && seen.size() > 1) {
    for (const auto& [number, entered] : open_)
      if (entered.size() == seen.size()) end(entered, &out);
  }
  out.host = peak_of(kHost), out.accelerators = peak_of(kAccelerator);
  return out;
}

}  // namespace gpumemprof
