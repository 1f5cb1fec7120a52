#include "cli/analyze_telemetry.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "cli/commands.h"
#include "cli/output.h"
#include "input/input.h"
#include "report/advice_text.h"
#include "report/render/series_svg.h"
#include "report/telemetry_report.h"
#include "report/words.h"
#include "telemetry/reader.h"

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostPictures = 64;

std::string render(const TelemetryAnalysis& analysis, const AnalyzeArguments& arguments) {
  const std::string_view name = arguments.output;
  std::string format = arguments.format;
  if (format.empty() && name.ends_with(".json")) format = "json";
  if (format.empty() && (name.ends_with(".html") || name.ends_with(".htm"))) format = "html";
  if (format == "json") return telemetry_json_report(analysis);
  return format == "html" ? telemetry_html(analysis) : telemetry_text(analysis);
}

std::vector<PlotFile> telemetry_pictures(const TelemetryAnalysis& analysis) {
  std::vector<PlotFile> out;
  for (const TelemetrySeries& series : analysis.series) {
    if (out.size() == kMostPictures) break;
    const std::string number = out.empty() ? "" : '_' + std::to_string(out.size() + 1);
    const std::string title =
        series.command.empty() ? "Memory: " + analysis.path : "Memory of " + series.command;
    out.push_back({"memory_timeline" + number + ".svg", series_svg(series, title)});
  }
  return out;
}

}  // namespace

int wrong_sensitivity() {
  return report_error(
      "", {ErrorCode::kUsage, "--sensitivity must be above 0 and at most 1", std::nullopt});
}

int analyze_telemetry_file(const AnalyzeArguments& arguments) {
  if (!(arguments.sensitivity > 0 && arguments.sensitivity <= 1)) return wrong_sensitivity();
  const std::string path = samples_path(arguments.paths[0]);
  auto telemetry = read_telemetry(path);
  if (!telemetry) {
    Error wrong = telemetry.error();
    if (wrong.code == ErrorCode::kBadInput)
      wrong.message +=
          "; analyze reads recordings, snapshots, profiles, and files of track, monitor and "
          "diagnose";
    return report_error(path, wrong);
  }
  const TelemetryAnalysis analysis = analyze_telemetry(*telemetry, path, arguments.sensitivity);
  auto output = Output::open(arguments.output, {path});
  if (!output) return report_error("", output.error());
  if (auto done = output->write(render(analysis, arguments)); !done)
    return report_output_error(*output, done.error());
  if (auto done = output->close(); !done) return report_output_error(*output, done.error());
  const int advised =
      add_advice(arguments, path, telemetry_text(analysis), advise_of_samples(analysis));
  if (advised != kExitOk || !arguments.visualization) return advised;
  const auto pictures = telemetry_pictures(analysis);
  if (pictures.empty()) {
    std::fprintf(stderr, "%s: %s: no plot: the file has no sample\n", tool_name(),
                 printable(path).c_str());
    return kExitOk;
  }
  return say_and_write_pictures(pictures, arguments);
}

std::vector<PlotFile> recording_pictures(const Analysis& analysis, const Tables& tables) {
  std::vector<PlotFile> out;
  for (const DeviceAnalysis& device : analysis.devices) {
    const Device& memory = device_at(tables, device.device);
    const Process& process = process_at(tables, memory.process);
    TelemetrySeries series;
    series.pid = process.pid, series.basis = "exact; " + device_name(memory);
    series.device_id = is_host_memory(memory) ? -1 : memory.index;
    const Timeline& timeline = device.timeline;
    const auto& buckets = timeline.buckets();
    for (size_t i = 0; i < buckets.size(); ++i) {
      // Each bucket from its least to its most: what lies between is drawn as well.
      const double from = static_cast<double>(i * timeline.bucket_ns()) * 1e-9;
      series.times_s.insert(series.times_s.end(),
                            {from, from + static_cast<double>(timeline.bucket_ns()) * 5e-10});
      series.allocated_bytes.insert(
          series.allocated_bytes.end(),
          {static_cast<double>(buckets[i].min_bytes), static_cast<double>(buckets[i].max_bytes)});
    }
    series.reserved_bytes = series.allocated_bytes;
    SeriesReport& report = series.report;
    report.samples = series.times_s.size();
    report.duration_s = series.times_s.empty() ? 0 : series.times_s.back();
    report.peak_bytes = static_cast<double>(device.figures.peak_bytes);
    series.exact_peak_bytes = device.figures.peak_bytes;
    report.peak_time_s =
        static_cast<double>(device.figures.peak_time_ns -
                            std::min(device.figures.peak_time_ns, timeline.start_ns())) *
        1e-9;
    if (out.size() == kMostPictures) break;
    const std::string number = out.empty() ? "" : '_' + std::to_string(out.size() + 1);
    out.push_back({"memory_timeline" + number + ".svg",
                   series_svg(series, "Memory of " + process_label(process))});
  }
  return out;
}

int say_and_write_pictures(const std::vector<PlotFile>& pictures,
                           const AnalyzeArguments& arguments) {
  std::error_code error;
  fs::create_directories(arguments.plot_folder, error);
  const bool json_on_stdout =
      arguments.format == "json" && (arguments.output.empty() || arguments.output == "-");
  for (const PlotFile& picture : pictures) {
    const fs::path path = fs::path(arguments.plot_folder) / picture.name;
    std::ofstream file(path, std::ios::binary);
    file << picture.svg;
    file.close();
    if (file.fail()) {
      return report_error(
          "", {ErrorCode::kSystem, path.string() + ": cannot write the plot", std::nullopt});
    }
    std::fprintf(json_on_stdout ? stderr : stdout, "Wrote %s\n", printable(path.string()).c_str());
  }
  return kExitOk;
}

}  // namespace gpumemprof
