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
  said_[{process, mark.address}].push_back({mark.time_ns, mark.text});
  is_sorted_ = false;
}

std::vector<ModuleNames::Said>* ModuleNames::said_of(uint32_t process, uint64_t address) {
  if (!is_sorted_) {
    for (auto& [key, said] : said_) {
      std::stable_sort(said.begin(), said.end(),
                       [](const Said& a, const Said& b) { return a.time_ns < b.time_ns; });
    }
    is_sorted_ = true;
  }
  const auto found = said_.find({process, address});
  return found == said_.end() ? nullptr : &found->second;
}

/// 0 where it is not known. `is_by_time`: at another time it may be another one.
uint32_t ModuleNames::name_at(uint32_t process, uint64_t address, std::optional<uint64_t> time_ns,
                              bool* is_by_time) {
  const std::vector<Said>* said = said_of(process, address);
  *is_by_time = false;
  if (said == nullptr) return 0;
  const uint32_t first = said->front().text;
  const bool is_one =
      std::all_of(said->begin(), said->end(), [&](const Said& one) { return one.text == first; });
  if (is_one) return first;
  *is_by_time = true;
  if (!time_ns) return 0;
  const auto next = std::upper_bound(said->begin(), said->end(), *time_ns,
                                     [](uint64_t t, const Said& one) { return t < one.time_ns; });
  const uint32_t before = next == said->begin() ? 0 : std::prev(next)->text;
  const uint32_t after = next == said->end() ? 0 : next->text;
  // Before it was named it had the name already, unless another one's had not ended.
  if (before == 0) return after;
  if (next == said->end() || after == before || after == 0) return before;
  return 0;
}

/// The labels are at the inner end of a stack and have no line.
uint32_t ModuleNames::with_name(uint32_t process, uint32_t stack, std::optional<uint64_t> time_ns,
                                Tables* tables, bool* is_by_time) {
  *is_by_time = false;
  std::vector<uint32_t> inner;  // frames inside the one that names the module
  for (uint32_t node = stack; node != 0; node = tables->stacks.node(node).parent) {
    const StackTable::Node here = tables->stacks.node(node);
    const Frame frame = tables->stacks.frame(here.frame);
    if (frame.line != 0) return stack;
    if (tables->strings.get(frame.file) != kModuleFile) {
      inner.push_back(here.frame);
      continue;
    }
    const ModuleLabel label = parse_module_label(tables->strings.get(frame.function));
    if (label.address == 0) return stack;
    uint32_t text = name_at(process, label.address, time_ns, is_by_time);
    if (text == 0) text = tables->strings.intern(std::string(label.class_name));
    uint32_t out =
        tables->stacks.push(here.parent, tables->stacks.intern_frame({frame.file, text, 0}));
    for (size_t i = inner.size(); i-- > 0;) out = tables->stacks.push(out, inner[i]);
    return out;
  }
  return stack;
}

uint32_t ModuleNames::lookup(uint32_t process, uint32_t stack, std::optional<uint64_t> time_ns,
                             Tables* tables) {
  if (process >= known_.size()) known_.resize(size_t{process} + 1);
  std::vector<Known>& known = known_[process];
  if (stack >= known.size())
    known.resize(std::max<size_t>(tables->stacks.stack_count(), stack + 1));
  const uint32_t seen = known[stack].stack;
  if (seen < Known::kByTime) return seen;
  bool is_by_time = false;
  const uint32_t out = with_name(process, stack, time_ns, tables, &is_by_time);
  known[stack].stack = is_by_time ? Known::kByTime : out;
  return out;
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
