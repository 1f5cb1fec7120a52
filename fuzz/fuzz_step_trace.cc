// Traces of estimates on any bytes: what is read can be merged with itself at another batch and
// simulated.
#include <stdint.h>
#include <stdlib.h>

#include <string_view>

#include "estimate/merge.h"
#include "estimate/simulate.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  auto trace = parse_step_trace({reinterpret_cast<const char*>(data), size});
  if (!trace) {
    const Error& error = trace.error();
    if (error.message.find('\n') != std::string::npos || !error.offset || *error.offset > size)
      abort();
    return 0;
  }
  if (trace->events.size() > 10'000) return 0;
  StepTrace high = *trace;
  high.facts.batch = 2 * trace->facts.batch + 1;
  for (TracedEvent& event : high.events) event.bytes = event.bytes * 3 / 2;
  const auto merged = ScaledTrace::merge(*trace, high);
  const StepPeaks peaks = simulate_steps(*trace, {}, newest_release(), library_table());
  if (peaks.is_beyond_measure || peaks.first_oom_event) return 0;
  if (peaks.live_bytes > peaks.allocated_bytes || peaks.allocated_bytes > peaks.reserved_bytes)
    abort();
  if (merged) simulate_steps(merged->at(1u << 20), {}, newest_release(), library_table());
  return 0;
}
