#include "trace/tables.h"

namespace gpumemprof {

StringTable::StringTable() {
  texts_.emplace_back();
  ids_.emplace(texts_[0], 0);
}

uint32_t StringTable::intern(std::string_view text) {
  if (auto it = ids_.find(text); it != ids_.end()) return it->second;
  uint32_t id = static_cast<uint32_t>(texts_.size());
  texts_.push_back(storage_.emplace_back(text));
  ids_.emplace(texts_.back(), id);
  return id;
}

StackTable::StackTable() : nodes_{{0, 0, 0}}, frames_{Frame{}} {
  frame_ids_.emplace(std::pair{uint64_t{0}, 0u}, 0);
}

uint32_t StackTable::intern_frame(Frame frame) {
  std::pair key{uint64_t{frame.file} << 32 | frame.function, frame.line};
  auto [it, added] = frame_ids_.try_emplace(key, static_cast<uint32_t>(frames_.size()));
  if (added) frames_.push_back(frame);
  return it->second;
}

uint32_t StackTable::push(uint32_t parent, uint32_t frame) {
  auto [it, added] =
      children_.try_emplace(uint64_t{parent} << 32 | frame, static_cast<uint32_t>(nodes_.size()));
  if (added) nodes_.push_back({parent, frame, node(parent).depth + 1});
  return it->second;
}

std::vector<std::string> stack_lines(const Tables& tables, uint32_t stack) {
  std::vector<std::string> lines;
  for (; stack != 0; stack = tables.stacks.node(stack).parent) {
    const Frame& frame = tables.stacks.frame(tables.stacks.node(stack).frame);
    std::string line(tables.strings.get(frame.file));
    if (frame.line != 0) line += ':' + std::to_string(frame.line);
    if (!line.empty()) line += ' ';
    lines.push_back(line += tables.strings.get(frame.function));
  }
  return lines;
}

std::string printable_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= ' ' && c <= '~' ? c : '?';
  return out;
}

void add_allocator(const FollowedAllocator& said, std::vector<FollowedAllocator>* allocators) {
  for (FollowedAllocator& known : *allocators) {
    if (known.process != said.process || known.type != said.type || known.index != said.index) {
      continue;
    }
    known.is_followed = known.is_followed && said.is_followed;
    if (known.why_not.empty()) known.why_not = said.why_not;
    if (known.torch_version.empty()) known.torch_version = said.torch_version;
    if (known.settings.empty()) known.settings = said.settings;
    if (known.device_bytes == 0) known.device_bytes = said.device_bytes;
    return;
  }
  allocators->push_back(said);
}

}  // namespace gpumemprof
