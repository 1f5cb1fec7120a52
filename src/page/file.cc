#include "page/file.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "analysis/advice/practices.h"
#include "analysis/pass/program_end.h"
#include "analysis/replay/snapshot_device.h"
#include "analysis/series/telemetry_series.h"
#include "page/keeper.h"
#include "report/describe/describe.h"
#include "report/describe/describe_samples.h"
#include "report/describe/end_words.h"
#include "report/json/document_json.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostRefusalLines = 1000;

}  // namespace

Result<std::unique_ptr<PageFile>> PageFile::load(const std::vector<std::string>& paths,
                                                 std::function<void(double)> on_progress,
                                                 PageReading reading) {
  // Half of the time goes into reading a snapshot, half into what it says.
  const auto half = [&](double from) {
    return [&, from](double done) {
      if (on_progress) on_progress(from + done / 2);
    };
  };
  auto input = open_input(paths, {.seal = reading.seal, .on_progress = half(0)});
  if (!input) return std::unexpected(input.error());
  if (reading.names) input->anonymize(reading.names);
  if (input->kind() == InputKind::kSamples || input->kind() == InputKind::kOomDump) {
    std::unique_ptr<PageFile> file(new PageFile(std::move(*input), {}));
    if (auto read = file->read_without_events(reading.sensitivity); !read)
      return std::unexpected(read.error());
    return file;
  }
  Keeper keeper;
  AnalysisOptions& options = reading.analysis;
  options.keeper = &keeper;
  options.on_progress = half(0.5);
  auto analyzed = analyze(*input, std::move(options));
  if (!analyzed) return std::unexpected(analyzed.error());
  std::unique_ptr<PageFile> file(new PageFile(std::move(*input), std::move(*analyzed)));
  auto tables = keeper.finish();
  for (size_t d = 0; d < tables.size(); ++d) {
    if (!tables[d] || d >= file->tables().devices.size()) continue;
    PageDevice device;
    device.index = static_cast<uint16_t>(d);
    device.name = device_name(file->tables().devices[d]);
    for (const DeviceAnalysis& known : file->analysis().devices) {
      if (known.device == d) device.analysis = &known;
    }
    device.has_times = file->analysis().source.can.times;
    if (device.analysis && device.analysis->snapshot)
      device.has_times = device.analysis->snapshot->has_times || !file->input_.snapshot();
    device.table = std::move(tables[d]);
    for (const int64_t stream : device.table->streams) {
      auto known = std::ranges::find(file->streams_, stream);
      if (known == file->streams_.end()) known = file->streams_.insert(known, stream);
      device.stream_of.push_back(static_cast<uint32_t>(known - file->streams_.begin()));
    }
    file->devices_.push_back(std::move(device));
  }
  file->start_time_ns_ = file->analysis().start_time_ns;
  // Under other names the events would be another trace.
  if (!file->input_.snapshot() && !file->input_.is_anonymous()) {
    const SourceOpener reopen = [&] { return file->input_.events(); };
    auto advice = reading.all_advice
                      ? advise_on_recording(file->analysis(), file->tables(), reopen)
                      : advise_in_passing(file->analysis(), file->tables(), reopen);
    if (!advice) return std::unexpected(advice.error());
    file->advice_ = std::move(*advice), file->has_advice_ = true;
  }
  return file;
}

Status PageFile::read_without_events(double sensitivity) {
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  SourceInfo& source = analyzed_.analysis.source;
  source.path = input_.paths().front();
  if (kind() == InputKind::kOomDump) {
    auto refused = read_oom_dump(source.path);
    if (!refused) return std::unexpected(refused.error());
    source.kind = "oom_dump";
    document_ = document_json(describe_refusal(*refused, folder, kMostRefusalLines));
    return {};
  }
  const auto told = analyze_samples(source.path, sensitivity);
  if (!told) return std::unexpected(told.error());
  source.path = told->path, source.kind = "telemetry", source.bytes = told->file_bytes;
  document_ = document_json(describe_samples(*told));
  return {};
}

size_t PageFile::device_of(const DeviceAnalysis* analysis) const {
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (analysis != nullptr && (devices_[d].analysis == analysis ||
                                std::ranges::find(analysis->parts, devices_[d].index) !=
                                    analysis->parts.end()))
      return d;
  }
  return 0;
}

uint32_t PageFile::moment_at(size_t device, uint64_t time_ns) const {
  const TimeColumn& times = devices_[device].table->times;
  size_t low = 0, high = times.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (times[middle] < time_ns)
      low = middle + 1;
    else
      high = middle;
  }
  return static_cast<uint32_t>(low);
}

Result<std::shared_ptr<const AllocatorSnapshot>> PageFile::history() {
  if (!history_) {
    auto read = allocator_history(input_);
    if (!read) return read;
    history_ = std::move(*read);
  }
  return history_;
}

const nlohmann::ordered_json& PageFile::document() {
  if (document_.is_null()) {
    std::error_code error;  // where it is not known, paths are shown whole
    document_ = document_json(
        describe_analysis(analysis(), tables(),
                          for_page({.working_folder = std::filesystem::current_path(error).string(),
                                    .advice = has_advice_ ? &advice_ : nullptr,
                                    .shows_source = !input_.is_anonymous()})));
  }
  return document_;
}

const std::vector<uint8_t>* PageFile::taken(size_t device, const Filter& filter) {
  if (filter.takes_all()) return nullptr;
  KeptFilter& kept = filters_[{device, filter.text()}];
  kept.used = ++uses_;
  if (!kept.taken) {
    const PageDevice& of = devices_[device];
    kept.taken = std::make_unique<std::vector<uint8_t>>(
        filter.taken(*of.table, tables(), tables().devices[of.index].process));
  }
  return kept.taken.get();
}

const KeyLevels& PageFile::levels(size_t device, Dimension by, const Filter& filter) {
  Kept& kept = levels_[{device, by, filter.text()}];
  kept.used = ++uses_;
  if (!kept.levels) {
    const PageDevice& of = devices_[device];
    BlockKeys keys(*of.table, tables(), tables().devices[of.index].process, by);
    kept.levels = std::make_unique<KeyLevels>(*of.table, std::move(keys), taken(device, filter));
  }
  return *kept.levels;
}

/// What was not requested lately goes; levels need their filter.
void PageFile::forget_old() {
  while (levels_.size() > kMostKept) {
    levels_.erase(
        std::ranges::min_element(levels_, {}, [](const auto& entry) { return entry.second.used; }));
  }
  const auto is_needed = [&](const std::pair<size_t, std::string>& filter) {
    return std::ranges::any_of(levels_, [&](const auto& entry) {
      return std::get<0>(entry.first) == filter.first && std::get<2>(entry.first) == filter.second;
    });
  };
  for (auto filter = filters_.begin(); filter != filters_.end() && filters_.size() > kMostKept;)
    filter = is_needed(filter->first) ? std::next(filter) : filters_.erase(filter);
}

}  // namespace gpumemprof
