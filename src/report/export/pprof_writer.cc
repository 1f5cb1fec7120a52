// Numbers of fields: https://github.com/google/pprof/blob/main/proto/profile.proto
#include "report/export/pprof_writer.h"

#include <zlib.h>

#include <algorithm>

#include "report/words.h"

namespace gpumemprof {
namespace {

namespace profile_field {
enum : protozero::pbf_tag_type {
  kSampleType = 1,
  kSample = 2,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
  kComment = 13,
  kDefaultSampleType = 14
};
}
namespace value_type_field {
enum : protozero::pbf_tag_type { kType = 1, kUnit = 2 };
}
namespace sample_field {
enum : protozero::pbf_tag_type { kLocationId = 1, kValue = 2, kLabel = 3 };
}
namespace label_field {
enum : protozero::pbf_tag_type { kKey = 1, kText = 2 };
}
namespace location_field {
enum : protozero::pbf_tag_type { kId = 1, kLine = 4 };
}
namespace line_field {
enum : protozero::pbf_tag_type { kFunctionId = 1, kLine = 2 };
}
namespace function_field {
enum : protozero::pbf_tag_type { kId = 1, kName = 2, kSystemName = 3, kFilename = 4 };
}

int64_t clamped(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
}

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

PprofWriter::PprofWriter(const PprofTypes& types, std::string_view shown) : writer_(out_) {
  string("");  // number 0 must be the empty string
  const auto put_type = [&](protozero::pbf_tag_type tag, const char* type, const char* unit) {
    protozero::pbf_writer message(writer_, tag);
    message.add_int64(value_type_field::kType, string(type));
    message.add_int64(value_type_field::kUnit, string(unit));
  };
  for (const auto& [type, unit] : types) put_type(profile_field::kSampleType, type, unit);
  // Every byte is counted: none stands for others.
  put_type(profile_field::kPeriodType, "space", "bytes");
  writer_.add_int64(profile_field::kPeriod, 1);
  writer_.add_int64(profile_field::kDefaultSampleType, string(shown));
}

void PprofWriter::set_tables(const Tables& tables) {
  if (tables_ != &tables) frames_.clear();
  tables_ = &tables;
}

void PprofWriter::sample(uint32_t stack, const std::vector<uint64_t>& values,
                         const PprofLabels& labels) {
  std::vector<uint64_t> path;
  for (uint32_t node = stack; node != 0; node = tables_->stacks.node(node).parent)
    path.push_back(location_of(tables_->stacks.node(node).frame));
  if (path.empty()) path.push_back(location_of(0));
  std::vector<int64_t> numbers;
  for (const uint64_t value : values) numbers.push_back(clamped(value));
  std::vector<std::pair<int64_t, int64_t>> texts;  // before the sample: they are messages too
  for (const auto& [key, text] : labels) texts.emplace_back(string(key), string(printable(text)));
  protozero::pbf_writer message(writer_, profile_field::kSample);
  message.add_packed_uint64(sample_field::kLocationId, path.begin(), path.end());
  message.add_packed_int64(sample_field::kValue, numbers.begin(), numbers.end());
  for (const auto& [key, text] : texts) {
    protozero::pbf_writer one(message, sample_field::kLabel);
    one.add_int64(label_field::kKey, key);
    one.add_int64(label_field::kText, text);
  }
}

void PprofWriter::comment(std::string_view text) {
  writer_.add_int64(profile_field::kComment, string(printable(text)));
}

void PprofWriter::set_time(int64_t since_1970_ns) {
  writer_.add_int64(profile_field::kTimeNanos, since_1970_ns);
}

void PprofWriter::set_duration(uint64_t duration_ns) {
  writer_.add_int64(profile_field::kDurationNanos, clamped(duration_ns));
}

Status PprofWriter::finish(const TextSink& sink) {
  for (const std::string_view text : texts_)
    writer_.add_string(profile_field::kStringTable, text.data(), text.size());
  return gzip(out_, sink);
}

int64_t PprofWriter::string(std::string_view text) {
  auto [at, added] = strings_.try_emplace(std::string(text), static_cast<int64_t>(texts_.size()));
  if (added) texts_.emplace_back(text);
  return at->second;
}

/// Frame 0 is the unknown stack.
uint64_t PprofWriter::location_of(uint32_t frame_id) {
  auto [at, added] = frames_.try_emplace(frame_id, 0);
  if (!added) return at->second;
  const Frame& frame = tables_->stacks.frame(frame_id);
  const std::string name =
      printable(frame_id == 0 ? kNoStack : tables_->strings.get(frame.function));
  const uint64_t id =
      location(function(name, printable(tables_->strings.get(frame.file))), frame.line);
  return frames_[frame_id] = id;
}

/// A place in code, with one line. Ids begin at 1.
uint64_t PprofWriter::location(uint64_t function, uint32_t line_number) {
  auto [at, added] = locations_.try_emplace({function, line_number}, locations_.size() + 1);
  if (!added) return at->second;
  protozero::pbf_writer message(writer_, profile_field::kLocation);
  message.add_uint64(location_field::kId, at->second);
  protozero::pbf_writer place(message, location_field::kLine);
  place.add_uint64(line_field::kFunctionId, function);
  place.add_int64(line_field::kLine, line_number);
  return at->second;
}

uint64_t PprofWriter::function(std::string_view name, std::string_view file) {
  const std::pair key{string(name), string(file)};
  auto [at, added] = functions_.try_emplace(key, functions_.size() + 1);
  if (!added) return at->second;
  protozero::pbf_writer message(writer_, profile_field::kFunction);
  message.add_uint64(function_field::kId, at->second);
  message.add_int64(function_field::kName, key.first);
  message.add_int64(function_field::kSystemName, key.first);
  message.add_int64(function_field::kFilename, key.second);
  return at->second;
}

}  // namespace gpumemprof
