#include "recording/samples_file.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error_text.h"
#include "base/file.h"
#include "base/folder.h"
#include "recording/chunk_scan.h"
#include "recording/folders.h"
#include "recording/samples_writer.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostSampleFiles = 1024;
// Of a whole file; what real runs have is a hundredth of it.
constexpr size_t kMostSeries = 100'000, kMostSeriesTexts = 400'000;
constexpr size_t kMostProblems = 64;
constexpr useconds_t kTryAgainUs = 2'000;

template <size_t kBytes>
std::string text_of(const char (&text)[kBytes]) {
  return {text, strnlen(text, kBytes)};
}

/// Puts chunk after chunk into series of the whole file.
class SampleCollector {
 public:
  explicit SampleCollector(RecordedSamples* out) : out_(out) {}

  /// False where the chunk contradicts itself or those before it, or is beyond all bounds; nothing
  /// of it is taken then.
  bool take(const format::ChunkHeader& header, const ParsedSamples& chunk) {
    const auto& looks = chunk.looks;
    if (looks.empty() || looks.size() != header.count) return false;
    if (looks.back().time_ns != header.time_last_ns) return false;
    if (!out_->looks.empty() && looks[0].time_ns < out_->looks.back().time_ns) return false;
    if (header.first_ordinal < next_ordinal_ || header.first_ordinal > UINT64_MAX - looks.size()) {
      return false;
    }
    if (series_.size() + chunk.series.size() > kMostSeries ||
        texts_.size() + chunk.texts.size() > kMostSeriesTexts) {
      return false;
    }
    out_->missing_looks += header.first_ordinal - next_ordinal_;
    next_ordinal_ = header.first_ordinal + looks.size();
    std::vector<uint32_t> series, texts;
    for (const SampleKey& key : chunk.series) {
      const auto [at, is_new] = series_.try_emplace(key, static_cast<uint32_t>(series_.size()));
      if (is_new) out_->series.push_back(key), out_->points.emplace_back(), told_in_.push_back(0);
      series.push_back(at->second);
    }
    for (const std::string& text : chunk.texts) {
      const auto [at, is_new] = texts_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
      if (is_new) out_->texts.push_back(text);
      texts.push_back(at->second);
    }
    // A chunk begins with nothing told: what those before it told last is visited, never all series
    // of the file, which a chunk of few bytes would make us walk.
    const std::vector<uint32_t> before = std::exchange(told_, {});
    ++chunks_;
    for (size_t i = 0; i < looks.size(); ++i) {
      const auto look = static_cast<uint32_t>(out_->looks.size());
      out_->looks.push_back({looks[i].time_ns, looks[i].cause});
      for (const ParsedSamples::Change& change : looks[i].changes) {
        const uint32_t at = series[change.series];
        const bool is_text =
            change.kind == SampledKind::kText || change.kind == SampledKind::kAbsent;
        put(at, {look, change.kind, is_text ? texts[change.number] : change.number});
        if (std::exchange(told_in_[at], chunks_) != chunks_) told_.push_back(at);
      }
      if (i != 0) continue;
      for (const uint32_t at : before) {
        if (told_in_[at] != chunks_) put(at, {look, SampledKind::kGone, 0});
      }
    }
    return true;
  }

 private:
  void put(uint32_t series, const RecordedSamples::Point& point) {
    auto& points = out_->points[series];
    const bool is_gone = point.kind == SampledKind::kGone;
    if (points.empty() ? is_gone
                       : points.back().kind == point.kind && points.back().number == point.number)
      return;
    points.push_back(point);
  }

  RecordedSamples* out_;
  std::map<SampleKey, uint32_t> series_;
  std::map<std::string, uint32_t> texts_;
  std::vector<uint32_t> told_;     // series of which the last chunk said something
  std::vector<uint64_t> told_in_;  // by series: the last chunk, counted from 1, that did
  uint64_t chunks_ = 0;
  uint64_t next_ordinal_ = 0;
};

/// Of each chunk the longest copy: while it grew it stood in two places in turn.
std::map<uint64_t, ChunkRef> newest_copies(const FileIndex& index) {
  std::map<uint64_t, ChunkRef> out;
  for (const ChunkRef& chunk : index.chunks) {
    if (chunk.header.type != format::kDeviceSamples) continue;
    const auto [at, is_new] = out.try_emplace(chunk.header.sequence, chunk);
    if (!is_new && chunk.header.count > at->second.header.count) at->second = chunk;
  }
  return out;
}

