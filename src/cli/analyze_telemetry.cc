#include "cli/analyze_telemetry.h"

#include <cstdio>
#include <filesystem>

#include "analysis/series/telemetry_series.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "input/input.h"
#include "report/advice_text.h"
#include "report/text_report.h"
#include "report/words.h"

namespace gpumemprof {

int wrong_sensitivity() {
  return report_error("", {ErrorCode::kUsage, "--sensitivity must be above 0 and at most 1"});
}

int analyze_telemetry_file(const AnalyzeArguments& arguments) {
  if (!(arguments.sensitivity > 0 && arguments.sensitivity <= 1)) return wrong_sensitivity();
  const std::string path = samples_path(arguments.paths[0]);
  const auto analysis = analyze_samples(path, arguments.sensitivity);
  if (!analysis) return report_error(path, analysis.error());
  const std::string format = report_format(arguments.format, arguments.output);
  const PageLoad load{.reading = {.sensitivity = arguments.sensitivity}};
  const auto page = [&](const std::string& output) {
    return write_page_of({arguments.paths}, output, load);
  };
  const auto text = [&] {
    return format == "json" ? telemetry_json_report(*analysis) : telemetry_text(*analysis);
  };
  const int written = format == "html" ? page(arguments.output)
                                       : write_output(text(), arguments.output, {path});
  if (written != kExitOk) return written;
  const int advised =
      add_advice(arguments, path, telemetry_text(*analysis), advise_of_samples(*analysis));
  if (advised != kExitOk || !arguments.visualization) return advised;
  return write_visualization(arguments, page);
}

int write_visualization(const AnalyzeArguments& arguments,
                        const std::function<int(const std::string&)>& page) {
  std::error_code error;
  std::filesystem::create_directories(arguments.plot_folder, error);
  const std::string path =
      (std::filesystem::path(arguments.plot_folder) / "memory_timeline.html").string();
  if (const int written = page(path); written != kExitOk) return written;
  const bool json_on_stdout =
      arguments.format == "json" && (arguments.output.empty() || arguments.output == "-");
  std::fprintf(json_on_stdout ? stderr : stdout, "Wrote %s\n", printable(path).c_str());
  return kExitOk;
}

}  // namespace gpumemprof
