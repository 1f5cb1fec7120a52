#include "page/whole_run.h"

#include <algorithm>
#include <filesystem>

#include "analysis/advice/practices.h"
#include "analysis/pass/program_end.h"
#include "analysis/replay/snapshot_device.h"
#include "analysis/series/telemetry_series.h"
#include "report/describe/describe.h"
#include "report/describe/end_words.h"
#include "report/describe/source_text.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostRefusalLines = 1000;

/// Empty if unknown: then paths are shown in full.
std::string current_folder() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

}  // namespace

Result<std::unique_ptr<WholeRun>> WholeRun::read(const std::vector<std::string>& paths,
                                                 const PageReading& reading, BlockKeeper* keeper,
                                                 const std::function<void(double)>& on_progress) {
  // Half of the progress is for reading a snapshot, half for its analysis.
  const auto half = [&](double from) {
    return [&on_progress, from](double done) {
      if (on_progress) on_progress(from + done / 2);
    };
  };
  auto input = open_input(paths, {.seal = reading.seal, .on_progress = half(0)});
  if (!input) return std::unexpected(input.error());
  if (reading.names) input->anonymize(reading.names);
  std::unique_ptr<WholeRun> whole(new WholeRun(std::move(*input), {}, reading.all_advice));
  if (!whole->has_events()) {
    if (auto read = whole->read_without_events(reading.sensitivity); !read)
      return std::unexpected(read.error());
    return whole;
  }
  AnalysisOptions options = reading.analysis;
  options.keeper = keeper;
  options.on_progress = half(0.5);
  auto analyzed = analyze(whole->input_, std::move(options));
  if (!analyzed) return std::unexpected(analyzed.error());
  whole->analyzed_ = std::move(*analyzed);
  return whole;
}

Status WholeRun::read_without_events(double sensitivity) {
  SourceInfo& source = analyzed_.analysis.source;
  source.path = input_.paths().front();
  if (input_.kind() == InputKind::kOomDump) {
    auto refused = read_oom_dump(source.path);
    if (!refused) return std::unexpected(refused.error());
    source.kind = SourceKind::kOomDump;
    document_ = document_json(describe_refusal(*refused, current_folder(), kMostRefusalLines));
    return {};
  }
  const auto told = analyze_samples(source.path, sensitivity);
  if (!told) return std::unexpected(told.error());
  source.path = told->path, source.kind = SourceKind::kTelemetry, source.bytes = told->file_bytes;
  document_ = document_json(describe_samples(*told));
  for (const TelemetrySeries& series : told->series) findings_ += series.report.findings.size();
  return {};
}

const DeviceAnalysis* WholeRun::device(uint16_t index) const {
  return find_device(analysis(), index);
}

bool WholeRun::is_main(uint16_t index) const {
  const DeviceAnalysis* main = main_device(analysis(), tables());
  if (main == nullptr || main->parts.empty()) return main != nullptr && main == device(index);
  const auto peak_of = [&](uint16_t part) {
    const DeviceAnalysis* of = device(part);
    return of == nullptr ? 0 : of->figures.peak_bytes;
  };
  return index == *std::ranges::max_element(main->parts, {}, peak_of);
}

bool WholeRun::has_times(uint16_t index) const {
  const DeviceAnalysis* known = device(index);
  if (known && known->snapshot) return known->snapshot->has_times || !is_snapshot();
  return analysis().source.can.times;
}

Result<const AdviceReport*> WholeRun::advice() {
  // With replaced names the events would be another trace.
  if (!has_events() || (is_snapshot() && !has_all_advice_) || input_.is_anonymous())
    return nullptr;
  if (!advice_) {
    const SourceOpener reopen = [&] { return input_.events(); };
    auto found = has_all_advice_ ? advise_on_recording(analysis(), tables(), reopen, line_text())
                                 : advise_in_passing(analysis(), tables(), reopen, line_text());
    if (!found) return std::unexpected(found.error());
    advice_ = std::move(*found);
  }
  return &*advice_;
}

Result<nlohmann::ordered_json> WholeRun::document(const EvidenceJson& evidence_json) {
  if (!has_events()) return document_;
  const auto known = advice();
  if (!known) return std::unexpected(known.error());
  return document_json(
      describe_analysis(analysis(), tables(),
                        for_page({.working_folder = current_folder(),
                                  .advice = *known,
                                  .shows_source = !input_.is_anonymous()})),
      evidence_json);
}

Result<std::shared_ptr<const AllocatorSnapshot>> WholeRun::history() {
  if (!history_) {
    auto read = allocator_history(input_);
    if (!read) return read;
    history_ = std::move(*read);
  }
  return history_;
}

}  // namespace gpumemprof