/// One look at the file.
Result<RecordedSamples> read_once(File& file, const format::FileHeader& header) {
  RecordedSamples out;
  out.path = file.path(), out.host = text_of(header.host), out.run_pid = header.pid;
  FileIndex index;
  if (auto done = scan_chunks(file, header.recording_id, &index); !done)
    return std::unexpected(done.error());
  uint64_t untold = 0;
  const auto tell = [&](const std::string& what, uint64_t offset) {
    if (out.problems.size() == kMostProblems) return void(++untold);
    out.problems.push_back(file.path() + ": " + what + " (at byte " + std::to_string(offset) + ")");
  };
  for (const Damage& damage : index.damage) tell(damage.reason, damage.offset);
  SampleCollector collector(&out);
  std::string payload;
  for (const auto& [sequence, chunk] : newest_copies(index)) {
    if (chunk.header.length > kMostSampleChunkBytes) {
      tell("a chunk of samples is too long", chunk.offset);
      continue;
    }
    // Its CRC again: a `run` may have written the place anew since the scan.
    if (!read_chunk_into(file, chunk, &payload)) {
      tell("a chunk of samples changed while it was read", chunk.offset);
      continue;
    }
    const auto parsed = parse_sample_chunk(payload, chunk.header.time_first_ns);
    if (!parsed) {
      tell(parsed.error().message, chunk.payload_offset() + parsed.error().offset.value_or(0));
    } else if (!collector.take(chunk.header, *parsed)) {
      tell("a chunk of samples contradicts its header or those before it", chunk.offset);
    }
  }
  if (untold != 0) {
    out.problems.push_back(file.path() + ": and " + std::to_string(untold) +
                           " more unreadable places");
  }
  return out;
}

/// Files in the folders that `paths` name, or in which they lie.
std::vector<std::string> files_beside(const std::vector<std::string>& paths, const char* suffix) {
  std::vector<std::string> out;
  for (const std::string& folder : folders_of(paths)) {
    each_name(folder, [&](std::string_view name) {
      if (name.ends_with(suffix)) out.push_back((folder + '/').append(name));
    });
  }
  std::ranges::sort(out);
  return out;
}

Result<format::FileHeader> header_of(const std::string& path) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return std::unexpected(file.error());
  return read_file_header(**file);
}

int64_t realtime_offset(const format::FileHeader& header) {
  return static_cast<int64_t>(header.realtime_ns - header.monotonic_ns);
}

/// Wall clock minus monotonic clock of each boot, as its first recorded file has it: what events
/// are moved by where several machines recorded (open.cc).
std::map<std::string, int64_t> clocks_of(const std::vector<std::string>& recorded) {
  std::map<std::string, int64_t> out;
  for (const std::string& path : recorded) {
    if (const auto header = header_of(path))
      out.try_emplace(text_of(header->boot_id), realtime_offset(*header));
  }
  return out;
}

/// Moves looks onto the clock of the events; none lies before its zero.
void shift(int64_t by_ns, RecordedSamples* samples) {
  if (by_ns == 0) return;
  for (auto& look : samples->looks) {
    int64_t time_ns = 0;
    if (__builtin_add_overflow(look.time_ns, by_ns, &time_ns)) time_ns = 0;
    look.time_ns = static_cast<uint64_t>(std::max<int64_t>(time_ns, 0));
  }
}

}  // namespace

const RecordedSamples::Point* RecordedSamples::at(size_t of_series, size_t look) const {
  const std::vector<Point>& all = points[of_series];
  const auto after = std::ranges::upper_bound(all, look, {}, &Point::look);
  if (after == all.begin() || (after - 1)->kind == SampledKind::kGone) return nullptr;
  return &*(after - 1);
}

size_t RecordedSamples::find(const SampleKey& key) const {
  const auto at = std::ranges::find(series, key);
  return at == series.end() ? SIZE_MAX : static_cast<size_t>(at - series.begin());
}

Result<RecordedSamples> read_samples_file(const std::string& path, int tries) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return std::unexpected(file.error());
  return read_samples_file(**file, tries);
}

Result<RecordedSamples> read_samples_file(File& file, int tries) {
  const auto header = read_file_header(file);
  if (!header) return std::unexpected(header.error());
  for (int i = 1;; ++i) {
    auto read = read_once(file, *header);
    if (!read || read->problems.empty() || i >= tries) return read;
    usleep(kTryAgainUs);
  }
}

std::vector<RecordedSamples> read_samples(const std::vector<std::string>& paths,
                                          std::vector<std::string>* problems) {
  std::vector<RecordedSamples> out;
  const auto files = files_beside(paths, kSamplesSuffix);
  if (files.empty()) return out;
  const auto clocks = clocks_of(files_beside(paths, ".gmp"));
  int64_t base = INT64_MAX;
  for (const auto& [boot, offset] : clocks) base = std::min(base, offset);
  for (size_t i = 0; i < files.size() && i < kMostSampleFiles; ++i) {
    const auto header = header_of(files[i]);
    auto read = read_samples_file(files[i]);
    if (!read || !header) {
      problems->push_back(text_of(read ? header.error() : read.error()));
      continue;
    }
    if (!clocks.empty()) {
      const auto own = clocks.find(text_of(header->boot_id));
      const int64_t offset = own == clocks.end() ? realtime_offset(*header) : own->second;
      shift(static_cast<int64_t>(static_cast<uint64_t>(offset) - static_cast<uint64_t>(base)),
            &*read);
    }
    for (const std::string& problem : read->problems) problems->push_back(problem);
    out.push_back(std::move(*read));
  }
  return out;
}

}  // namespace gpumemprof
