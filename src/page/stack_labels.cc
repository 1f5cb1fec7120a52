#include "page/stack_labels.h"

#include <algorithm>
#include <map>

#include "report/user_code.h"
#include "trace/holder_lines.h"

namespace gpumemprof {
namespace {

/// A stack as texts of frames, from its headline on.
struct Surroundings {
  std::vector<std::string> callers, callees;
};

Surroundings surroundings_of(const Tables& tables, uint32_t stack, uint32_t headline) {
  Surroundings out;
  const auto parent = [&](uint32_t node) { return tables.stacks.node(node).parent; };
  for (uint32_t node = stack; node != headline && node != 0; node = parent(node))
    out.callees.push_back(headline_text(tables, node, ""));
  std::ranges::reverse(out.callees);
  for (uint32_t node = headline == 0 ? 0 : parent(headline); node != 0; node = parent(node))
    out.callers.push_back(headline_text(tables, node, ""));
  return out;
}

using Frames = std::vector<std::string> Surroundings::*;

/// Adds to the labels of a group the first frame in which not all agree. False if all do.
bool tell_apart(const std::vector<Surroundings>& all, const std::vector<size_t>& group,
                Frames frames, const char* arrow, std::vector<std::string>* labels) {
  const auto at = [&](size_t i, size_t depth) {
    const std::vector<std::string>& of = all[i].*frames;
    return depth < of.size() ? of[depth] : std::string();
  };
  size_t deepest = 0;
  for (const size_t i : group) deepest = std::max(deepest, (all[i].*frames).size());
  for (size_t depth = 0; depth < deepest; ++depth) {
    const std::string first = at(group[0], depth);
    if (std::ranges::all_of(group, [&](size_t i) { return at(i, depth) == first; })) continue;
    for (const size_t i : group) {
      if (const std::string text = at(i, depth); !text.empty()) (*labels)[i] += arrow + text;
    }
    return true;
  }
  return false;
}

std::vector<std::vector<size_t>> groups_of(const std::vector<std::string>& labels) {
  std::map<std::string_view, std::vector<size_t>> by_label;
  for (size_t i = 0; i < labels.size(); ++i) by_label[labels[i]].push_back(i);
  std::vector<std::vector<size_t>> out;
  for (auto& [label, group] : by_label) {
    if (group.size() > 1) out.push_back(std::move(group));
  }
  return out;
}

}  // namespace

std::vector<std::string> stack_labels(const Tables& tables, std::span<const uint32_t> stacks) {
  std::vector<std::string> labels;
  std::vector<Surroundings> all;
  for (const uint32_t stack : stacks) {
    const uint32_t headline = headline_node(tables, stack);
    labels.push_back(headline_text(tables, headline, ""));
    all.push_back(surroundings_of(tables, stack, headline));
  }
  constexpr int kMostFrames = 2;  // beside the line: more would be nothing to read
  for (int round = 0; round < kMostFrames; ++round) {
    for (const std::vector<size_t>& group : groups_of(labels)) {
      if (!tell_apart(all, group, &Surroundings::callers, " ← ", &labels))
        tell_apart(all, group, &Surroundings::callees, " → ", &labels);
    }
  }
  for (const std::vector<size_t>& group : groups_of(labels)) {
    for (size_t k = 1; k < group.size(); ++k)
      labels[group[k]] += " (" + std::to_string(k + 1) + ")";
  }
  return labels;
}

}  // namespace gpumemprof
