#include "analysis/leaks/leak_groups.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "analysis/statistics/statistics.h"

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

/// A graph keeps inputs and targets, too, which no module made: these lines have no name of their
/// own, but were saved for it or rise in the same steps.
void join_what_graphs_keep(std::vector<LeakGroup>* groups, uint64_t* steps) {
  std::map<std::pair<uint32_t, uint16_t>, std::vector<size_t>> in_modules;  // by process, device
  for (size_t i = 0; i < groups->size(); ++i) {
    const LeakGroup& group = (*groups)[i];
    const bool may_join = !group.evidence.holder && group.evidence.in_module &&
                          !is_unknown(group.evidence, *group.name);
    if (may_join) in_modules[{group.whole.process, group.whole.device}].push_back(i);
  }
  std::vector<bool> has_joined(groups->size());
  for (size_t i = 0; i < groups->size(); ++i) {
    const LeakGroup& unknown = (*groups)[i];
    const auto near = in_modules.find({unknown.whole.process, unknown.whole.device});
    if (near == in_modules.end() || !is_unknown(unknown.evidence, *unknown.name)) continue;
    if (unknown.evidence.without_graph) continue;
    for (const size_t at : near->second) {
      LeakGroup& known = (*groups)[at];
      ++*steps;
      if (!is_saved_for(unknown, known) && !rise_together(unknown.whole, known.whole)) continue;
      known.lines.push_back(unknown.lines.front());
      add(*unknown.lines.front(), &known.whole);
      has_joined[i] = true;
      break;
    }
  }
  erase_marked(has_joined, groups);
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
  for (LeakGroup& group : groups) {
    if (group.lines.size() > 1) group.evidence.module = module_of_most(group.whole, tables);
  }
  return groups;
}

}  // namespace gpumemprof
