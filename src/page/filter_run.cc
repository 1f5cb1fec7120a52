// Which blocks match a filter.
#include <algorithm>

#include "page/block_keys.h"
#include "page/filter.h"
#include "report/user_code.h"

namespace gpumemprof {

/// Evaluates the terms for one table's blocks. Results that depend on a stack or kind are computed
/// once for each.
class FilterRun {
 public:
  FilterRun(const BlockTable& table, const Tables& tables, uint32_t process,
            std::span<const uint32_t> step_ends)
      : table_(table), tables_(tables), process_(process), step_ends_(step_ends) {}

  /// Takes out of `taken` those of which the term does not hold.
  void ask(const Filter::Term& term, std::vector<uint8_t>* taken) {
    nodes_.assign(tables_.stacks.stack_count(), kNotAsked);
    frames_.assign(tables_.stacks.frame_count(), kNotAsked);
    modules_.clear();
    by_number_.clear();
    for (uint32_t b = 0; b < table_.blocks(); ++b) {
      if ((*taken)[b]) (*taken)[b] = holds(term, b) != term.is_not;
    }
  }

 private:
  static constexpr uint8_t kNotAsked = 2;

  static bool compare(Filter::Order order, uint64_t value, uint64_t with) {
    switch (order) {
      case Filter::Order::kMore:
        return value > with;
      case Filter::Order::kLess:
        return value < with;
      case Filter::Order::kAtLeast:
        return value >= with;
      case Filter::Order::kAtMost:
        return value <= with;
      case Filter::Order::kEqual:
        return value == with;
    }
    return false;
  }
  bool frame_matches(const Filter::Term& term, uint32_t id) {
    uint8_t& known = frames_[id];
    if (known != kNotAsked) return known != 0;
    const Frame& frame = tables_.stacks.frame(id);
    std::string text(tables_.strings.get(frame.file).substr(0, kMostSearchedBytes / 2));
    if (frame.line != 0) text += ":" + std::to_string(frame.line);
    text += " ";
    text += tables_.strings.get(frame.function).substr(0, kMostSearchedBytes / 2);
    known = term.matches(text) ? 1 : 0;
    return known != 0;
  }
  /// Any frame; a stack is its caller's stack plus one frame.
  bool stack_matches(const Filter::Term& term, uint32_t stack) {
    path_.clear();
    uint32_t node = stack < nodes_.size() ? stack : 0;
    for (; node != 0 && nodes_[node] == kNotAsked; node = tables_.stacks.node(node).parent)
      path_.push_back(node);
    bool matches = node != 0 && nodes_[node];
    for (auto at = path_.rbegin(); at != path_.rend(); ++at) {
      matches = matches || frame_matches(term, tables_.stacks.node(*at).frame);
      nodes_[*at] = matches;
    }
    return matches;
  }
  template <class Ask>
  bool module_matches(uint32_t block, const Ask& ask) {
    const uint32_t kind = table_.kind_in_end(block);
    const auto [known, is_new] =
        modules_.try_emplace(uint64_t{table_.stack[block]} << 32 | kind, false);
    if (is_new) known->second = ask(module_of(table_.kinds[kind], table_.stack[block], tables_));
    return known->second;
  }
  bool thread_matches(const Filter::Term& term, uint32_t block) {
    const uint32_t thread = table_.thread.empty() ? kNone : table_.thread[block];
    if (thread >= tables_.threads.size()) return false;
    const auto [known, is_new] = by_number_.try_emplace(thread, false);
    if (is_new) {
      const Thread& of = tables_.threads[thread];
      known->second = contains(of.name, term.text) || std::to_string(of.tid) == term.text;
    }
    return known->second;
  }
  bool line_matches(const Filter::Term& term, uint32_t block) {
    const uint32_t stack = table_.stack[block];
    if (headlines_.empty()) headlines_.assign(tables_.stacks.stack_count(), kNone);
    if (stack >= headlines_.size()) return false;
    uint32_t& line = headlines_[stack];
    if (line == kNone) line = headline_node(tables_, stack);
    const auto [known, is_new] = by_number_.try_emplace(line, false);
    if (is_new) known->second = contains(headline_text(tables_, line, ""), term.text);
    return known->second;
  }
  /// In events, or in ends of steps.
  uint64_t lifetime(const Filter::Term& term, uint32_t block) const {
    const uint32_t start = table_.start[block];
    const uint32_t end = std::min(table_.end[block], table_.moments());
    if (!term.is_steps) return end - start;
    const auto ends_before = [&](uint32_t moment) {
      return std::ranges::lower_bound(step_ends_, moment) - step_ends_.begin();
    };
    return static_cast<uint64_t>(ends_before(end) - ends_before(start));
  }
  bool holds(const Filter::Term& term, uint32_t block) {
    switch (term.kind) {
      case Filter::Kind::kText:
        return stack_matches(term, table_.stack[block]) ||
               module_matches(block, [&](const std::string& name) { return term.matches(name); });
      case Filter::Kind::kBytes:
        return compare(term.order, table_.size_bytes[block], term.number);
      case Filter::Kind::kLived:
        return compare(term.order, lifetime(term, block), term.number);
      case Filter::Kind::kCategory: {
        const CategoryHolder& kind = table_.kinds[table_.kind_in_end(block)];
        return begins(category_name(kind.category), term.text);
      }
      case Filter::Kind::kModule:
        return module_matches(block,
                              [&](const std::string& name) { return begins(name, term.text); });
      case Filter::Kind::kLine:
        return line_matches(term, block);
      case Filter::Kind::kStream:
        return !table_.stream.empty() &&
               static_cast<uint64_t>(table_.streams[table_.stream[block]]) == term.number;
      case Filter::Kind::kProcess:
        return process_ < tables_.processes.size() &&
               tables_.processes[process_].pid == term.number;
      case Filter::Kind::kThread:
        return thread_matches(term, block);
    }
    return false;
  }

  const BlockTable& table_;
  const Tables& tables_;
  const uint32_t process_;
  const std::span<const uint32_t> step_ends_;
  std::vector<uint8_t> nodes_, frames_;
  std::vector<uint32_t> path_, headlines_;
  absl::flat_hash_map<uint64_t, bool> modules_;
  absl::flat_hash_map<uint32_t, bool> by_number_;
};

std::vector<uint8_t> Filter::taken(const BlockTable& table, const Tables& tables,
                                   uint32_t process,
                                   std::span<const uint32_t> step_ends) const {
  std::vector<uint8_t> taken(table.blocks(), 1);
  FilterRun run(table, tables, process, step_ends);
  std::vector<uint8_t> on_lines;
  for (const Term& term : terms_) {
    if (term.kind != Kind::kLine || term.is_not) {
      run.ask(term, &taken);
      continue;
    }
    std::vector<uint8_t> on_line(table.blocks(), 1);
    run.ask(term, &on_line);
    on_lines.resize(table.blocks());
    std::ranges::transform(on_lines, on_line, on_lines.begin(), std::bit_or());
  }
  if (!on_lines.empty()) std::ranges::transform(taken, on_lines, taken.begin(), std::bit_and());
  return taken;
}

}  // namespace gpumemprof
