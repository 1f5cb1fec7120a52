// What the system and its drivers reported during a recording, sampled by `run`: values over time,
// each present or absent with the reason. Independent of drivers: sources, devices and fields are
// words.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// What a value is about. `device` is "host", "nvidia:0", "nvidia:0 slice 1"; `pid` is 0 if the
/// value is of no process; `field` has its unit in its name ("used_bytes").
struct SampleKey {
  std::string source, device, field;
  int64_t pid = 0;
  auto operator<=>(const SampleKey&) const = default;
};

/// kGone: no longer reported (a process that ended), which says nothing about the value.
enum class SampledKind : uint8_t { kGone = 0, kNumber = 1, kText = 2, kAbsent = 3 };

struct SampledValue {
  SampledKind kind = SampledKind::kGone;
  uint64_t number = 0;
  std::string text;  ///< of a kText; of a kAbsent why there is no value
  bool operator==(const SampledValue&) const = default;

  static SampledValue of(uint64_t number) { return {SampledKind::kNumber, number, {}}; }
  static SampledValue of_text(std::string text) { return {SampledKind::kText, 0, std::move(text)}; }
  static SampledValue absent(std::string why) { return {SampledKind::kAbsent, 0, std::move(why)}; }
};

/// Why "accelerators" has no "devices" where none was asked.
inline constexpr const char* kNoGpuDriver = "no process of this run loaded a GPU driver";

/// The reason for a sample.
enum class SampleCause : uint8_t { kPeriod = 0, kStart = 1, kOom = 2, kEnd = 3 };

/// One sample of everything. Times are CLOCK_MONOTONIC.
struct TakenSample {
  uint64_t time_ns = 0;
  SampleCause cause = SampleCause::kPeriod;
  std::vector<std::pair<SampleKey, SampledValue>> values;
};

// Bounds that writer and reader share: a file is hostile input.
inline constexpr size_t kMostSampleSeries = 4096;
inline constexpr size_t kMostSampleTextBytes = 240;
inline constexpr size_t kMostSamplesInChunk = 64;
inline constexpr size_t kMostSampleChunkBytes = 240 * 1024;

/// Collects the samples of one chunk. Unchanged values take no space; every chunk can be read
/// alone.
class SampleChunkEncoder {
 public:
  /// False if the chunk is full and nothing was added: begin another.
  bool add(const TakenSample& sample);
  std::string payload() const;
  size_t samples() const { return samples_; }
  uint64_t first_time_ns() const { return first_time_ns_; }
  uint64_t last_time_ns() const { return last_time_ns_; }
  void clear() { *this = {}; }

 private:
  uint32_t text_id(std::string_view text);

  std::map<std::string, uint32_t, std::less<>> texts_;
  std::string text_bytes_, series_bytes_, sample_bytes_;
  std::vector<SampledValue> last_;  // by series
  std::vector<uint64_t> numbers_;   // the last number of each series
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, int64_t>, uint32_t> series_;
  size_t samples_ = 0;
  uint64_t first_time_ns_ = 0, last_time_ns_ = 0;
};

/// A decoded chunk. Texts are indexes, so that a hostile chunk is never much larger than its bytes.
struct ParsedSamples {
  struct Change {
    uint32_t series = 0;  ///< index in `series`
    SampledKind kind = SampledKind::kGone;
    uint64_t number = 0;  ///< of a kText and a kAbsent the index in `texts`
  };
  struct Look {
    uint64_t time_ns = 0;
    SampleCause cause = SampleCause::kPeriod;
    std::vector<Change> changes;  ///< what is not named stayed as it was
  };
  std::vector<std::string> texts;
  std::vector<SampleKey> series;
  std::vector<Look> looks;
};

/// `first_ns` is the chunk's own first time. Errors: kBadInput with the byte within the payload.
Result<ParsedSamples> parse_sample_chunk(std::string_view payload, uint64_t first_ns);

}  // namespace gpumemprof
