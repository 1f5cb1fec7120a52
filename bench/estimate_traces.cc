// Predictions from traces, for bench/accuracy: one line in, one line out.
//
// In:  LOW-TRACE HIGH-TRACE BATCH...           (paths without spaces)
// Out: RESERVED FITS ..., a pair for each batch, or "! REASON" where the two do not merge
// FITS: 2 where the upper end of the interval fits into CAPACITY bytes, the one argument; 1 where the
// expected figure does.
// `shipped` alone: the constant and the spread that are built in.
// `equal LOW HIGH DIRECT`: is DIRECT what LOW and HIGH make at its batch, event by event?
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "estimate/merge.h"
#include "estimate/simulate.h"
#include "estimate/trace_prediction.h"

namespace {

using namespace gpumemprof;

void predict(std::istringstream& words, uint64_t capacity_bytes) {
  std::string low_path, high_path;
  words >> low_path >> high_path;
  auto low = read_step_trace(low_path);
  auto high = read_step_trace(high_path);
  if (!low || !high) {
    std::printf("! %s\n", (low ? high : low).error().message.c_str());
    return;
  }
  auto merged = ScaledTrace::merge(std::move(*low), *high);
  if (!merged) {
    std::printf("! %s\n", merged.error().message.c_str());
    return;
  }
  TraceScenario scenario;
  const std::string& torch = merged->low().facts.torch;
  if (auto release = find_release(torch.substr(0, torch.find('+')))) scenario.release = *release;
  for (uint64_t batch = 0; words >> batch;) {
    const StepTrace trace = merged->at(batch);
    const StepPeaks peaks = simulate_steps(trace, AllocatorConfig{}, scenario.release, library_table());
    const int fits = fits_into(trace, scenario, capacity_bytes, true)    ? 2
                     : fits_into(trace, scenario, capacity_bytes, false) ? 1
                                                                         : 0;
    std::printf("%lu %d ", peaks.reserved_bytes, fits);
  }
  std::printf("\n");
}

std::string described(const StepTrace& trace, size_t at) {
  if (at >= trace.events.size()) return "the end";
  const TracedEvent& event = trace.events[at];
  return "kind " + std::to_string(static_cast<int>(event.kind)) + " number " +
         std::to_string(event.index) + " stream " + std::to_string(event.stream) + " module " +
         trace.names[event.module] + " bytes " + std::to_string(event.bytes) + " phase " +
         std::to_string(static_cast<int>(event.phase)) + " is " +
         std::to_string(static_cast<int>(event.storage_kind));
}

int compare(const char* low_path, const char* high_path, const char* direct_path) {
  auto low = read_step_trace(low_path);
  auto high = read_step_trace(high_path);
  auto direct = read_step_trace(direct_path);
  if (!low || !high || !direct) return 2;
  auto merged = ScaledTrace::merge(std::move(*low), *high);
  if (!merged) {
    std::printf("%s\n", merged.error().message.c_str());
    return 1;
  }
  const StepTrace made = merged->at(direct->facts.batch);
  for (size_t i = 0; i < std::max(made.events.size(), direct->events.size()); ++i) {
    if (described(made, i) == described(*direct, i)) continue;
    std::printf("event %zu: merged %s, direct %s\n", i, described(made, i).c_str(),
                described(*direct, i).c_str());
    return 1;
  }
  for (size_t i = 0; i < made.convolutions.size(); ++i) {
    const ConvolutionCall &a = made.convolutions[i], &b = direct->convolutions[i];
    if (a.input_bytes == b.input_bytes && a.output_bytes == b.output_bytes &&
        a.weight_bytes == b.weight_bytes)
      continue;
    std::printf("convolution %zu differs\n", i);
    return 1;
  }
  std::printf("%zu events\n", made.events.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "shipped") {
    const DeviceSpread spread = device_spread();
    std::printf("%lu %.4f %.4f\n", device_constant().bytes, spread.low, spread.high);
    return 0;
  }
  if (argc == 5 && std::string(argv[1]) == "equal") return compare(argv[2], argv[3], argv[4]);
  if (argc != 2) {
    std::fprintf(stderr, "estimate_traces: CAPACITY, `shipped` or `equal LOW HIGH DIRECT`\n");
    return 2;
  }
  const uint64_t capacity_bytes = std::strtoull(argv[1], nullptr, 10);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    predict(words, capacity_bytes);
    std::fflush(stdout);
  }
}
