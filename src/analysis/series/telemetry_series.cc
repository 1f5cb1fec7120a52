#include "analysis/series/telemetry_series.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/statistics/growth.h"
#include "base/json_fields.h"
#include "input/input.h"

namespace gpumemprof {
namespace {

constexpr const char *kExactBasis = "exact", *kInexactBasis = "recording";  // of a recording

using Key = std::tuple<std::string, int64_t, int64_t, int64_t, std::string, std::string>;

std::string text_of(const nlohmann::json& metadata, const char* key) {
  const auto it = metadata.find(key);
  return it != metadata.end() && it->is_string() ? it->get<std::string>() : std::string();
}

template <class T>
void raise(std::optional<T>* most, std::optional<T> value) {
  if (value && (!*most || *value > **most)) *most = value;
}

/// Samples are what was measured at a moment; the rest (start, stop, alerts, phases) repeats one.
/// Older trackers wrote no samples, only changes: then each of their events is one.
bool is_measurement(const TelemetryEvent& event, bool has_samples) {
  if (!has_samples) return event.allocated_bytes.has_value();
  return event.event_type == "sample" && event.allocated_bytes.has_value();
}

void add(const TelemetryEvent& event, bool has_samples, const nlohmann::json& metadata,
         TelemetrySeries* series) {
  ++series->events;
  series->warnings += event.event_type == "warning";
  series->criticals += event.event_type == "critical";
  if (!is_measurement(event, has_samples)) return;
  const double time_s = static_cast<double>(event.timestamp_ns) * 1e-9;
  series->times_s.push_back(time_s);
  series->allocated_bytes.push_back(static_cast<double>(*event.allocated_bytes));
  if (event.reserved_bytes) {
    series->reserved_times_s.push_back(time_s);
    series->reserved_bytes.push_back(static_cast<double>(*event.reserved_bytes));
  }
  raise(&series->peak_reserved_bytes, event.reserved_bytes);
  raise(&series->peak_used_bytes, event.used_bytes);
  raise(&series->exact_peak_bytes, number_field(metadata, "peak_bytes"));
  series->ooms = std::max(series->ooms, number_field(metadata, "oom_count").value_or(0));
  if (series->command.empty()) series->command = text_of(metadata, "command");
  if (event.total_bytes) series->total_bytes = event.total_bytes;
  if (event.total_bytes && *event.total_bytes > 0) {
    const uint64_t most = std::max(
        {*event.allocated_bytes, event.reserved_bytes.value_or(0), event.used_bytes.value_or(0)});
    raise(&series->peak_used_share,
          std::optional(static_cast<double>(most) / static_cast<double>(*event.total_bytes)));
  }
  const bool measured_use = event.device_id >= 0 && event.total_bytes;
  if (!measured_use || !event.used_bytes || !event.reserved_bytes) return;
  const double gap =
      static_cast<double>(*event.used_bytes) - static_cast<double>(*event.reserved_bytes);
  if (!series->gap_bytes) series->gap_bytes = {gap, gap};
  series->gap_bytes->first = std::min(series->gap_bytes->first, gap);
  series->gap_bytes->second = std::max(series->gap_bytes->second, gap);
}

/// A start or an alert may not repeat what the samples' figures stand for: it belongs to the series
/// of the same memory that has samples.
void join_marks(std::map<Key, TelemetrySeries>* by_key) {
  const auto without_basis = [](Key key) {
    std::get<5>(key).clear();
    return key;
  };
  std::map<Key, TelemetrySeries*> homes;
  for (auto& [key, series] : *by_key) {
    if (!series.times_s.empty()) homes.try_emplace(without_basis(key), &series);
  }
  std::erase_if(*by_key, [&](auto& entry) {
    auto& [key, series] = entry;
    const auto home = series.times_s.empty() ? homes.find(without_basis(key)) : homes.end();
    if (home == homes.end()) return false;
    home->second->events += series.events;
    home->second->warnings += series.warnings;
    home->second->criticals += series.criticals;
    return true;
  });
}

}  // namespace

TelemetryAnalysis analyze_telemetry(const Telemetry& telemetry, const std::string& path,
                                    double sensitivity) {
  TelemetryAnalysis out;
  out.path = path, out.kind = telemetry_kind_name(telemetry.kind);
  out.file_bytes = telemetry.file_bytes, out.events = telemetry.events.size();
  out.lost_bytes = telemetry.lost_bytes;
  out.losses = telemetry.losses, out.notes = telemetry.notes;
  const bool has_samples =
      std::ranges::any_of(telemetry.events, [](const auto& e) { return e.event_type == "sample"; });
  std::map<Key, TelemetrySeries> by_key;
  for (const TelemetryEvent& event : telemetry.events) {
    const nlohmann::json metadata = nlohmann::json::parse(event.metadata, nullptr, false);
    const std::string basis = text_of(metadata, "basis");
    // A recording's counters are not exact at times: where events are lost, or a reading is late.
    const bool is_counted = basis == kExactBasis || basis == kInexactBasis;
    TelemetrySeries& series = by_key[{event.host, event.pid, event.rank, event.device_id,
                                      event.collector, is_counted ? std::string(kExactBasis) : basis}];
    series.host = event.host, series.collector = event.collector;
    if (series.basis != kInexactBasis) series.basis = basis;
    series.pid = event.pid, series.rank = event.rank, series.device_id = event.device_id;
    add(event, has_samples, metadata, &series);
    const int64_t now = event.timestamp_ns;
    out.start_ns = out.start_ns == 0 ? now : std::min(out.start_ns, now);
    out.end_ns = std::max(out.end_ns, now);
  }
  join_marks(&by_key);
  for (auto& [key, series] : by_key) {
    SeriesOptions options{.sensitivity = sensitivity};
    if (series.total_bytes) options.limit_bytes = static_cast<double>(*series.total_bytes);
    if (series.basis == "process_rss" || series.basis == "device") options.least_growth_s = kLeastSecondsFromOutside;
    series.report = analyze_series(series.times_s, series.allocated_bytes, options);
    out.samples += series.report.samples;
    out.series.push_back(std::move(series));
  }
  std::ranges::stable_sort(out.series, [](const TelemetrySeries& a, const TelemetrySeries& b) {
    return a.report.peak_bytes > b.report.peak_bytes;
  });
  for (const TelemetrySeries& series : out.series) {
    const Score& score = series.report.score;
    if (rank_of_score(score) < rank_of_score(out.score)) out.score = score;
  }
  if (!out.score.value && !out.score.hides_growth) {
    out.score.reason =
        out.series.empty() ? "no sample was taken" : out.series[0].report.score.reason;
  }
  return out;
}

Result<TelemetryAnalysis> analyze_samples(const std::string& path, double sensitivity) {
  const std::string file = samples_path(path);
  auto telemetry = read_telemetry(file);
  if (telemetry) return analyze_telemetry(*telemetry, file, sensitivity);
  Error wrong = telemetry.error();
  if (wrong.message.contains(kNoTelemetry)) {
    wrong.offset.reset();
    wrong.message +=
        "; these can be read: recordings of run, PyTorch's memory snapshots, TensorFlow's profiles "
        "and memory dumps, JAX's memory profiles, and what track, monitor and diagnose write";
  } else if (wrong.offset == 0 && wrong.message.ends_with("is empty")) {
    wrong.offset.reset();
  }
  return std::unexpected(wrong);
}

}  // namespace gpumemprof
