#include <algorithm>
#include <limits>

#include "readers/tensorflow_device.h"
#include "readers/xplane/fields.h"
#include "readers/xplane/names.h"
#include "readers/xplane/space.h"
#include "readers/xplane/tensor.h"

namespace gpumemprof::xplane {
namespace {

constexpr size_t kMostDevices = 1024;
constexpr size_t kMostThreads = 1 << 20;

/// A value of a property. Text may stand there itself or be a name of the dictionary.
struct Value {
  Stat stat = Stat::kOther;
  int64_t integer = 0;
  std::string_view text;
};

struct LineHeader {
  int64_t id = 0;
  int64_t start_ns = 0;
  std::string_view name, shown_name;
};

class PlaneReader {
 public:
  PlaneReader(std::string_view plane, uint64_t offset, const Names& names, Space* space)
      : plane_(plane), offset_(offset), names_(names), space_(*space) {}

  Status read(std::string_view host) {
    ProtobufFields fields(plane_, offset_);
    while (fields.next()) {
      Status done;
      if (fields.number() == field::kPlaneProperties) {
        done = read_property(fields.message());
      } else if (fields.number() == field::kLines && names_.has_memory_events()) {
        add_process(host);
        done = read_line(fields.bytes(), fields.value_offset());
      }
      if (!done) return done;
    }
    return fields.status();
  }

 private:
  void add_process(std::string_view host) {
    if (process_ != UINT32_MAX) return;
    process_ = static_cast<uint32_t>(space_.tables.processes.size());
    space_.tables.processes.push_back({.host = std::string(host.substr(0, kMostText)),
                                       .stacks = "none: a profile has operation names only"});
    space_.devices_of_plane.clear();
  }

  Result<Value> read_value(ProtobufFields stat) {
    Value value;
    while (stat.next()) {
      switch (stat.number()) {
        case field::kStatName:
          if (auto known = names_.stats.find(stat.signed_integer()); known != names_.stats.end())
            value.stat = known->second.stat;
          break;
        case field::kUnsigned:
        case field::kSigned:
          value.integer = stat.signed_integer();
          break;
        case field::kText:
          value.text = stat.bytes();
          break;
        case field::kReference:
          if (auto known = names_.stats.find(stat.signed_integer()); known != names_.stats.end())
            value.text = known->second.text;
          break;
        default:
          break;
      }
    }
    if (auto status = stat.status(); !status) return std::unexpected(status.error());
    return value;
  }

  Status read_property(ProtobufFields stat) {
    auto value = read_value(std::move(stat));
    if (!value) return std::unexpected(value.error());
    if (value->stat == Stat::kStart && value->integer > 0)
      space_.started_at_ns = static_cast<uint64_t>(value->integer);
    return {};
  }

  /// The events may stand in front of what they refer to, so a line is walked over twice.
  Status read_line(std::string_view line, uint64_t offset) {
    LineHeader header;
    ProtobufFields fields(line, offset);
    while (fields.next()) {
      if (fields.number() == field::kLineId) header.id = fields.signed_integer();
      if (fields.number() == field::kLineName) header.name = fields.bytes();
      if (fields.number() == field::kShownName) header.shown_name = fields.bytes();
      if (fields.number() == field::kTimestampNs) header.start_ns = fields.signed_integer();
    }
    if (auto status = fields.status(); !status) return status;
    thread_ = UINT32_MAX;
    ProtobufFields events(line, offset);
    while (events.next()) {
      if (events.number() != field::kEvents) continue;
      if (auto done = read_event(events.message(), header); !done) return done;
    }
    return events.status();
  }

  Status read_event(ProtobufFields event, const LineHeader& line) {
    ProtobufFields stats = event;  // a second walk, taken only over what is a memory event
    int64_t name = 0, offset_ps = 0;
    while (event.next()) {
      if (event.number() == field::kEventName) name = event.signed_integer();
      if (event.number() == field::kOffsetPs) offset_ps = event.signed_integer();
    }
    if (auto status = event.status(); !status) return status;
    const bool is_alloc = names_.allocations.contains(name);
    if (!is_alloc && !names_.deallocations.contains(name)) return {};
    return add_row(std::move(stats), line, time_ns(line.start_ns, offset_ps), is_alloc);
  }

  /// Damaged files hold any number: none before the profile's beginning or beyond what fits.
  static uint64_t time_ns(int64_t start_ns, int64_t offset_ps) {
    const __int128 time = __int128{start_ns} + offset_ps / 1000;
    constexpr __int128 kMost = std::numeric_limits<int64_t>::max();
    return static_cast<uint64_t>(std::clamp<__int128>(time, 0, kMost));
  }

