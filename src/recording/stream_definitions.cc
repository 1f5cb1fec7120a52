#include "recording/stream_definitions.h"

#include <algorithm>

#include "base/varint.h"
#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

using namespace format;

// Python frames and native frames of one stack have a limit of kMaxFrames each, and a mark where
// some were left out.
constexpr uint32_t kMostFrames = 2 * kMaxFrames + 8;
constexpr int32_t kNotLookedUp = INT32_MIN;

uint8_t fold_bytes(std::string_view bytes) {
  uint64_t folded = 0;
  while (bytes.size() >= 8) {
    uint64_t word;
    memcpy(&word, bytes.data(), 8);
    folded ^= word;
    bytes.remove_prefix(8);
  }
  uint8_t out = fold(folded);
  for (char c : bytes) out ^= static_cast<uint8_t>(c);
  return out;
}

}  // namespace

StreamDefinitions::StreamDefinitions(Tables* tables, ProcessEntries* entries, ModuleList* modules,
                                     uint32_t process)
    : tables_(tables),
      entries_(entries),
      modules_(modules),
      process_(process),
      nodes_{{0, 0, 0}} {
  devices_.fill(kNotLookedUp);
  device_kinds_[kClassCpu] = {process, 0, -1, Layer::kFramework, true};
  device_kinds_[kClassShared] = {process, 0, -1, Layer::kHost, true};
  device_known_[kClassCpu] = device_known_[kClassShared] = true;
}

void StreamDefinitions::take(std::string_view records, uint8_t salt) {
  while (!records.empty()) {
    DefinitionHeader header;
    if (records.size() < sizeof(header)) break;
    memcpy(&header, records.data(), sizeof(header));
    size_t size = sizeof(header) + header.length;
    // A parity that fits makes a damaged length unlikely; without it nothing behind can be found.
    if (size > records.size() || fold_bytes(records.substr(0, size)) != salt) break;
    if (!define(header.type, records.substr(sizeof(header), header.length))) ++damaged_;
    records.remove_prefix(size);
  }
  if (!records.empty()) ++damaged_;
}

bool StreamDefinitions::define(uint8_t type, std::string_view body) {
  ByteReader in(body);
  switch (type) {
    case kDefThread: {
      uint32_t tid = in.number<uint32_t>();
      if (!in.ok()) return false;
      if (has_thread_) return true;
      tid_ = tid, thread_name_ = in.bytes(std::min<size_t>(in.left(), 64)), has_thread_ = true;
      return true;
    }
    case kDefString: {
      uint32_t id = in.number<uint32_t>();
      if (!in.ok() || in.left() > kMaxString) return false;
      const std::string_view text = in.bytes(in.left());
      has_module_frames_ |= text == kModuleFile;
      if (!strings_.find(id)) strings_.insert(id, tables_->strings.intern(text));
      return true;
    }
    case kDefFrame: {
      uint32_t id = in.number<uint32_t>();
      RawFrame frame;
      frame.file = in.number<uint32_t>();
      frame.function = in.number<uint32_t>();
      frame.line = in.number<uint32_t>();
      if (!in.ok()) return false;
      frames_.insert(id, frame);
      return true;
    }
    case kDefNativeFrame: {
      uint32_t id = in.number<uint32_t>();
      RawFrame frame;
      frame.native = true;
      frame.pc = in.number<uint64_t>();
      if (!in.ok()) return false;
      frames_.insert(id, frame);
      return true;
    }
    case kDefStack:
      return define_stack(body);
    case kDefDevice:
      return define_device(body);
    case kDefModule: {
      has_shared_ = true;
      Module module;
      module.start = in.number<uint64_t>();
      module.end = in.number<uint64_t>();
      module.bias = in.number<uint64_t>();
      if (!in.ok() || in.left() > kMaxString || module.start >= module.end) return false;
      module.path = in.bytes(in.left());
      modules_->add(std::move(module));
      return true;
    }
    case kDefPlacement: {
      uint32_t id = in.number<uint32_t>();
      Placement place{in.number<int64_t>(), {0, 0}};
      place.pool.first = in.number<int64_t>(), place.pool.second = in.number<int64_t>();
      if (!in.ok() || id == 0 || id > kMaxPlacement) return false;
      placements_.try_emplace(id, place);
      return true;
    }
    case kDefAllocator:
      has_shared_ = true;
      return define_allocator(body);
    default:
      has_shared_ = true;
      return true;  // a newer minor's
  }
}

