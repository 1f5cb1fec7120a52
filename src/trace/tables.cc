#include "trace/tables.h"

#include <algorithm>
#include <cstring>

namespace gpumemprof {

StringTable::StringTable() { intern({}); }

StringTable::StringTable(const StringTable& other) : StringTable() {
  for (uint32_t id = 1; id < other.size(); ++id) intern(other.get(id));
}

StringTable& StringTable::operator=(StringTable other) {
  storage_ = std::move(other.storage_), texts_ = std::move(other.texts_);
  ids_ = std::move(other.ids_), room_ = other.room_, room_bytes_ = other.room_bytes_;
  return *this;
}

uint32_t StringTable::intern(std::string_view text) {
  const uint32_t id = ids_.find_or_put(ids_.hash(text), size(),
                                       [&](uint32_t known) { return texts_[known] == text; });
  if (id == size()) texts_.push_back(keep(text));
  return id;
}

std::optional<uint32_t> StringTable::find(std::string_view text) const {
  return ids_.find(ids_.hash(text), [&](uint32_t known) { return texts_[known] == text; });
}

std::string_view StringTable::keep(std::string_view text) {
  constexpr size_t kLeast = 1 << 8, kMost = 1 << 16;
  if (text.size() > room_bytes_) {
    room_bytes_ = std::max(text.size(), kLeast << std::min<size_t>(storage_.size(), 8));
    static_assert(kLeast << 8 == kMost);
    room_ = storage_.emplace_back(new char[room_bytes_]).get();
  }
  if (text.empty()) return {};
  memcpy(room_, text.data(), text.size());
  const std::string_view kept(room_, text.size());
  room_ += text.size(), room_bytes_ -= text.size();
  return kept;
}

namespace {

/// The index puts a slot by the bits from 32 on, so four children of a parent whose frames have
/// neighbouring ids are adjacent: consecutive stacks often differ only in the last frame, which
/// then needs no cache line of its own.
uint64_t child_hash(const IdIndex& index, uint32_t parent, uint32_t frame) {
  constexpr uint64_t kNeighbours = 4, kLowest = (kNeighbours - 1) << 32;
  const uint64_t among = uint64_t{frame % kNeighbours} << 32;
  return (index.hash(parent, frame / kNeighbours) & ~kLowest) | among;
}

}  // namespace

StackTable::StackTable() : nodes_{{0, 0, 0}} { intern_frame({}); }

uint32_t StackTable::intern_frame(Frame frame) {
  const uint64_t hash = frame_ids_.hash(uint64_t{frame.file} << 32 | frame.function, frame.line);
  const uint32_t id = frame_ids_.find_or_put(
      hash, frame_count(), [&](uint32_t known) { return frames_[known] == frame; });
  if (id == frame_count()) frames_.push_back(frame);
  return id;
}

uint32_t StackTable::push(uint32_t parent, uint32_t frame) {
  const uint32_t next = stack_count(), first = node(parent).first_child;
  uint32_t id = next;
  if (first != 0) {
    if (nodes_[first].frame == frame) return first;
    id = later_children_.find_or_put(
        child_hash(later_children_, parent, frame), next, [&](uint32_t known) {
          return nodes_[known].parent == parent && nodes_[known].frame == frame;
        });
  } else if (parent < next) {
    nodes_[parent].first_child = next;
  }
  if (id == next) nodes_.push_back({parent, frame, node(parent).depth + 1});
  return id;
}

std::optional<uint32_t> StackTable::find(uint32_t parent, uint32_t frame) const {
  const uint32_t first = node(parent).first_child;
  if (first == 0) return std::nullopt;
  if (nodes_[first].frame == frame) return first;
  return later_children_.find(child_hash(later_children_, parent, frame), [&](uint32_t known) {
    return nodes_[known].parent == parent && nodes_[known].frame == frame;
  });
}

std::vector<std::string> stack_lines(const Tables& tables, uint32_t stack) {
  std::vector<std::string> lines;
  for (; stack != 0; stack = tables.stacks.node(stack).parent) {
    const Frame& frame = tables.stacks.frame_of(stack);
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