  Status add_row(ProtobufFields stats, const LineHeader& line, uint64_t time_ns, bool is_alloc) {
    Row row{.time_ns = time_ns, .is_alloc = is_alloc};
    bool has_address = false, has_size = false;
    std::string_view allocator, operation, shape;
    uint64_t peak = 0;
    int64_t step = kNoStep, data_type = 0;
    while (stats.next()) {
      if (stats.number() != field::kStats) continue;
      auto value = read_value(stats.message());
      if (!value) return std::unexpected(value.error());
      const uint64_t amount = value->integer < 0 ? 0 : static_cast<uint64_t>(value->integer);
      switch (value->stat) {
        case Stat::kAllocator:
          allocator = value->text;
          break;
        case Stat::kOperation:
          operation = value->text;
          break;
        case Stat::kStep:
          step = value->integer;
          break;
        case Stat::kType:
          data_type = value->integer;
          break;
        case Stat::kShape:
          shape = value->text;
          break;
        case Stat::kAddress:
          row.address = static_cast<uint64_t>(value->integer);
          has_address = true;
          break;
        case Stat::kSize:
          row.size_bytes = amount;
          has_size = value->integer >= 0;
          break;
        case Stat::kRequested:
          row.requested_bytes = amount;
          break;
        case Stat::kTotal:
          row.total_bytes = amount;
          row.has_total = value->integer >= 0;
          break;
        case Stat::kPeak:
          peak = amount;
          break;
        default:
          break;
      }
    }
    if (auto status = stats.status(); !status) return status;
    if (!has_address || !has_size) {
      ++space_.incomplete_events;
      return {};
    }
    auto device = device_of(allocator);
    if (!device || !space_.budget.take(sizeof(Row) + kAddressBytes) || !take_thread(line, &row) ||
        !take_operation(operation, tensor_text(data_type, shape), &row)) {
      return fail_at(stats.offset(), device ? kTooMuchMemory : "more than 1,024 allocators");
    }
    // As in recordings: where no operation is known the number is that of none, and frees have
    // none.
    if (is_alloc && row.stack != 0) row.step = step;
    space_.has_steps |= row.step != kNoStep;
    row.device = *device;
    uint64_t& highest = space_.peak_since_start_bytes[*device];
    highest = std::max(highest, peak);
    space_.rows.push_back(row);
    return {};
  }

  std::optional<uint16_t> device_of(std::string_view allocator) {
    auto known = space_.devices_of_plane.find(allocator);
    if (known != space_.devices_of_plane.end()) return known->second;
    Device device = tensorflow_device(allocator);
    device.process = process_;
    // Two names that are printed alike are one device.
    const auto same = std::ranges::find(space_.tables.devices, device);
    const auto index = static_cast<uint16_t>(same - space_.tables.devices.begin());
    if (same == space_.tables.devices.end()) {
      if (space_.tables.devices.size() == kMostDevices) return std::nullopt;
      space_.tables.devices.push_back(device);
      space_.peak_since_start_bytes.push_back(0);
    }
    if (space_.devices_of_plane.size() < kMostDevices)
      space_.devices_of_plane.emplace(allocator, index);
    return index;
  }

  /// Lines without memory events are no threads of ours.
  bool take_thread(const LineHeader& line, Row* row) {
    if (thread_ == UINT32_MAX) {
      if (space_.tables.threads.size() == kMostThreads ||
          !space_.budget.take(sizeof(Thread) + kMostText)) {
        return false;
      }
      thread_ = static_cast<uint32_t>(space_.tables.threads.size());
      const std::string_view name = line.name.empty() ? line.shown_name : line.name;
      // From some release on the number is not that of the kernel; 0 then.
      const bool is_kernels = line.id > 0 && line.id <= std::numeric_limits<int32_t>::max();
      space_.tables.threads.push_back({.process = process_,
                                       .tid = is_kernels ? static_cast<uint32_t>(line.id) : 0,
                                       .name = std::string(name.substr(0, kMostText))});
      Process& process = space_.tables.processes[process_];
      const auto start = static_cast<uint64_t>(std::max<int64_t>(line.start_ns, 0));
      if (process.first_time_ns == 0 || start < process.first_time_ns)
        process.first_time_ns = start;
    }
    row->thread = thread_;
    return true;
  }

  /// `tensor`: empty where the profile does not say what it is.
  bool take_operation(std::string_view operation, std::string_view tensor, Row* row) {
    if (operation.empty()) return true;
    return (tensor.empty() || take_frame(kTensorFile, tensor, row)) &&
           take_frame(kOperationFile, operation.substr(0, kMostOperation), row);
  }

  /// Puts a frame on the row's stack.
  bool take_frame(std::string_view file, std::string_view name, Row* row) {
    Tables& tables = space_.tables;
    const uint32_t strings = tables.strings.size(), stacks = tables.stacks.stack_count();
    const Frame frame{tables.strings.intern(file), tables.strings.intern(name), 0};
    row->stack = tables.stacks.push(row->stack, tables.stacks.intern_frame(frame));
    // What a name costs, and a frame and a stack with their places in the tables.
    constexpr uint64_t kFrameBytes = 160;
    const uint64_t names = tables.strings.size() != strings ? name.size() : 0;
    return tables.stacks.stack_count() == stacks || space_.budget.take(kFrameBytes + names);
  }

  static constexpr uint64_t kAddressBytes = 128;  // an address costs that much in look-up tables
  static constexpr size_t kMostText = 256;
  static constexpr size_t kMostOperation = 1024;  // as in recordings

  std::string_view plane_;
  uint64_t offset_;
  const Names& names_;
  Space& space_;
  uint32_t process_ = UINT32_MAX;
  uint32_t thread_ = UINT32_MAX;
};

}  // namespace

Status read_plane(std::string_view plane, uint64_t offset, std::string_view host, Space* space) {
  auto names = read_names(plane, offset, &space->budget);
  if (!names) return std::unexpected(names.error());
  return PlaneReader(plane, offset, *names, space).read(host);
}

}  // namespace gpumemprof::xplane
