#include "report/telemetry_report.h"

#include "report/describe/describe.h"
#include "report/render/text.h"

namespace gpumemprof {

std::string telemetry_text(const TelemetryAnalysis& analysis) {
  return render_text(describe_samples(analysis), {});
}

}  // namespace gpumemprof
