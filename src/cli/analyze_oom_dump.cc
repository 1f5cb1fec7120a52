#include "cli/analyze_oom_dump.h"

#include <nlohmann/json.hpp>

#include "analysis/pass/program_end.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/render.h"
#include "report/describe/end_words.h"
#include "report/json/ends_json.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostLines = 10;

std::string as_text(const RefusedRequest& refused) {
  std::string text = refusal_sentence(refused, working_folder()) + '\n';
  for (const std::string& line : refusal_holders(refused, working_folder(), kMostLines))
    text += line + '\n';
  if (!refused.live_bytes) text += "Holders unknown: the process was not recorded.\n";
  return text + "\nThe error: " + printable(refused.message) + '\n';
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
  if (format == "html" || arguments.anonymize || !arguments.fail_on.empty()) {
    return report_error(path, {ErrorCode::kUsage,
                               "is the dump of an out-of-memory error, which has only text and "
                               "json: analyze the recording that contains it",
                               std::nullopt});
  }
  auto refused = read_oom_dump(path);
  if (!refused) return report_error(path, refused.error());
  auto output = Output::open(arguments.output, {path});
  if (!output) return report_error("", output.error());
  const std::string text = format == "json" ? as_json(std::move(*refused)) : as_text(*refused);
  if (auto done = output->write(text); !done) return report_output_error(*output, done.error());
  if (auto done = output->close(); !done) return report_output_error(*output, done.error());
  return kExitOk;
}

}  // namespace gpumemprof
