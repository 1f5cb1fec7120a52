#include "trace/holder_lines.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "base/path_parts.h"
#include "trace/label_frames.h"
#include "trace/own_code.h"

namespace gpumemprof {
namespace {

/// Frames of PyTorch that take the stack or belong to the allocator: the innermost ones of every
/// stack with C++ frames.
bool takes_the_stack(std::string_view function) {
  for (std::string_view part : {"torch::unwind::", "torch::CapturedTraceback::", "gather_with_cpp",
                                "CUDACachingAllocator::"}) {
    if (function.find(part) != std::string_view::npos) return true;
  }
  return false;
}

/// If the stack has Python frames, the innermost of these: a place in source code.
uint32_t innermost_node(const Tables& tables, uint32_t stack) {
  if (tables.stacks.node(stack).depth == 0) return 0;
  if (const uint32_t python = python_node(tables, stack); python != 0) return python;
  const uint32_t code = tables.stacks.find_node(stack, [&](const Frame& frame) {
    // A gradient mode or phase is not a place.
    const std::string_view file = tables.strings.get(frame.file);
    return file != kModeFile && file != kPhaseFile &&
           !takes_the_stack(tables.strings.get(frame.function));
  });
  return code != 0 ? code : stack;
}

/// Without a user frame: the innermost frame of a Python library, otherwise the operator of a
/// C++-only stack (a backward pass), otherwise the innermost frame.
uint32_t library_node(const Tables& tables, uint32_t stack) {
  if (const uint32_t python = python_node(tables, stack); python != 0) return python;
  const uint32_t op = tables.stacks.find_node(stack, [&](const Frame& frame) {
    return tables.strings.get(frame.function).starts_with("at::_ops::");
  });
  return op != 0 ? op : innermost_node(tables, stack);
}

/// As headline_node(); `is_users`: of a file, by its id.
uint32_t headline(const Tables& tables, uint32_t stack, const auto& is_users) {
  if (tables.stacks.node(stack).depth == 0) return 0;
  const uint32_t own = tables.stacks.find_node(stack, [&](const Frame& frame) {
    return frame.line != 0 && is_users(frame.file);
  });
  return own != 0 ? own : library_node(tables, stack);
}

/// The same line of the same function is one group, for all callers.
std::vector<HolderLine> group(const std::vector<Holder>& holders, const Tables& tables,
                              const auto& node_of) {
  std::vector<HolderLine> lines;
  absl::flat_hash_map<uint64_t, size_t> known;
  for (const Holder& holder : holders) {
    const uint32_t node = node_of(holder.stack);
    const uint64_t key = node == 0 ? UINT64_MAX : tables.stacks.node(node).frame;
    auto [at, added] = known.try_emplace(key, lines.size());
    if (added) lines.push_back({.node = node});
    HolderLine& line = lines[at->second];
    line.bytes += holder.bytes;
    line.count += holder.count;
    line.stacks.push_back(holder);
  }
  std::ranges::stable_sort(lines, std::ranges::greater(), &HolderLine::bytes);
  return lines;
}

}  // namespace

uint32_t headline_node(const Tables& tables, uint32_t stack) {
  return headline(tables, stack,
                  [&](uint32_t file) { return is_user_file(tables.strings.get(file)); });
}

HeadlineNodes::HeadlineNodes(const Tables& tables)
    : tables_(tables), owners_(tables.strings.size(), Owner::kUnknown) {}

bool HeadlineNodes::is_users(uint32_t file) {
  if (file >= owners_.size()) return is_user_file(tables_.strings.get(file));
  if (owners_[file] == Owner::kUnknown) {
    const bool is_users = is_user_file(tables_.strings.get(file));
    owners_[file] = is_users ? Owner::kUser : Owner::kOther;
  }
  return owners_[file] == Owner::kUser;
}

uint32_t HeadlineNodes::of(uint32_t stack) {
  return headline(tables_, stack, [&](uint32_t file) { return is_users(file); });
}

std::string short_line(const Tables& tables, uint32_t node) {
  const Frame& frame = tables.stacks.frame_of(node);
  const std::string_view file = tables.strings.get(frame.file);
  if (node == 0 || file.empty()) return "a place without a stack";
  std::string text = cell_name(file);
  if (text.empty()) text = file.substr(file.find_last_of("/\\") + 1);
  if (frame.line != 0) text += ':' + std::to_string(frame.line);
  return text;
}

std::vector<HolderLine> group_by_line(const std::vector<Holder>& holders, const Tables& tables) {
  HeadlineNodes nodes(tables);
  return group(holders, tables, [&](uint32_t stack) { return nodes.of(stack); });
}

std::vector<HolderLine> group_by_innermost(const std::vector<Holder>& holders,
                                           const Tables& tables) {
  return group(holders, tables, [&](uint32_t stack) { return innermost_node(tables, stack); });
}

}  // namespace gpumemprof
