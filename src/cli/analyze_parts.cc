#include "cli/analyze_parts.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "analysis/pass/program_end.h"
#include "analysis/series/telemetry_series.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "input/input.h"
#include "report/advice_text.h"
#include "report/describe/end_words.h"
#include "report/json/sections.h"
#include "report/render/text.h"
#include "report/text_report.h"
#include "report/words.h"

namespace gpumemprof {

int wrong_sensitivity() { return wrong_usage("--sensitivity must be above 0 and at most 1"); }

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
    return format == "json" ? telemetry_json_report(*analysis)
                            : fitted_to_terminal(telemetry_text(*analysis), arguments.output);
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

namespace {

constexpr size_t kMostLines = 10;

std::string as_text(const RefusedRequest& refused) {
  return render_text(describe_refusal(refused, working_folder(), kMostLines), {});
}

std::string as_json(RefusedRequest refused) {
  const std::string path = refused.folder;
  ProgramEnds ends;
  ends.refused.push_back(std::move(refused));
  ends.failure = "the program ran out of memory";
  const nlohmann::ordered_json out = {{"source", {{"path", path}, {"kind", "oom_dump"}}},
                                      {"end", ends_json(ends)}};
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

int analyze_oom_dump(const AnalyzeArguments& arguments) {
  const std::string& path = arguments.paths[0];
  const std::string format = report_format(arguments.format, arguments.output);
  if (arguments.anonymize || !arguments.fail_on.empty()) {
    return report_error(path, {ErrorCode::kUsage,
                               "is the dump of an out-of-memory error, which takes neither "
                               "--anonymize nor --fail-on: analyze the recording that contains it"});
  }
  if (format == "html") return write_page_of({arguments.paths}, arguments.output, {});
  auto refused = read_oom_dump(path);
  if (!refused) return report_error(path, refused.error());
  return write_output(format == "json" ? as_json(std::move(*refused))
                                       : fitted_to_terminal(as_text(*refused), arguments.output),
                      arguments.output, {path});
}

int add_advice(const AnalyzeArguments& arguments, const std::string& path, const std::string& text,
               const AdviceReport& advice, const std::string& otherwise) {
  const bool to_stdout = arguments.output.empty() || arguments.output == "-";
  const bool is_text =
      arguments.format.empty() || arguments.format == "text" || arguments.format == "txt";
  // JSON on standard output stays JSON alone; it has the advice among its findings.
  FILE* people = to_stdout && !is_text ? stderr : stdout;
  if (arguments.optimize) std::fprintf(people, "\n%s", advice_text(advice, otherwise).c_str());
  if (arguments.report_path.empty()) return kExitOk;
  std::fflush(stdout);
  const AdviceReport* wanted = arguments.optimize ? &advice : nullptr;
  const std::string_view name = arguments.report_path;
  std::string report = text;
  if (name.ends_with(".md") || name.ends_with(".markdown"))
    report = advice_markdown(path, text, wanted, otherwise);
  else if (wanted)
    report += '\n' + advice_text(advice, otherwise);
  const int written = write_output(report, arguments.report_path, arguments.paths);
  if (written != kExitOk) return written;
  std::fprintf(people, "Wrote %s\n", printable(arguments.report_path).c_str());
  return kExitOk;
}

}  // namespace gpumemprof
