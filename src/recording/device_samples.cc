#include "recording/device_samples.h"

#include <algorithm>

#include "base/varint.h"

namespace gpumemprof {
namespace {

// A chunk's first sample spells out all that it has; the room for the worst case of one more is
// looked at before anything is added, so that a chunk is never larger than its place.
constexpr size_t kMostBytesOfOneValue = 32 + 4 * (kMostSampleTextBytes + 2);

std::string_view cut(std::string_view text) { return text.substr(0, kMostSampleTextBytes); }

}  // namespace

uint32_t SampleChunkEncoder::text_id(std::string_view text) {
  text = cut(text);
  if (const auto known = texts_.find(text); known != texts_.end()) return known->second;
  put_text(&text_bytes_, text);
  return texts_.emplace(text, static_cast<uint32_t>(texts_.size())).first->second;
}

bool SampleChunkEncoder::add(const TakenSample& sample) {
  const size_t used = text_bytes_.size() + series_bytes_.size() + sample_bytes_.size();
  if (samples_ >= kMostSamplesInChunk || sample.values.size() > kMostSampleSeries) return false;
  // Most values are a few bytes and known already; the bound need not be close.
  size_t wanted = 64;
  for (const auto& [key, value] : sample.values) {
    const auto known = [&](std::string_view text) { return texts_.contains(cut(text)); };
    const bool is_known = known(key.source) && known(key.device) && known(key.field) &&
                          (value.text.empty() || known(value.text));
    wanted += is_known ? 32 : kMostBytesOfOneValue;
  }
  const bool is_first = samples_ == 0;
  if (!is_first && used + wanted > kMostSampleChunkBytes) return false;
  std::vector<std::pair<uint32_t, const SampledValue*>> told;
  told.reserve(sample.values.size());
  for (const auto& [key, value] : sample.values) {
    const std::tuple id{text_id(key.source), text_id(key.device), text_id(key.field), key.pid};
    const auto [at, is_new] = series_.try_emplace(id, static_cast<uint32_t>(series_.size()));
    if (is_new) {
      if (series_.size() > kMostSampleSeries) {  // its place goes to nobody
        series_.erase(at);
        continue;
      }
      put_varint(&series_bytes_, std::get<0>(id)), put_varint(&series_bytes_, std::get<1>(id));
      put_varint(&series_bytes_, std::get<2>(id)), put_varint(&series_bytes_, zigzag(key.pid));
      last_.emplace_back(), numbers_.push_back(0);
    }
    told.emplace_back(at->second, &value);
  }
  std::ranges::sort(told, {}, &std::pair<uint32_t, const SampledValue*>::first);
  std::string changes;
  size_t count = 0;
  uint32_t next = 0;
  const auto put = [&](uint32_t series, const SampledValue& value) {
    if (last_[series] == value) return;
    put_varint(&changes, series - next);
    next = series + 1;
    changes.push_back(static_cast<char>(value.kind));
    if (value.kind == SampledKind::kNumber) {
      put_varint(&changes, zigzag(static_cast<int64_t>(value.number - numbers_[series])));
      numbers_[series] = value.number;
    } else if (value.kind != SampledKind::kGone) {
      put_varint(&changes, text_id(value.text));
    }
    last_[series] = value;
    ++count;
  };
  size_t at = 0;
  static const SampledValue kNoMore;
  for (uint32_t series = 0; series < last_.size(); ++series) {
    while (at < told.size() && told[at].first < series) ++at;  // told twice: the first one counts
    put(series, at < told.size() && told[at].first == series ? *told[at].second : kNoMore);
  }
  if (is_first) first_time_ns_ = last_time_ns_ = sample.time_ns;
  const uint64_t time_ns = std::max(sample.time_ns, last_time_ns_);
  put_varint(&sample_bytes_, time_ns - last_time_ns_);
  sample_bytes_.push_back(static_cast<char>(sample.cause));
  put_varint(&sample_bytes_, count);
  sample_bytes_ += changes;
  last_time_ns_ = time_ns;
  ++samples_;
  return true;
}

std::string SampleChunkEncoder::payload() const {
  std::string out;
  put_varint(&out, texts_.size());
  out += text_bytes_;
  put_varint(&out, series_.size());
  out += series_bytes_;
  put_varint(&out, samples_);
  return out += sample_bytes_;
}

namespace {

/// The tables that a chunk's looks refer to.
Status parse_sample_tables(ByteReader* in, ParsedSamples* out) {
  const auto bad = [&](const char* what) { return fail_at(in->offset(), what); };
  const size_t text_count = in->count(1);
  for (size_t i = 0; i < text_count && in->ok(); ++i) {
    out->texts.emplace_back(in->bytes(in->varint_at_most(kMostSampleTextBytes)));
  }
  const size_t series_count = in->count(4);
  if (!in->ok() || series_count > kMostSampleSeries) return bad("a chunk of samples is damaged");
  const auto& texts = out->texts;
  for (size_t i = 0; i < series_count; ++i) {
    const uint64_t source = in->varint(), device = in->varint(), field = in->varint();
    const int64_t pid = unzigzag(in->varint());
    if (!in->ok() || std::max({source, device, field}) >= texts.size()) {
      return bad("a chunk of samples refers to a missing entry");
    }
    out->series.push_back({texts[source], texts[device], texts[field], pid});
  }
  return {};
}

}  // namespace

Result<ParsedSamples> parse_sample_chunk(std::string_view payload, uint64_t first_ns) {
  ByteReader in(payload);
  const auto bad = [&](const char* what) { return fail_at(in.offset(), what); };
  ParsedSamples out;
  if (auto done = parse_sample_tables(&in, &out); !done) return std::unexpected(done.error());
  const size_t look_count = in.count(3);
  if (!in.ok() || look_count > kMostSamplesInChunk) return bad("a chunk of samples is damaged");
  std::vector<uint64_t> numbers(out.series.size());
  uint64_t time_ns = first_ns;
  for (size_t i = 0; i < look_count; ++i) {
    const uint64_t later_ns = in.varint();
    const uint8_t cause = in.number<uint8_t>();
    const size_t changes = in.count(2);
    if (!in.ok() || cause > static_cast<uint8_t>(SampleCause::kEnd) ||
        __builtin_add_overflow(time_ns, later_ns, &time_ns)) {
      return bad("a sample is damaged");
    }
    auto& look = out.looks.emplace_back();
    look.time_ns = time_ns, look.cause = SampleCause{cause};
    uint64_t next = 0;
    for (size_t c = 0; c < changes; ++c) {
      const uint64_t at = next + in.varint_at_most(kMostSampleSeries);
      const uint8_t kind = in.number<uint8_t>();
      if (!in.ok() || at >= out.series.size() ||
          kind > static_cast<uint8_t>(SampledKind::kAbsent)) {
        return bad("a sample is damaged");
      }
      next = at + 1;
      uint64_t number = 0;
      if (SampledKind{kind} == SampledKind::kNumber) {
        number = numbers[at] += static_cast<uint64_t>(unzigzag(in.varint()));
      } else if (SampledKind{kind} != SampledKind::kGone) {
        number = in.varint();
        if (number >= out.texts.size()) return bad("a sample refers to a missing entry");
      }
      if (!in.ok()) return bad("a sample is damaged");
      look.changes.push_back({static_cast<uint32_t>(at), SampledKind{kind}, number});
    }
  }
  if (!in.ok() || !in.at_end()) return bad("a chunk of samples has bytes after its end");
  return out;
}

}  // namespace gpumemprof
