#include "page/whole_run.h"

#include <algorithm>
#include <filesystem>

#include "analysis/advice/practices.h"
#include "report/describe/describe.h"
#include "report/json/document_json.h"

namespace gpumemprof {

Result<std::unique_ptr<WholeRun>> WholeRun::read(const std::vector<std::string>& paths,
                                                 BlockKeeper* keeper,
                                                 const std::function<void(double)>& on_progress) {
  // Half of the time goes into reading a snapshot, half into what it says.
  const auto half = [&](double from) {
    return [&on_progress, from](double done) {
      if (on_progress) on_progress(from + done / 2);
    };
  };
  auto input = open_input(paths, {.seal = true, .on_progress = half(0)});
  if (!input) return std::unexpected(input.error());
  AnalysisOptions options;
  options.keeper = keeper;
  options.on_progress = half(0.5);
  auto analyzed = analyze(*input, options);
  if (!analyzed) return std::unexpected(analyzed.error());
  return std::unique_ptr<WholeRun>(new WholeRun(std::move(*input), std::move(*analyzed)));
}

const DeviceAnalysis* WholeRun::device(uint16_t index) const {
  const auto known = std::ranges::find(analysis().devices, index, &DeviceAnalysis::device);
  return known == analysis().devices.end() ? nullptr : &*known;
}

Result<nlohmann::ordered_json> WholeRun::document() {
  // As `analyze` does for its page.
  AdviceReport advice;
  if (!is_snapshot()) {
    auto found = advise_in_passing(analysis(), tables(), [&] { return input_.events(); });
    if (!found) return std::unexpected(found.error());
    advice = std::move(*found);
  }
  std::error_code error;  // where it is not known, paths are shown whole
  return document_json(describe_analysis(
      analysis(), tables(),
      for_page({.working_folder = std::filesystem::current_path(error).string(),
                .advice = is_snapshot() ? nullptr : &advice,
                .shows_source = true})));
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
