#include "analysis/leak_groups.h"

#include <algorithm>
#include <string_view>

namespace gpumemprof {
namespace {

std::string_view holder_of(const LeakEvidence& evidence) {
  return evidence.holder ? std::string_view(evidence.holder->path) : std::string_view();
}

bool belong_together(const LeakGroup& group, const Leak& leak, const LeakEvidence& evidence,
                     const LeakName& name) {
  if (group.whole.process != leak.process || group.whole.device != leak.device) return false;
  if (std::string_view(group.name->name) != name.name) return false;
  if (!group.evidence.holder && std::string_view(name.name) == kGrowth) return false;
  return holder_of(group.evidence) == holder_of(evidence);
}

void add(const Leak& line, Leak* whole) {
  whole->stacks.insert(whole->stacks.end(), line.stacks.begin(), line.stacks.end());
  whole->others.insert(whole->others.end(), line.others.begin(), line.others.end());
  whole->bytes_a_step += line.bytes_a_step;
  whole->survivors_a_step += line.survivors_a_step;
  whole->live_bytes += line.live_bytes;
  whole->grown_bytes += line.grown_bytes;
  whole->steps = std::max(whole->steps, line.steps);
}

bool is_unknown(const LeakGroup& group) {
  return !group.evidence.holder && std::string_view(group.name->name) == kGrowth;
}

/// Whether nearly all rises of both are in the same steps, and these are not most steps, in which any
/// two may meet.
bool rise_together(const Leak& a, const Leak& b) {
  constexpr size_t kOf = 10, kLeast = 8;
  constexpr uint64_t kApart = 1;
  if (a.rise_steps.empty() || b.rise_steps.empty()) return false;
  if (a.rise_steps.back() - a.rise_steps.front() < 2 * a.rise_steps.size()) return false;
  size_t common = 0, next = 0;
  for (uint64_t step : a.rise_steps) {
    while (next < b.rise_steps.size() && b.rise_steps[next] + kApart < step) ++next;
    common += next < b.rise_steps.size() && b.rise_steps[next] <= step + kApart;
  }
  return kOf * common >= kLeast * std::max(a.rise_steps.size(), b.rise_steps.size());
}

/// A graph keeps inputs and targets, too, which no module made: these lines have no name of their
/// own, but rise in the same steps.
void join_by_rises(std::vector<LeakGroup>* groups) {
  for (auto unknown = groups->begin(); unknown != groups->end();) {
    const auto known = std::ranges::find_if(*groups, [&](const LeakGroup& group) {
      return unknown->whole.process == group.whole.process &&
             unknown->whole.device == group.whole.device && is_unknown(*unknown) &&
             !group.evidence.holder && group.evidence.in_module && !is_unknown(group) &&
             rise_together(unknown->whole, group.whole);
    });
    if (known == groups->end()) {
      ++unknown;
      continue;
    }
    known->lines.push_back(unknown->lines.front());
    add(*unknown->lines.front(), &known->whole);
    unknown = groups->erase(unknown);
  }
}

}  // namespace

std::vector<LeakGroup> group_leaks(const std::vector<Leak>& leaks, const Tables& tables,
                                   const HolderStacks& holders) {
  std::vector<LeakGroup> groups;
  for (const Leak& leak : leaks) {
    LeakEvidence evidence = evidence_of(leak, leaks, tables, holders);
    const LeakName& name = name_leak(evidence);
    const auto known = std::ranges::find_if(groups, [&](const LeakGroup& group) {
      return belong_together(group, leak, evidence, name);
    });
    if (known == groups.end()) {
      groups.push_back({{&leak}, leak, std::move(evidence), &name});
      continue;
    }
    known->lines.push_back(&leak);
    add(leak, &known->whole);
    known->evidence.held_blocks += evidence.held_blocks;
  }
  join_by_rises(&groups);
  for (LeakGroup& group : groups) {
    if (group.lines.size() > 1) group.evidence.module = module_of_most(group.whole, tables);
  }
  return groups;
}

}  // namespace gpumemprof
