// Numbers of fields: https://github.com/google/pprof/blob/main/proto/profile.proto
#include "readers/pprof/profile.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace gpumemprof::pprof {
namespace {

constexpr size_t kMostDevices = 1024;
// About what an entry of each kind costs in memory.
constexpr uint64_t kStringCost = 16, kEntryCost = 64, kFrameCost = 32, kRowCost = sizeof(Row) + 8;

struct Function {
  uint64_t name = 0, file = 0;  // numbers of strings
};
struct Line {
  uint64_t function = 0;
  uint32_t line = 0;
};
struct SampleType {
  uint64_t type = 0, unit = 0, offset = 0;
};

class Parser {
 public:
  Parser(std::string_view bytes, MemoryBudget* budget) : bytes_(bytes), budget_(budget) {}

  Result<Profile> parse() {
    each_field(ProtobufFields(bytes_), [&](ProtobufFields& field) { read_table(&field); });
    if (!error_) find_values();
    out_.tables.processes.emplace_back();
    each_field(ProtobufFields(bytes_), [&](ProtobufFields& field) {
      if (field.number() == 2) read_sample(field.message(), field.offset());
    });
    if (error_) return std::unexpected(*error_);
    return std::move(out_);
  }

 private:
  /// Calls take(fields) with every field until the first mistake, wherever in the file that is.
  template <class Take>
  void each_field(ProtobufFields fields, Take take_field) {
    while (!error_ && fields.next()) take_field(fields);
    if (auto status = fields.status(); !status) refuse(status.error());
  }
  void refuse(Error error) {
    if (!error_) error_ = std::move(error);
  }
  void refuse(uint64_t offset, std::string message) {
    refuse(Error{ErrorCode::kBadInput, std::move(message), offset});
  }
  bool take(uint64_t bytes, uint64_t offset) {
    if (!error_ && budget_->take(bytes)) return true;
    refuse(offset, "the profile needs more memory than its size allows");
    return false;
  }

  // -- What is referred to
  // -------------------------------------------------------------------------

  void read_table(ProtobufFields* profile) {
    switch (profile->number()) {
      case 1: {
        SampleType type{.offset = profile->offset()};
        each_field(profile->message(), [&](ProtobufFields& field) {
          if (field.number() == 1) type.type = field.unsigned_integer();
          if (field.number() == 2) type.unit = field.unsigned_integer();
        });
        if (take(kEntryCost, type.offset)) types_.push_back(type);
        return;
      }
      case 4:
        return read_location(profile);
      case 5:
        return read_function(profile);
      case 6:
        if (take(kStringCost, profile->offset())) strings_.push_back(profile->bytes());
        return;
      case 9:
        out_.taken_at_ns = profile->unsigned_integer();
        return;
      default:
        return;
    }
  }

  void read_location(ProtobufFields* profile) {
    uint64_t id = 0;
    std::vector<Line> lines;
    each_field(profile->message(), [&](ProtobufFields& field) {
      if (field.number() == 1) id = field.unsigned_integer();
      if (field.number() != 4 || !take(sizeof(Line), field.offset())) return;
      Line line;
      each_field(field.message(), [&](ProtobufFields& part) {
        if (part.number() == 1) line.function = part.unsigned_integer();
        if (part.number() != 2) return;
        line.line = static_cast<uint32_t>(std::min<uint64_t>(part.unsigned_integer(), INT32_MAX));
      });
      lines.push_back(line);
    });
    if (take(kEntryCost, profile->offset())) locations_[id] = std::move(lines);
  }

  void read_function(ProtobufFields* profile) {
    uint64_t id = 0;
    Function function;
    each_field(profile->message(), [&](ProtobufFields& field) {
      if (field.number() == 1) id = field.unsigned_integer();
      if (field.number() == 2) function.name = field.unsigned_integer();
      if (field.number() == 4) function.file = field.unsigned_integer();
    });
    if (take(kEntryCost, profile->offset())) functions_[id] = function;
  }

  std::string_view string(uint64_t number) const {
    return number < strings_.size() ? strings_[number] : std::string_view();
  }

  /// Which of a sample's values are bytes and buffers.
  void find_values() {
    for (size_t i = 0; i < types_.size(); ++i) {
      const std::string_view type = string(types_[i].type), unit = string(types_[i].unit);
      if (type == "space" && unit == "bytes") bytes_at_ = i;
      if (type == "allocations" && unit == "count") count_at_ = i;
    }
    if (bytes_at_ != SIZE_MAX && count_at_ != SIZE_MAX) return;
    refuse(types_.empty() ? 0 : types_[0].offset,
           "a profile, but not a JAX memory profile: no samples of \"space\" in bytes");
  }