bool StreamDefinitions::define_stack(std::string_view body) {
  ByteReader in(body);
  uint32_t id = in.number<uint32_t>();
  uint32_t base = in.number<uint32_t>();
  uint32_t keep = in.number<uint16_t>();
  uint32_t n = in.number<uint16_t>();
  if (!in.ok() || id == 0 || id > kMaxStackId || in.left() < size_t{n} * 4) return false;
  if (keep + n > kMostFrames) return false;
  if (stacks_.find(id)) return true;
  uint32_t node = 0;
  if (keep > 0) {
    const uint32_t* known = stacks_.find(base);
    if (!known || nodes_[*known].depth < keep) return false;
    for (node = *known; nodes_[node].depth > keep;) node = nodes_[node].parent;
  }
  for (uint32_t i = 0; i < n; ++i) {
    nodes_.push_back({node, in.number<uint32_t>(), nodes_[node].depth + 1});
    node = static_cast<uint32_t>(nodes_.size() - 1);
  }
  stacks_.insert(id, node);
  return true;
}

bool StreamDefinitions::define_device(std::string_view body) {
  ByteReader in(body);
  uint8_t device_class = in.number<uint8_t>();
  Device device{process_};
  device.type = in.number<int8_t>();
  device.index = in.number<int8_t>();
  uint8_t layer = in.number<uint8_t>();
  device.size_is_requested = in.number<uint8_t>() != 0;
  if (!in.ok() || device_class >= kDeviceClasses || layer > uint8_t(Layer::kDriver)) return false;
  device.layer = static_cast<Layer>(layer);
  device.name = plain_device_name(in.bytes(std::min<size_t>(in.left(), kMaxDeviceName)));
  if (device_known_[device_class]) return true;
  device_kinds_[device_class] = device;
  device_known_[device_class] = true;
  return true;
}

bool StreamDefinitions::define_allocator(std::string_view body) {
  ByteReader in(body);
  FollowedAllocator said;
  said.process = process_;
  said.type = in.number<int8_t>(), said.index = in.number<int8_t>();
  said.is_followed = in.number<uint8_t>() == 1;
  in.number<uint8_t>();
  said.device_bytes = in.number<uint64_t>();
  const size_t version = in.number<uint16_t>(), settings = in.number<uint16_t>();
  said.torch_version = printable_ascii(in.bytes(version)),
  said.settings = printable_ascii(in.bytes(settings));
  if (!in.ok() || version > kMaxString || settings > kMaxString || in.left() > kMaxString) {
    return false;
  }
  said.why_not = printable_ascii(in.bytes(in.left()));
  entries_->add_allocator(said);
  return true;
}

int32_t StreamDefinitions::device(uint32_t device_class) {
  int32_t& index = devices_[device_class & (kDeviceClasses - 1)];
  if (index != kNotLookedUp) return index;
  Device wanted{process_, -1,
                static_cast<int8_t>(device_class & 127)};  // unknown: its definition is lost
  if (device_known_[device_class]) wanted = device_kinds_[device_class];
  return index = entries_->device(wanted);
}

uint32_t StreamDefinitions::stack(uint32_t raw_id) {
  if (raw_id == 0) return 0;
  if (const uint32_t* known = resolved_.find(raw_id)) return *known;
  const uint32_t* node = stacks_.find(raw_id);
  if (!node) return ++unknown_stacks_, 0;  // not cached: its definition may come with the next scan
  uint32_t stack = resolve(*node);
  resolved_.insert(raw_id, stack);
  return stack;
}

uint32_t StreamDefinitions::string_of(uint32_t id) {
  const uint32_t* known = strings_.find(id);
  return known ? *known : 0;
}

uint32_t StreamDefinitions::frame_of(const RawFrame& frame) {
  if (frame.native) return modules_->frame(frame.pc, tables_);
  return tables_->stacks.intern_frame(
      {string_of(frame.file), string_of(frame.function), frame.line});
}

/// Root to leaf come the Python frames, then the native ones. Where there are both, the native
/// frames up to and including the innermost one of the interpreter only say how Python was run, so
/// they are left out.
uint32_t StreamDefinitions::resolve(uint32_t node) {
  std::vector<const RawFrame*> frames(nodes_[node].depth);
  static const RawFrame kUnknown;
  for (; node != 0; node = nodes_[node].parent) {
    const RawFrame* frame = frames_.find(nodes_[node].frame);
    frames[nodes_[node].depth - 1] = frame ? frame : &kUnknown;
  }
  size_t python = 0;
  while (python < frames.size() && !frames[python]->native) ++python;
  size_t native = python;
  for (size_t i = frames.size(); python > 0 && i > python; --i) {
    if (frames[i - 1]->native && modules_->is_interpreter(frames[i - 1]->pc)) {
      native = i;
      break;
    }
  }
  uint32_t stack = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (i >= python && i < native) continue;
    stack = tables_->stacks.push(stack, frame_of(*frames[i]));
  }
  return stack;
}

}  // namespace gpumemprof
