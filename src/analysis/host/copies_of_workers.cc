#include "analysis/host/host_findings.h"

#include <algorithm>
#include <map>

namespace gpumemprof {
namespace {

using Walk = HostProcess::Walk;

uint64_t shared_of(const Walk& walk) {
  return walk.anonymous - std::min(walk.anonymous, walk.private_dirty);
}

uint64_t rise(uint64_t from, uint64_t to) { return to > from ? to - from : 0; }

/// A parent and the workers that live beside each other, walk after walk. A worker that begins
/// later or ends earlier than another has its own pages alone in the sums before and after: what it
/// shares is in those of the others.
class WorkersAtOnce {
 public:
  WorkersAtOnce(const HostProcess& parent, const std::vector<const HostProcess*>& workers)
      : parent_(parent) {
    for (const HostProcess* worker : workers) waiting_.push_back(worker);
    std::ranges::sort(waiting_, {}, [](const auto* one) { return one->walks.front().time_ns; });
  }

  WorkerCopies most() {
    WorkerCopies out;
    for (const Walk& walk : parent_.walks) {
      leave(walk.time_ns);
      const bool is_first = alive_.empty();
      bool has_begun = false;
      for (; next_ < waiting_.size() && waiting_[next_]->walks.front().time_ns <= walk.time_ns; ++next_)
        has_begun |= join(*waiting_[next_], walk, is_first && !has_begun);
      if (alive_.empty()) continue;
      const WorkerCopies now = at(walk);
      if (now.copied_bytes > out.copied_bytes) out = now;
    }
    return out;
  }

 private:
  struct Member {
    const HostProcess* process = nullptr;
    size_t at = 0;  ///< of its walks
    const Walk& first() const { return process->walks.front(); }
    const Walk& now() const { return process->walks[at]; }
  };

  /// At its first walk. Of the first of all, what it shares is in the sum before, as the parent's is.
  bool join(const HostProcess& worker, const Walk& parent, bool is_new_family) {
    if (worker.walks.front().time_ns != parent.time_ns) return false;  // the parent was not walked
    if (is_new_family) {
      first_ = &parent;
      gone_ = {};
      before_ = parent.proportional_anonymous;
    }
    const Walk& walk = worker.walks.front();
    before_ += first_->time_ns == walk.time_ns ? walk.proportional_anonymous : walk.private_dirty;
    gone_.shared_at_first_bytes += shared_of(walk), ++gone_.workers;
    alive_.push_back({&worker});
    return true;
  }

  static void count_copies(const Member& one, uint64_t* bytes, WorkerCopies* out) {
    constexpr uint64_t kSome = 4 << 20;
    const uint64_t fewer = rise(shared_of(one.now()), shared_of(one.first()));
    *bytes += fewer, out->workers_that_copied += fewer >= kSome ? 1 : 0;
  }

  /// Moves all to their walk at this time; who has none has ended.
  void leave(uint64_t time_ns) {
    std::erase_if(alive_, [&](Member& one) {
      const auto& walks = one.process->walks;
      while (one.at + 1 < walks.size() && walks[one.at + 1].time_ns <= time_ns) ++one.at;
      if (one.now().time_ns == time_ns) return false;
      gone_.proportional_rise_bytes += one.now().private_dirty;
      gone_.own_rise_bytes += rise(one.first().anonymous, one.now().anonymous);
      count_copies(one, &gone_.copied_bytes, &gone_);
      return true;
    });
  }

  WorkerCopies at(const Walk& parent) const {
    uint64_t after = parent.proportional_anonymous + gone_.proportional_rise_bytes;
    uint64_t fewer_shared = gone_.copied_bytes;
    WorkerCopies out = gone_;
    out.own_rise_bytes += rise(first_->anonymous, parent.anonymous);
    for (const Member& one : alive_) {
      after += one.now().proportional_anonymous;
      out.own_rise_bytes += rise(one.first().anonymous, one.now().anonymous);
      count_copies(one, &fewer_shared, &out);
    }
    out.proportional_rise_bytes = rise(before_, after);
    out.copied_bytes = std::min(rise(out.own_rise_bytes, out.proportional_rise_bytes), fewer_shared);
    return out;
  }

  const HostProcess& parent_;
  std::vector<const HostProcess*> waiting_;  // in the order in which they begin
  size_t next_ = 0;
  std::vector<Member> alive_;
  const Walk* first_ = nullptr;  // of the parent, with the first of the workers
  uint64_t before_ = 0;
  /// Of those that have ended: their own pages, their rise, and how many fewer they shared. All
  /// that were there: how many, and what they shared at first.
  WorkerCopies gone_;
};

}  // namespace

std::optional<WorkerCopies> copies_of_workers(const std::vector<HostProcess>& processes) {
  std::map<int64_t, size_t> by_pid;
  for (size_t i = 0; i < processes.size(); ++i) by_pid.try_emplace(processes[i].pid, i);
  std::map<size_t, std::vector<const HostProcess*>> workers;  // by parent
  for (const HostProcess& one : processes) {
    const auto parent = by_pid.find(one.parent);
    // Another program has none of its parent's pages.
    if (parent != by_pid.end() && &processes[parent->second] != &one && !one.walks.empty() &&
        processes[parent->second].program == one.program)
      workers[parent->second].push_back(&one);
  }
  std::optional<WorkerCopies> most;
  for (const auto& [parent, children] : workers) {
    WorkerCopies found = WorkersAtOnce(processes[parent], children).most();
    if (found.copied_bytes == 0 || (most && found.copied_bytes <= most->copied_bytes)) continue;
    found.parent = parent;
    most = found;
  }
  return most;
}

}  // namespace gpumemprof
