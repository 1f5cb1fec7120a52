// Predictions from traces, for bench/accuracy: one line in, one line out.
//
// In:  LOW-TRACE HIGH-TRACE BATCH...           (paths without spaces)
// Out: BATCH LIVE ALLOCATED RESERVED FITS ... TIME_US, or "! REASON" where the two do not merge
// FITS: 2 where the upper end of the interval fits into capacity=BYTES, 1 where the expected figure
// does. The words of the command line set figures of the library table: dense.weight_gradient=2 …
// `shipped` alone: the constant and the spread that are built in.
// `equal LOW HIGH DIRECT`: is DIRECT what LOW and HIGH make at its batch, event by event?
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "estimate/merge.h"
#include "estimate/simulate.h"
#include "estimate/trace_prediction.h"

namespace {

using namespace gpumemprof;

uint64_t capacity_bytes = ~0ull;

bool set(LibraryTable& table, const std::string& word) {
  const size_t mark = word.find('=');
  if (mark == word.npos) return false;
  const std::string key = word.substr(0, mark);
  const double value = std::atof(word.c_str() + mark + 1);
  std::map<std::string, double*> figures;
  for (auto [name, rule] : {std::pair{"dense", &table.dense},
                            {"pointwise", &table.pointwise},
                            {"stem", &table.stem},
                            {"grouped", &table.grouped}}) {
    figures[std::string(name) + ".forward"] = &rule->forward;
    figures[std::string(name) + ".input_gradient"] = &rule->input_gradient;
    figures[std::string(name) + ".weight_gradient"] = &rule->weight_gradient;
  }
  if (figures.contains(key)) {
    *figures[key] = value;
  } else if (key == "product_workspace_bytes") {
    table.product_workspace_bytes = static_cast<uint64_t>(value);
  } else if (key == "capacity") {
    capacity_bytes = std::strtoull(word.c_str() + mark + 1, nullptr, 10);
  } else if (key == "empties_cache") {
    table.empties_cache_after_trials = value != 0;
  } else {
    return false;
  }
  return true;
}

void predict(std::istringstream& words, const LibraryTable& table) {
  std::string low_path, high_path;
  words >> low_path >> high_path;
  const auto began = std::chrono::steady_clock::now();
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
    const StepPeaks peaks = simulate_steps(trace, AllocatorConfig{}, scenario.release, table);
    const int fits = fits_into(trace, scenario, capacity_bytes, true)    ? 2
                     : fits_into(trace, scenario, capacity_bytes, false) ? 1
                                                                         : 0;
    std::printf("%lu %lu %lu %lu %d ", batch, peaks.live_bytes, peaks.allocated_bytes,
                peaks.reserved_bytes, fits);
  }
  const auto took = std::chrono::steady_clock::now() - began;
  std::printf("%ld\n", static_cast<long>(
                           std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
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
  LibraryTable table = library_table();
  if (argc == 2 && std::string(argv[1]) == "shipped") {
    const DeviceSpread spread = device_spread();
    std::printf("%lu %.4f %.4f\n", device_constant().bytes, spread.low, spread.high);
    return 0;
  }
  if (argc == 5 && std::string(argv[1]) == "equal") return compare(argv[2], argv[3], argv[4]);
  for (int i = 1; i < argc; ++i) {
    if (!set(table, argv[i])) {
      std::fprintf(stderr, "estimate_traces: not understood: %s\n", argv[i]);
      return 2;
    }
  }
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    predict(words, table);
    std::fflush(stdout);
  }
}
