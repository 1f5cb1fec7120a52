#include "cli/analyze_telemetry.h"

#include <nlohmann/json.hpp>

#include "analysis/pass/program_end.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "report/describe/end_words.h"
#include "report/json/sections.h"
#include "report/render/text.h"

namespace gpumemprof {
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
  return write_output(format == "json" ? as_json(std::move(*refused)) : as_text(*refused),
                      arguments.output, {path});
}

}  // namespace gpumemprof
