#include "recording/module_names.h"

#include <algorithm>
#include <charconv>

#include "trace/label_frames.h"

namespace gpumemprof {

ModuleLabel parse_module_label(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at == text.npos) return {text};
  uint64_t address = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + at + 1, end, address, 16);
  if (error != std::errc() || stop != end) return {text};
  return {text.substr(0, at), address};
}

void ModuleNames::add(uint32_t process, const Mark& mark) {
  names_[{process, mark.address}].said.push_back({mark.time_ns, mark.text});
  is_sorted_ = false;
}

const ModuleNames::Names* ModuleNames::names_of(uint32_t process, uint64_t address) {
  if (!is_sorted_) {
    for (auto& [key, names] : names_) {
      std::ranges::stable_sort(names.said, {}, &Said::time_ns);
      names.is_one = std::ranges::all_of(
          names.said, [&](const Said& one) { return one.text == names.said.front().text; });
    }
    is_sorted_ = true;
  }
  const auto found = names_.find({process, address});
  return found == names_.end() ? nullptr : &found->second;
}

/// 0 where it is not known.
uint32_t ModuleNames::name_at(const Names& names, std::optional<uint64_t> time_ns) {
  const std::vector<Said>& said = names.said;
  if (names.is_one) return said.front().text;
  if (!time_ns) return 0;
  const auto next = std::ranges::upper_bound(said, *time_ns, {}, &Said::time_ns);
  const uint32_t before = next == said.begin() ? 0 : std::prev(next)->text;
  const uint32_t after = next == said.end() ? 0 : next->text;
  // Before it was named it had the name already, unless another one's had not ended.
  if (before == 0) return after;
  if (next == said.end() || after == before || after == 0) return before;
  return 0;
}

/// The labels are at the inner end of a stack and have no line.
ModuleNames::Label ModuleNames::label_of(uint32_t stack, const Tables& tables) {
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const Frame frame = tables.stacks.frame_of(node);
    if (frame.line != 0) return {};
    if (tables.strings.get(frame.file) != kModuleFile) continue;
    const ModuleLabel label = parse_module_label(tables.strings.get(frame.function));
    if (label.address == 0) return {};
    return {node, label.address, label.class_name};
  }
  return {};
}

uint32_t ModuleNames::with_text(uint32_t stack, const Label& label, uint32_t text,
                                Tables* tables) {
  std::vector<uint32_t> inner;  // frames inside the one that names the module
  for (uint32_t node = stack; node != label.node; node = tables->stacks.node(node).parent)
    inner.push_back(tables->stacks.node(node).frame);
  const StackTable::Node here = tables->stacks.node(label.node);
  const uint32_t file = tables->stacks.frame(here.frame).file;
  if (text == 0) text = tables->strings.intern(label.class_name);
  uint32_t out = tables->stacks.push(here.parent, tables->stacks.intern_frame({file, text, 0}));
  for (size_t i = inner.size(); i-- > 0;) out = tables->stacks.push(out, inner[i]);
  return out;
}

uint32_t ModuleNames::lookup(uint32_t process, uint32_t stack, std::optional<uint64_t> time_ns,
                             Tables* tables) {
  if (process >= known_.size()) known_.resize(size_t{process} + 1);
  std::vector<Known>& known = known_[process];
  if (stack >= known.size())
    known.resize(std::max<size_t>(tables->stacks.stack_count(), stack + 1));
  Known& seen = known[stack];
  if (seen.stack == Known::kUnseen) {
    const Label label = label_of(stack, *tables);
    const Names* names = label.node == 0 ? nullptr : names_of(process, label.address);
    if (names != nullptr && !names->is_one) {
      seen.stack = Known::kByTime;
      by_time_[{process, stack}].label = label;
    } else if (label.node == 0) {
      seen.stack = stack;
    } else {
      seen.stack = with_text(stack, label, names ? name_at(*names, time_ns) : 0, tables);
    }
  }
  if (seen.stack != Known::kByTime) return seen.stack;
  ByTime& one = by_time_[{process, stack}];
  const uint32_t text = name_at(*names_of(process, one.label.address), time_ns);
  const auto [with, is_new] = one.with_text.try_emplace(text);
  if (is_new) with->second = with_text(stack, one.label, text, tables);
  return with->second;
}

uint32_t ModuleNames::named(uint32_t process, uint32_t stack, Tables* tables) {
  if (stack == 0 || !may_name_modules(*tables)) return stack;
  return lookup(process, stack, std::nullopt, tables);
}

/// Files of programs without modules pay for nothing but this.
bool ModuleNames::may_name_modules(const Tables& tables) {
  for (; !has_module_frames_ && frames_seen_ < tables.stacks.frame_count(); ++frames_seen_) {
    const Frame& frame = tables.stacks.frame(frames_seen_);
    has_module_frames_ = tables.strings.get(frame.file) == kModuleFile;
  }
  return has_module_frames_;
}

void ModuleNames::apply(EventBatch* batch, Tables* tables) {
  if (!may_name_modules(*tables)) return;
  for (size_t i = 0; i < batch->size(); ++i) {
    const uint32_t stack = batch->stack[i], thread = batch->thread[i];
    if (stack == 0 || thread >= tables->threads.size()) continue;
    batch->stack[i] = lookup(tables->threads[thread].process, stack, batch->time_ns[i], tables);
  }
}

}  // namespace gpumemprof
