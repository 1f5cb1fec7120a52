#include "report/text_report.h"

#include "report/describe/describe.h"
#include "report/diff_report.h"
#include "report/render/text.h"

namespace gpumemprof {

std::string text_report(const Analysis& analysis, const Tables& tables,
                        const TextOptions& options) {
  DescribeOptions describe{.working_folder = options.working_folder,
                           .known_advice = options.known_advice,
                           .shows_source = options.shows_source};
  if (options.full_stacks) describe.stacks_of_line = SIZE_MAX;
  return render_text(describe_analysis(analysis, tables, describe),
                     {.color = options.color,
                      .full_stacks = options.full_stacks,
                      .columns = options.columns});
}

std::string cost_text(const Cost& cost) {
  std::string text;
  for (const std::string& line : text_lines(describe_cost(cost), {})) text += line + '\n';
  return text;
}

std::string telemetry_text(const TelemetryAnalysis& analysis) {
  return render_text(describe_samples(analysis), {});
}

std::string diff_text(const Diff& diff, const DiffOptions& options) {
  return render_text(describe_diff(diff, options), {.color = options.color, .columns = options.columns});
}

}  // namespace gpumemprof
