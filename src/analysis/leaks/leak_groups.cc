#include "analysis/leaks/leak_groups.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "analysis/pass/layer_work.h"
#include "analysis/statistics/statistics.h"
#include "trace/own_code.h"

namespace gpumemprof {
namespace {

/// Attributes of the objects in one list have one holder: what grows is the list.
std::string_view holder_of(const LeakEvidence& evidence) {
  if (!evidence.holder) return {};
  const TensorHolder& holder = *evidence.holder;
  const bool is_entry = !holder.container.empty() && !evidence.grows_one_block;
  return is_entry ? holder.container : holder.path;
}

/// Lines that have the same are one bug.
using Bug = std::tuple<uint32_t, uint16_t, bool, std::string_view, std::string_view>;

Bug bug_of(const Leak& leak, const LeakEvidence& evidence, const LeakName& name) {
  return {leak.process, leak.device, leak.is_after_steps, name.name, holder_of(evidence)};
}

bool is_unknown(const LeakEvidence& evidence, const LeakName& name) {
  return !evidence.holder && std::string_view(name.name) == kGrowth;
}

void add(const Leak& line, Leak* whole) {
  whole->stacks.insert(whole->stacks.end(), line.stacks.begin(), line.stacks.end());
  whole->others.insert(whole->others.end(), line.others.begin(), line.others.end());
  whole->bytes_a_step += line.bytes_a_step;
  whole->survivors_a_step += line.survivors_a_step;
  whole->live_bytes += line.live_bytes;
  whole->steps = std::max(whole->steps, line.steps);
  whole->grown_bytes = grown_in_steps(*whole);
}

/// Whether nearly all rises of both are in the same steps, and these are not most steps, in which any
/// two may meet.
bool rise_together(const Leak& a, const Leak& b) {
  constexpr size_t kOf = 10, kLeast = 8;
  constexpr uint64_t kApart = 1;
  const std::vector<uint64_t> &of_a = a.most().rise_steps, &of_b = b.most().rise_steps;
  if (of_a.empty() || of_b.empty() || of_a.back() - of_a.front() < 2 * of_a.size()) return false;
  size_t common = 0, next = 0;
  for (uint64_t step : of_a) {
    while (next < of_b.size() && of_b[next] + kApart < step) ++next;
    common += next < of_b.size() && of_b[next] <= step + kApart;
  }
  return kOf * common >= kLeast * std::max(of_a.size(), of_b.size());
}

/// In each round autograd saved it for what modules made then with a graph.
bool is_saved_for(const LeakGroup& saved, const LeakGroup& made) {
  const LeakEvidence& graph = made.evidence;
  return saved.evidence.is_saved && !graph.without_graph && !graph.in_backward &&
         !graph.in_cache && !graph.grows_one_block &&
         saved.whole.is_after_steps == made.whole.is_after_steps &&
         saved.whole.period_from == made.whole.period_from;
}

/// What may join does so with the first group of its process and device that takes lines and that it
/// belongs to.
void join(std::vector<LeakGroup>* groups, auto may_join, auto takes, auto belongs,
          uint64_t* steps) {
  std::map<std::pair<uint32_t, uint16_t>, std::vector<size_t>> takers;  // by process, device
  for (size_t i = 0; i < groups->size(); ++i) {
    const LeakGroup& group = (*groups)[i];
    if (may_join(group) || !takes(group)) continue;
    takers[{group.whole.process, group.whole.device}].push_back(i);
  }
  if (takers.empty()) return;
  std::vector<bool> has_joined(groups->size());
  for (size_t i = 0; i < groups->size(); ++i) {
    const LeakGroup& other = (*groups)[i];
    const auto near = takers.find({other.whole.process, other.whole.device});
    if (near == takers.end() || !may_join(other)) continue;
    for (const size_t at : near->second) {
      LeakGroup& known = (*groups)[at];
      ++*steps;
      if (!belongs(other, known)) continue;
      known.lines.insert(known.lines.end(), other.lines.begin(), other.lines.end());
      add(other.whole, &known.whole);
      has_joined[i] = true;
      break;
    }
  }
  erase_marked(has_joined, groups);
}

/// A graph keeps inputs and targets, too, which no module made: these lines have no name of their
/// own, but were saved for it or rise in the same steps.
void join_what_graphs_keep(std::vector<LeakGroup>* groups, uint64_t* steps) {
  const auto takes = [](const LeakGroup& group) {
    return !group.evidence.holder && group.evidence.in_module;
  };
  const auto belongs = [](const LeakGroup& unknown, const LeakGroup& known) {
    return !unknown.evidence.without_graph &&
           (is_saved_for(unknown, known) || rise_together(unknown.whole, known.whole));
  };
  const auto may_join = [](const LeakGroup& group) {
    return is_unknown(group.evidence, *group.name);
  };
  join(groups, may_join, takes, belongs, steps);
}

/// More than half of it are variables, or what operations of a graph made that have no line of the
/// program's.
bool is_of_functions(const LeakGroup& group, const Tables& tables, WorkReader* reader) {
  double bytes_a_step = 0;
  for (const LeakStack& one : group.whole.stacks) {
    const auto [work, where] = stack_work_of(tables, one.stack, reader);
    const bool is_variable = where.part == "parameters" || where.part == "variable handles" ||
                             where.part == phase_name(Phase::kOptimizer);
    const bool is_of_graph =
        work.mode == ExecutionMode::kGraph && own_node(tables, one.stack) == 0;
    if (is_variable || is_of_graph) bytes_a_step += one.growth.bytes_a_step;
  }
  return 2 * bytes_a_step > group.whole.bytes_a_step;
}

/// The trace of a function keeps the variables of the model that it was traced for, each of which was
/// made by a kernel of its own.
void join_what_traces_keep(std::vector<LeakGroup>* groups, const Tables& tables, uint64_t* steps) {
  WorkReader reader(tables);
  const auto takes = [](const LeakGroup& group) { return group.evidence.in_tracing; };
  const auto may_join = [](const LeakGroup& group) {
    return is_unknown(group.evidence, *group.name) ||
           (group.evidence.is_of_kernels && !group.evidence.in_tracing);
  };
  const auto belongs = [&](const LeakGroup& other, const LeakGroup& known) {
    return other.whole.is_after_steps == known.whole.is_after_steps &&
           (other.evidence.is_of_kernels || is_of_functions(other, tables, &reader));
  };
  join(groups, may_join, takes, belongs, steps);
}

}  // namespace

std::vector<LeakGroup> group_leaks(const std::vector<Leak>& leaks, const Tables& tables,
                                   const HolderStacks& holders, const ToldOfStack& told_of,
                                   uint64_t* steps) {
  uint64_t uncounted = 0;
  if (!steps) steps = &uncounted;
  const AllLeaks all(leaks, tables, told_of);
  std::vector<LeakGroup> groups;
  std::map<Bug, size_t> group_of;
  for (const Leak& leak : leaks) {
    LeakEvidence evidence = evidence_of(leak, all, tables, holders, told_of);
    const LeakName& name = name_leak(evidence);
    ++*steps;
    std::vector<uint32_t> caches;
    if (is_all_kv_cache(name, evidence)) {
      for (const LeakStack& stack : leak.stacks) caches.push_back(stack.stack);
    }
    if (!is_unknown(evidence, name)) {
      const auto [known, is_new] =
          group_of.try_emplace(bug_of(leak, evidence, name), groups.size());
      if (!is_new) {
        LeakGroup& group = groups[known->second];
        group.lines.push_back(&leak);
        add(leak, &group.whole);
        const TensorHolder *first = group.evidence.holder, *holder = evidence.holder;
        if (first && first->path != holder->path) group.container = first->container;
        group.evidence.held_blocks += evidence.held_blocks;
        group.evidence.full_bytes += evidence.full_bytes;
        group.caches.insert(group.caches.end(), caches.begin(), caches.end());
        continue;
      }
    }
    groups.push_back({{&leak}, leak, std::move(evidence), &name, std::move(caches), {}});
  }
  join_what_graphs_keep(&groups, steps);
  join_what_traces_keep(&groups, tables, steps);
  for (LeakGroup& group : groups) {
    if (group.lines.size() > 1) group.evidence.module = module_of_most(group.whole, tables);
  }
  return groups;
}

}  // namespace gpumemprof
