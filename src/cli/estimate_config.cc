#include "cli/estimate_config.h"

#include "cli/commands.h"

namespace gpumemprof {

int estimate_from_configuration(const EstimateArguments& arguments) {
  return report_error(arguments.config,
                      {ErrorCode::kUnsupported, "configurations are not read yet", {}});
}

}  // namespace gpumemprof