  // -- Samples
  // -------------------------------------------------------------------------------------

  void read_sample(ProtobufFields sample, uint64_t offset) {
    locations_of_sample_.clear();
    int64_t bytes = 0, count = 0;
    size_t value = 0;
    std::string_view kind, device;
    each_field(std::move(sample), [&](ProtobufFields& field) {
      if (field.number() == 1) {
        field.integers([&](uint64_t id) { locations_of_sample_.push_back(id); });
      } else if (field.number() == 2) {
        field.integers([&](uint64_t number) {
          if (value == bytes_at_) bytes = static_cast<int64_t>(number);
          if (value == count_at_) count = static_cast<int64_t>(number);
          ++value;
        });
      } else if (field.number() == 3) {
        read_label(field, &kind, &device);
      }
    });
    out_.negative_samples += bytes < 0 || count < 0;
    if (error_ || bytes < 0 || count < 0 || !take(kRowCost, offset)) return;
    out_.rows.push_back({stack_of_sample(offset), device_of(kind, device, offset),
                         static_cast<uint64_t>(count), static_cast<uint64_t>(bytes), offset});
  }

  void read_label(ProtobufFields& sample, std::string_view* kind, std::string_view* device) {
    std::string_view key, text;
    each_field(sample.message(), [&](ProtobufFields& field) {
      if (field.number() == 1) key = string(field.unsigned_integer());
      if (field.number() == 2) text = string(field.unsigned_integer());
    });
    if (key == "kind") *kind = text;
    if (key == "device") *device = text;
  }

  /// Places stand innermost first, and so do the lines of one that was inlined.
  uint32_t stack_of_sample(uint64_t offset) {
    StackTable& stacks = out_.tables.stacks;
    uint32_t stack = 0;
    for (size_t i = locations_of_sample_.size(); i-- > 0;) {
      const auto found = locations_.find(locations_of_sample_[i]);
      if (found == locations_.end()) {
        return refuse(offset, "a sample refers to a missing location"), 0;
      }
      for (size_t k = found->second.size(); k-- > 0;) {
        if (!take(kFrameCost, offset)) return 0;
        stack = stacks.push(stack, frame_of(found->second[k]));
      }
    }
    return stack;
  }

  uint32_t frame_of(const Line& line) {
    const auto found = functions_.find(line.function);
    const Function function = found == functions_.end() ? Function() : found->second;
    StringTable& strings = out_.tables.strings;
    return out_.tables.stacks.intern_frame(
        {strings.intern(string(function.file)), strings.intern(string(function.name)), line.line});
  }

  /// "cpu:0" and no more for buffers; what else there is has its kind behind it.
  uint16_t device_of(std::string_view kind, std::string_view device, uint64_t offset) {
    std::string name(device.substr(0, 64));
    if (kind != "buffer" && !kind.empty()) {
      name += (name.empty() ? "" : " ") + std::string(kind.substr(0, 64));
    }
    name = plain_device_name(name.empty() ? "unnamed device" : name);
    const auto [at, added] =
        device_ids_.try_emplace(name, static_cast<uint16_t>(out_.tables.devices.size()));
    if (!added) return at->second;
    if (device_ids_.size() > kMostDevices) return refuse(offset, "more than 1,024 devices"), 0;
    Device made{.type = device.starts_with("cpu") ? kJaxCpu : kJaxDevice,
                .layer = Layer::kFramework,
                .size_is_requested = true,
                .name = name};
    if (const size_t colon = device.rfind(':'); colon != device.npos) {
      std::from_chars(device.data() + colon + 1, device.data() + device.size(), made.index);
    }
    out_.tables.devices.push_back(std::move(made));
    return at->second;
  }

  std::string_view bytes_;
  MemoryBudget* budget_;
  Profile out_;
  std::optional<Error> error_;  // the first mistake
  std::vector<uint64_t> locations_of_sample_;
  std::vector<std::string_view> strings_;
  std::vector<SampleType> types_;
  absl::flat_hash_map<uint64_t, std::vector<Line>> locations_;
  absl::flat_hash_map<uint64_t, Function> functions_;
  absl::flat_hash_map<std::string, uint16_t> device_ids_;
  size_t bytes_at_ = SIZE_MAX, count_at_ = SIZE_MAX;
};

}  // namespace

Result<Profile> parse_profile(std::string_view bytes, MemoryBudget* budget) {
  return Parser(bytes, budget).parse();
}

}  // namespace gpumemprof::pprof
