#include "analysis/with_samples.h"

#include <utility>

#include "analysis/device_truth.h"
#include "analysis/device_use.h"
#include "analysis/recording_history.h"
#include "recording/samples_file.h"

namespace gpumemprof {

Result<Analysis> analyze_with_samples(EventSource& source, const std::vector<std::string>& paths,
                                      AnalysisOptions options, std::vector<std::string>* problems) {
  const auto samples = read_samples(paths, problems);
  // Where names are replaced hosts have other ones, so the samples of theirs are nobody's.
  const auto truths = device_truths(samples, source.tables().processes, problems);
  options.truths = &truths;
  auto analysis = analyze_whole(source, options);
  if (!analysis) return analysis;
  const DeviceAnalysis* main = main_device(*analysis, source.tables());
  const bool has_peak = main != nullptr && main->figures.peak_bytes != 0;
  analysis->machine =
      device_use(samples, has_peak ? std::optional(main->figures.peak_time_ns) : std::nullopt);
  if (analysis->machine) {
    for (std::string& left_out : analysis->machine->left_out)
      problems->push_back(std::move(left_out));
  }
  add_program_ends(read_program_ends(paths), &*analysis);
  return analysis;
}

}  // namespace gpumemprof
