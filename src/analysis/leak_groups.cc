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
  for (LeakGroup& group : groups) {
    if (group.lines.size() > 1) group.evidence.module = module_of_most(group.whole, tables);
  }
  return groups;
}

}  // namespace gpumemprof
