// Numbers of fields: https://github.com/google/pprof/blob/main/proto/profile.proto
#include <absl/container/flat_hash_map.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <protozero/pbf_writer.hpp>

#include "report/describe/facts.h"
#include "report/export/stack_exports.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

namespace profile {
enum : protozero::pbf_tag_type {
  kSampleType = 1,
  kSample = 2,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kComment = 13,
  kDefaultSampleType = 14
};
}
namespace value_type {
enum : protozero::pbf_tag_type { kType = 1, kUnit = 2 };
}
namespace sample {
enum : protozero::pbf_tag_type { kLocationId = 1, kValue = 2 };
}
namespace location {
enum : protozero::pbf_tag_type { kId = 1, kLine = 4 };
}
namespace line {
enum : protozero::pbf_tag_type { kFunctionId = 1, kLine = 2 };
}
namespace function {
enum : protozero::pbf_tag_type { kId = 1, kName = 2, kSystemName = 3, kFilename = 4 };
}

constexpr size_t kValues = 6;
/// In the order of the values of every sample: peak, whole run, end.
constexpr std::array<std::pair<const char*, const char*>, kValues> kTypes = {
    {{"inuse_objects", "count"},
     {"inuse_space", "bytes"},
     {"alloc_objects", "count"},
     {"alloc_space", "bytes"},
     {"end_objects", "count"},
     {"end_space", "bytes"}}};

int64_t clamped(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
}

class PprofWriter {
 public:
  PprofWriter(const Analysis& analysis, const DeviceAnalysis& device, const Tables& tables)
      : analysis_(analysis), device_(device), tables_(tables), writer_(out_) {
    string("");  // number 0 must be the empty string
  }

  std::string write(std::string_view version) {
    for (const auto& [type, unit] : kTypes) {
      protozero::pbf_writer message(writer_, profile::kSampleType);
      message.add_int64(value_type::kType, string(type));
      message.add_int64(value_type::kUnit, string(unit));
    }
    write_samples();
    const WallTime start = wall_time(
        process_at(tables_, device_at(tables_, device_.device).process), analysis_.start_time_ns);
    if (start.known) writer_.add_int64(profile::kTimeNanos, start.time_us * 1000);
    writer_.add_int64(profile::kDurationNanos,
                      clamped(analysis_.last_time_ns -
                              std::min(analysis_.start_time_ns, analysis_.last_time_ns)));
    comment("gpumemprof " + std::string(version));
    comment(peak_sentence(analysis_, tables_, device_));
    comment("inuse: live at the peak; alloc: over the whole run; end: live at the end");
    if (!is_complete(analysis_.loss)) comment(loss_sentence(analysis_.loss));
    writer_.add_int64(profile::kDefaultSampleType, string("inuse_space"));
    for (const std::string_view text : texts_)
      writer_.add_string(profile::kStringTable, text.data(), text.size());
    return std::move(out_);
  }

 private:
  using Values = std::array<int64_t, kValues>;

  int64_t string(std::string_view text) {
    auto [at, added] = strings_.try_emplace(std::string(text), static_cast<int64_t>(texts_.size()));
    if (added) texts_.emplace_back(text);
    return at->second;
  }
  void comment(const std::string& text) { writer_.add_int64(profile::kComment, string(text)); }

  void write_samples() {
    std::vector<std::pair<uint32_t, Values>> rows;
    absl::flat_hash_map<uint32_t, size_t> index;
    const auto take = [&](const std::vector<Holder>& holders, size_t first) {
      for (const Holder& holder : holders) {
        auto [at, added] = index.try_emplace(holder.stack, rows.size());
        if (added) rows.push_back({holder.stack, Values{}});
        Values& values = rows[at->second].second;
        values[first] = clamped(holder.count);
        values[first + 1] = clamped(holder.bytes);
      }
    };
    take(device_.holders_at_peak, 0);
    take(device_.totals, 2);
    take(device_.holders_at_end, 4);
    std::vector<uint64_t> path;
    for (const auto& [stack, values] : rows) {
      path.clear();
      for (uint32_t node = stack; node != 0; node = tables_.stacks.node(node).parent) {
        path.push_back(location_of(tables_.stacks.node(node).frame));
      }
      if (path.empty()) path.push_back(location_of(0));
      protozero::pbf_writer message(writer_, profile::kSample);
      message.add_packed_uint64(sample::kLocationId, path.begin(), path.end());
      message.add_packed_int64(sample::kValue, values.begin(), values.end());
    }
  }

  /// A frame is a location with one line; frame 0 is the unknown stack. Ids begin at 1.
  uint64_t location_of(uint32_t frame_id) {
    auto [at, added] = locations_.try_emplace(frame_id, locations_.size() + 1);
    if (!added) return at->second;
    const uint64_t id = at->second;
    const Frame& frame = tables_.stacks.frame(frame_id);
    const uint64_t function_id = function_of(frame_id, frame);
    protozero::pbf_writer message(writer_, profile::kLocation);
    message.add_uint64(location::kId, id);
    protozero::pbf_writer place(message, location::kLine);
    place.add_uint64(line::kFunctionId, function_id);
    place.add_int64(line::kLine, frame.line);
    return id;
  }

  uint64_t function_of(uint32_t frame_id, const Frame& frame) {
    const uint64_t key = uint64_t{frame.file} << 32 | frame.function;
    auto [at, added] =
        functions_.try_emplace(frame_id == 0 ? UINT64_MAX : key, functions_.size() + 1);
    if (!added) return at->second;
    const std::string name =
        printable(frame_id == 0 ? kNoStack : tables_.strings.get(frame.function));
    protozero::pbf_writer message(writer_, profile::kFunction);
    message.add_uint64(function::kId, at->second);
    message.add_int64(function::kName, string(name));
    message.add_int64(function::kSystemName, string(name));
    message.add_int64(function::kFilename, string(printable(tables_.strings.get(frame.file))));
    return at->second;
  }

  const Analysis& analysis_;
  const DeviceAnalysis& device_;
  const Tables& tables_;
  std::string out_;
  protozero::pbf_writer writer_;
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, int64_t> strings_;
  absl::flat_hash_map<uint32_t, uint64_t> locations_;
  absl::flat_hash_map<uint64_t, uint64_t> functions_;
};

/// In the frame of gzip, without a time, so that the same profile gives the same bytes.
Status gzip(const std::string& data, const TextSink& sink) {
  z_stream stream = {};
  constexpr int kGzip = 16;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return fail(ErrorCode::kSystem, "no memory to compress with");
  }
  std::string piece(256 << 10, '\0');
  size_t taken = 0;
  Status status;
  for (int state = Z_OK; status && state == Z_OK;) {
    if (stream.avail_in == 0) {
      const size_t count = std::min<size_t>(data.size() - taken, 1 << 30);  // avail_in has 32 bits
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data() + taken));
      stream.avail_in = static_cast<uInt>(count);
      taken += count;
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = deflate(&stream, taken == data.size() ? Z_FINISH : Z_NO_FLUSH);
    const size_t made = piece.size() - stream.avail_out;
    if (made != 0) status = sink(std::string_view(piece).substr(0, made));
  }
  deflateEnd(&stream);
  return status;
}

}  // namespace

Status export_pprof(const Analysis& analysis, const DeviceAnalysis& device, const Tables& tables,
                    std::string_view version, const TextSink& sink) {
  return gzip(PprofWriter(analysis, device, tables).write(version), sink);
}

}  // namespace gpumemprof
