#include "cli/estimate_trace.h"

#include "cli/commands.h"

namespace gpumemprof {

int estimate_by_tracing(const EstimateArguments& arguments) {
  return report_error(arguments.model, {ErrorCode::kUnsupported, "nothing is traced yet", {}});
}

}  // namespace gpumemprof
