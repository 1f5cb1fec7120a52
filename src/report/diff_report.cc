#include "report/diff_report.h"

#include "report/describe/describe.h"
#include "report/render/text.h"

namespace gpumemprof {

std::string diff_text(const Diff& diff, const DiffOptions& options) {
  return render_text(describe_diff(diff, options), {.color = options.color});
}

}  // namespace gpumemprof
