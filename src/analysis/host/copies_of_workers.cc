#include "analysis/host/copies_of_workers.h"

#include <algorithm>
#include <map>

namespace gpumemprof {
namespace {

using Walk = HostProcess::Walk;

uint64_t shared_of(const Walk& walk) {
  return walk.anonymous - std::min(walk.anonymous, walk.private_dirty);
}

uint64_t rise(uint64_t from, uint64_t to) { return to > from ? to - from : 0; }

const Walk* walk_at(const HostProcess& process, uint64_t time_ns) {
  const auto at = std::ranges::lower_bound(process.walks, time_ns, {}, &Walk::time_ns);
  return at != process.walks.end() && at->time_ns == time_ns ? &*at : nullptr;
}

/// Of these processes, the parent first, between two walks that have all of them.
std::optional<WorkerCopies> between(const std::vector<const HostProcess*>& family, uint64_t first_ns,
                                    uint64_t later_ns) {
  WorkerCopies out{.workers = family.size() - 1};
  uint64_t pss_before = 0, pss_after = 0, fewer_shared = 0;
  for (size_t i = 0; i < family.size(); ++i) {
    const Walk *before = walk_at(*family[i], first_ns), *after = walk_at(*family[i], later_ns);
    if (!before || !after) return std::nullopt;
    pss_before += before->proportional_anonymous, pss_after += after->proportional_anonymous;
    out.own_rise_bytes += rise(before->anonymous, after->anonymous);
    if (i == 0) continue;
    out.shared_at_first_bytes += shared_of(*before);
    fewer_shared += rise(shared_of(*after), shared_of(*before));
  }
  out.proportional_rise_bytes = rise(pss_before, pss_after);
  out.copied_bytes = std::min(rise(out.own_rise_bytes, out.proportional_rise_bytes), fewer_shared);
  return out;
}

}  // namespace

std::optional<WorkerCopies> copies_of_workers(const std::vector<HostProcess>& processes) {
  std::map<int64_t, size_t> by_pid;
  for (size_t i = 0; i < processes.size(); ++i) by_pid.try_emplace(processes[i].pid, i);
  std::map<size_t, std::vector<size_t>> workers;  // by parent
  for (size_t i = 0; i < processes.size(); ++i) {
    const HostProcess& one = processes[i];
    const auto parent = by_pid.find(one.parent);
    // Another program has none of its parent's pages.
    if (parent != by_pid.end() && parent->second != i && !one.walks.empty() &&
        processes[parent->second].program == one.program)
      workers[parent->second].push_back(i);
  }
  std::optional<WorkerCopies> most;
  for (const auto& [parent, children] : workers) {
    // A walk looks at all processes that live. Those that were there at the latest beginning.
    uint64_t first_ns = 0;
    std::vector<const HostProcess*> family = {&processes[parent]};
    for (const size_t child : children)
      first_ns = std::max(first_ns, processes[child].walks.front().time_ns);
    for (const size_t child : children)
      if (walk_at(processes[child], first_ns)) family.push_back(&processes[child]);
    for (const Walk& later : family.back()->walks) {
      if (later.time_ns <= first_ns) continue;
      auto found = between(family, first_ns, later.time_ns);
      if (!found || (most && found->copied_bytes <= most->copied_bytes)) continue;
      found->parent = parent;
      most = *found;
    }
  }
  return most;
}

}  // namespace gpumemprof
