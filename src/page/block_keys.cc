#include "page/block_keys.h"

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/categories/category_sums.h"
#include "page/stack_labels.h"
#include "report/user_code.h"

namespace gpumemprof {
namespace {

constexpr std::pair<std::string_view, Dimension> kDimensions[] = {
    {"none", Dimension::kNone},       {"category", Dimension::kCategory},
    {"module", Dimension::kModule},   {"line", Dimension::kLine},
    {"stack", Dimension::kStack},     {"stream", Dimension::kStream},
    {"process", Dimension::kProcess}, {"thread", Dimension::kThread},
};

}  // namespace

std::optional<Dimension> dimension_of(std::string_view word) {
  for (const auto& [name, dimension] : kDimensions) {
    if (name == word) return dimension;
  }
  return std::nullopt;
}

std::string module_of(const CategoryHolder& kind, uint32_t stack, const Tables& tables) {
  CategoryHolder holder = kind;
  holder.stack = stack;
  return work_of_holder(holder, tables).module;
}

uint32_t BlockKeys::numbered(uint64_t value) {
  if (latest_ < values_.size() && values_[latest_] == value) return latest_;
  const auto [known, is_new] = by_value_.try_emplace(value, count());
  if (is_new) ids_.push_back(std::to_string(value)), values_.push_back(value);
  return latest_ = known->second;
}

uint32_t BlockKeys::named(std::string name) {
  const auto [known, is_new] = by_name_.try_emplace(name, count());
  if (is_new) ids_.push_back(std::move(name));
  return known->second;
}

uint32_t BlockKeys::key(uint32_t block, uint32_t kind) {
  switch (by_) {
    case Dimension::kNone:
      break;
    case Dimension::kCategory:
      return numbered(static_cast<uint64_t>(table_.kinds[kind].category));
    case Dimension::kModule: {
      const uint32_t stack = table_.stack[block];
      const auto [known, is_new] = modules_.try_emplace(uint64_t{stack} << 32 | kind, 0);
      if (is_new) known->second = named(module_of(table_.kinds[kind], stack, tables_));
      return known->second;
    }
    case Dimension::kLine:
    case Dimension::kStack: {
      const uint32_t stack = table_.stack[block];
      if (stack >= by_stack_.size()) by_stack_.resize(stack + 1, kNone);
      uint32_t& known = by_stack_[stack];
      if (known == kNone)
        known = numbered(by_ == Dimension::kStack ? stack : line_of(stack));
      return known;
    }
    case Dimension::kStream:
      return numbered(table_.stream.empty()
                          ? UINT64_MAX
                          : static_cast<uint64_t>(table_.streams[table_.stream[block]]));
    case Dimension::kProcess:
      return numbered(process_);
    case Dimension::kThread:
      return numbered(table_.thread.empty() ? kNone : table_.thread[block]);
  }
  return numbered(0);
}

uint32_t BlockKeys::line_of(uint32_t stack) {
  const uint32_t node = headline_node(tables_, stack);
  const uint32_t line = node == 0 ? kNone : tables_.stacks.node(node).frame;
  node_of_line_.try_emplace(line, node);
  return line;
}

size_t BlockKeys::layer(uint32_t key) const {
  static constexpr std::array kFromBelow = {
      Category::kParameter, Category::kBuffer,  Category::kOptimizerState, Category::kWeightCopy,
      Category::kGradient,  Category::kKvCache, Category::kActivation,     Category::kInput};
  if (by_ != Dimension::kCategory) return 0;
  const auto at = std::ranges::find(kFromBelow, static_cast<Category>(values_[key]));
  return static_cast<size_t>(at - kFromBelow.begin());
}

std::vector<std::string> BlockKeys::labels(std::span<const uint32_t> keys) const {
  if (by_ == Dimension::kStack) {
    std::vector<uint32_t> stacks;
    for (const uint32_t key : keys) stacks.push_back(static_cast<uint32_t>(values_[key]));
    return stack_labels(tables_, stacks);
  }
  std::vector<std::string> out;
  for (const uint32_t key : keys) out.push_back(label(key));
  return out;
}

std::string BlockKeys::label(uint32_t key) const {
  switch (by_) {
    case Dimension::kNone:
      return "all";
    case Dimension::kCategory:
      return category_name(static_cast<Category>(values_[key]));
    case Dimension::kModule:
      return ids_[key].empty() ? "no module known" : printable_ascii(ids_[key]);
    case Dimension::kLine:
      return headline_text(tables_, node_of_line_.at(static_cast<uint32_t>(values_[key])), "");
    case Dimension::kStack:
      break;
    case Dimension::kStream:
      if (table_.stream.empty()) return "not known";
      return values_[key] == 0 ? "default stream" : "stream " + ids_[key];
    case Dimension::kProcess:
      return process_ < tables_.processes.size()
                 ? "process " + std::to_string(tables_.processes[process_].pid)
                 : "not known";
    case Dimension::kThread: {
      const uint64_t thread = values_[key];
      if (thread >= tables_.threads.size()) return "not known";
      const Thread& known = tables_.threads[static_cast<size_t>(thread)];
      return printable_ascii(known.name) + " (" + std::to_string(known.tid) + ")";
    }
  }
  return {};
}

}  // namespace gpumemprof
