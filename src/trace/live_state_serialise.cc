// A checkpoint's body: LEB128 numbers. Ids and addresses are sorted and stored as differences, so
// that equal states give equal bytes and a million live blocks fit into one chunk.
#include <algorithm>
#include <array>
#include <bit>

#include "base/varint.h"
#include "trace/live_state.h"

namespace gpumemprof {
namespace {

constexpr uint8_t kVersion = 1;
using FigureWords = std::array<uint64_t, sizeof(DeviceFigures) / sizeof(uint64_t)>;

/// A ByteReader that also records the first error and its offset.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : in_(bytes) {}

  uint64_t get() {
    const size_t at = in_.offset();
    const uint64_t value = in_.varint();
    return in_.ok() ? value : damaged(at, "a number is truncated or longer than 64 bits");
  }
  uint64_t get_at_most(uint64_t limit, const char* mistake) {
    const size_t at = in_.offset();
    const uint64_t value = get();
    return value > limit ? damaged(at, mistake) : value;
  }
  /// The number of elements that follow, each of at least `least_bytes`.
  uint64_t get_count(size_t least_bytes) {
    const size_t at = in_.offset();
    const uint64_t count = in_.count(least_bytes);
    return in_.ok() ? count : damaged(at, "a count exceeds the remaining data");
  }
  uint64_t damaged(const char* mistake) { return damaged(in_.offset(), mistake); }
  bool at_end() const { return in_.at_end(); }
  const std::optional<Error>& error() const { return error_; }

 private:
  uint64_t damaged(size_t at, const char* mistake) {
    if (!error_) error_ = Error{ErrorCode::kBadInput, std::string("checkpoint: ") + mistake, at};
    in_.stop();
    return 0;
  }
  ByteReader in_;
  std::optional<Error> error_;
};

std::vector<uint32_t> sorted_stacks(const DeviceState& device) {
  std::vector<uint32_t> stacks;
  stacks.reserve(device.sites.size());
  for (const auto& [stack, site] : device.sites) stacks.push_back(stack);
  std::ranges::sort(stacks);
  return stacks;
}
std::vector<uint64_t> sorted_addresses(const LiveBlocks& blocks) {
  std::vector<uint64_t> addresses;
  addresses.reserve(blocks.size());
  blocks.each_number([&](uint64_t address, uint32_t) { addresses.push_back(address); });
  std::ranges::sort(addresses);
  return addresses;
}

void put_device(std::string* out, const DeviceState& device) {
  for (uint64_t word : std::bit_cast<FigureWords>(static_cast<const DeviceFigures&>(device))) {
    put_varint(out, word);
  }
  put_varint(out, device.sites.size());
  uint64_t previous = 0;
  for (uint32_t stack : sorted_stacks(device)) {
    const Site& site = *device.sites.find(stack);
    put_varint(out, stack - previous);
    previous = stack;
    for (uint64_t value : std::bit_cast<std::array<uint64_t, 7>>(site)) put_varint(out, value);
  }
  put_varint(out, device.blocks.size());
  previous = 0;
  for (uint64_t address : sorted_addresses(device.blocks)) {
    const LiveBlock& block = *device.blocks.find(address);
    put_varint(out, address - previous);
    previous = address;
    put_varint(out, block.size_bytes), put_varint(out, block.time_ns), put_varint(out, block.stack),
        put_varint(out, block.thread);
  }
}

void get_sites(Cursor& in, DeviceState* device) {
  const uint64_t count = in.get_count(8);
  device->sites.reserve(count);
  uint64_t stack = 0, live_bytes = 0, live_count = 0;
  for (uint64_t i = 0; i < count && !in.error(); ++i) {
    stack += in.get_at_most(UINT32_MAX, "a stack id has more than 32 bits");
    std::array<uint64_t, 7> words;
    for (uint64_t& word : words) word = in.get();
    const Site site = std::bit_cast<Site>(words);
    if (stack > UINT32_MAX || site.peak_epoch > device->peak_epoch)
      in.damaged("an impossible stack");
    if (device->sites.find(static_cast<uint32_t>(stack))) in.damaged("a duplicate stack");
    device->sites[static_cast<uint32_t>(stack)] = site;
    live_bytes += site.live_bytes, live_count += site.live_count;
  }
  if (live_bytes != device->live_bytes || live_count != device->live_count) {
    in.damaged("the stacks' bytes do not add up");
  }
}

void get_blocks(Cursor& in, DeviceState* device) {
  const uint64_t count = in.get_count(5);
  device->blocks.reserve(count);
  uint64_t address = 0, live_bytes = 0;
  for (uint64_t i = 0; i < count && !in.error(); ++i) {
    const uint64_t step = in.get();
    if (step > UINT64_MAX - address) in.damaged("an address has more than 64 bits");
    address += step;
    LiveBlock block;
    block.size_bytes = in.get();
    block.time_ns = in.get();
    block.stack =
        static_cast<uint32_t>(in.get_at_most(UINT32_MAX, "a stack id has more than 32 bits"));
    block.thread =
        static_cast<uint32_t>(in.get_at_most(UINT32_MAX, "a thread has more than 32 bits"));
    if (!device->blocks.put(address, block).is_new) in.damaged("a duplicate block");
    if (device->sites.find(block.stack) == nullptr) in.damaged("a block's stack holds nothing");
    live_bytes += block.size_bytes;
  }
  if (live_bytes != device->live_bytes || count != device->live_count) {
    in.damaged("the live blocks do not add up");
  }
}

}  // namespace

void LiveState::serialise(std::string* out) const {
  out->push_back(static_cast<char>(kVersion));
  put_varint(out, event_count_);
  put_varint(out, devices_.size());
  for (const DeviceState& device : devices_) put_device(out, device);
}

Result<LiveState> LiveState::parse(std::string_view bytes) {
  if (bytes.empty()) return fail_at(0, "checkpoint: empty");
  if (static_cast<uint8_t>(bytes[0]) != kVersion) {
    return fail_at(0, "checkpoint: version " + std::to_string(static_cast<uint8_t>(bytes[0])) +
                          " is not known");
  }
  Cursor in(bytes);
  in.get();
  LiveState state;
  state.event_count_ = in.get();
  const uint64_t devices = in.get_count(std::tuple_size_v<FigureWords> + 2);
  if (devices > UINT16_MAX + 1) in.damaged("more than 65,536 devices");
  for (uint64_t i = 0; i < devices && !in.error(); ++i) {
    DeviceState& device = state.devices_.emplace_back();
    FigureWords words;
    for (uint64_t& word : words) word = in.get();
    static_cast<DeviceFigures&>(device) = std::bit_cast<DeviceFigures>(words);
    get_sites(in, &device);
    get_blocks(in, &device);
  }
  if (!in.at_end()) in.damaged("extra bytes");
  if (in.error()) return std::unexpected(*in.error());
  return state;
}

}  // namespace gpumemprof
