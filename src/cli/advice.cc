// What `tfmemprof analyze --optimize --report FILE` adds to an analysis.
#include <cstdio>
#include <string_view>

#include "cli/analyze_telemetry.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "report/advice_text.h"
#include "report/words.h"

namespace gpumemprof {

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
