#include "estimate/trace_prediction.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "base/size.h"

namespace gpumemprof {
namespace {

/// From its making to its end.
struct StorageLife {
  const TracedEvent* made = nullptr;
  StepPhase phase = StepPhase::kSetup;
  uint64_t made_at = 0, dropped_at = ~0ull;
};

Category category_of(const StorageLife& life, uint64_t backward_after) {
  switch (life.made->storage_kind) {
    case StorageKind::kParameter:
      return Category::kParameter;
    case StorageKind::kBuffer:
      return Category::kBuffer;
    case StorageKind::kGradient:
      return Category::kGradient;
    case StorageKind::kOptimizerState:
      return Category::kOptimizerState;
    case StorageKind::kInput:
      return Category::kInput;
    case StorageKind::kUntold:
      break;
  }
  switch (life.phase) {
    case StepPhase::kInput:
      return Category::kInput;
    case StepPhase::kForward:
      return life.dropped_at > backward_after ? Category::kActivation : Category::kTemporary;
    case StepPhase::kBackward:
    case StepPhase::kOptimizer:
      return Category::kTemporary;
    case StepPhase::kSetup:
    case StepPhase::kOther:
      break;
  }
  return Category::kUnknown;
}

/// The module that owns it: a parameter's name without its last part.
std::string owner(const StepTrace& trace, const TracedEvent& made) {
  const std::string& name = trace.names[made.module];
  const bool is_named_itself =
      made.storage_kind != StorageKind::kUntold && made.storage_kind != StorageKind::kInput;
  if (name.empty()) return "outside of modules";
  if (!is_named_itself) return name;
  const size_t dot = name.rfind('.');
  return dot == name.npos ? "the model itself" : name.substr(0, dot);
}

PredictedBytes exactly(uint64_t bytes) { return {bytes, bytes, bytes}; }

uint64_t times(uint64_t bytes, double factor) {
  return static_cast<uint64_t>(static_cast<double>(bytes) * factor);
}

EstimateMethod method_of(const LoopFacts& facts) {
  if (facts.method == "script") return EstimateMethod::kTraceOfScript;
  return facts.method == "host" ? EstimateMethod::kTraceOnHost : EstimateMethod::kTraceOfModel;
}

const char* phase_at(const StepTrace& trace, uint64_t event) {
  StepPhase phase = StepPhase::kSetup;
  for (uint64_t at = 0; at < trace.events.size() && at <= event; ++at) {
    if (trace.events[at].kind == TracedEvent::Kind::kPhase) phase = trace.events[at].phase;
  }
  constexpr const char* kNames[] = {"setup", "input", "forward", "backward", "optimizer"};
  const auto index = static_cast<size_t>(phase);
  return index < std::size(kNames) ? kNames[index] : "of another name";
}

LibraryTable table_of(const TraceScenario& scenario) {
  LibraryTable table = library_table();
  if (scenario.product_workspace_bytes)
    table.product_workspace_bytes = *scenario.product_workspace_bytes;
  return table;
}

DeviceConstant constant_of(const TraceScenario& scenario) {
  if (!scenario.device_constant_bytes) return device_constant();
  const uint64_t measured = *scenario.device_constant_bytes;
  return {measured, scenario.device_constant_source, measured, scenario.device_constant_source};
}

void assume(const StepTrace& trace, const TraceScenario& scenario, const StepPeaks& peaks,
            Prediction* prediction) {
  auto& list = prediction->assumptions;
  const DeviceConstant constant = constant_of(scenario);
  list.push_back({"CUDA context and library handles: " + format_bytes(constant.bytes),
                  std::string(constant.source)});
  if (constant.least_bytes < constant.bytes) {
    list.push_back({"on another GPU these may be as small as " +
                        format_bytes(constant.least_bytes) +
                        ", which the lower end allows for; gpumemprof calibrate measures them",
                    std::string(constant.least_source)});
  }
  if (scenario.product_workspace_bytes) {
    list.push_back(
        {"workspace of a cuBLAS handle: " + format_bytes(*scenario.product_workspace_bytes),
         scenario.device_constant_source});
  }
  list.push_back(
      {"intervals come from timm models trained in fp32 with momentum on one A100; nothing else "
       "was measured",
       "docs/accuracy.md"});
  const std::string settings = scenario.settings.empty() ? "default settings" : scenario.settings;
  list.push_back(
      {"the allocator of PyTorch " + release_name(scenario.release) + " with " + settings,
       "simulated"});
  if (!trace.convolutions.empty()) {
    list.push_back(
        {"workspaces of convolutions of up to " + format_bytes(peaks.workspace_bytes) +
             (trace.facts.cudnn_benchmark ? ", cudnn.benchmark on" : ", cudnn.benchmark off"),
         "fitted on an A100 40 GB"});
  }
  if (peaks.num_alloc_retries != 0 && !peaks.first_oom_event) {
    list.push_back(
        {"the device is full " +
             (peaks.num_alloc_retries == 1 ? "once"
                                           : std::to_string(peaks.num_alloc_retries) + " times") +
             ": the allocator releases cached memory and retries, which costs time",
         "simulated"});
  }
  for (const std::string& what : trace.facts.assumptions) list.push_back({what, "the tracer"});
}

}  // namespace

std::vector<PredictedShare> shares_at(const StepTrace& trace, uint64_t event) {
  std::vector<StorageLife> lives(trace.storages);
  std::vector<uint64_t> backward_begins;
  StepPhase phase = StepPhase::kSetup;
  for (uint64_t at = 0; at < trace.events.size(); ++at) {
    const TracedEvent& now = trace.events[at];
    if (now.kind == TracedEvent::Kind::kPhase) {
      phase = now.phase;
      if (phase == StepPhase::kBackward) backward_begins.push_back(at);
    } else if (now.kind == TracedEvent::Kind::kAlloc) {
      lives[now.index] = {&now, phase, at, ~0ull};
    } else if (now.kind == TracedEvent::Kind::kFree) {
      lives[now.index].dropped_at = at;
    }
  }
  absl::flat_hash_map<std::pair<std::string, Category>, uint64_t> sums;
  for (const StorageLife& life : lives) {
    if (life.made == nullptr || life.made_at > event || life.dropped_at <= event) continue;
    const auto next = std::ranges::upper_bound(backward_begins, life.made_at);
    const uint64_t backward_after = next == backward_begins.end() ? ~0ull - 1 : *next;
    sums[{owner(trace, *life.made), category_of(life, backward_after)}] += life.made->bytes;
  }
  std::vector<PredictedShare> shares;
  for (const auto& [key, bytes] : sums) shares.push_back({key.first, key.second, bytes});
  std::ranges::sort(shares, [](const PredictedShare& a, const PredictedShare& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return std::pair(a.name, a.category) < std::pair(b.name, b.category);
  });
  return shares;
}

Prediction predict_from_trace(const StepTrace& trace, const TraceScenario& scenario) {
  Prediction prediction;
  prediction.method = method_of(trace.facts);
  prediction.batch = trace.facts.batch;
  const StepPeaks peaks =
      simulate_steps(trace, scenario.config, scenario.release, table_of(scenario));
  prediction.unknown = trace.facts.unknown;
  if (peaks.is_beyond_measure) {
    prediction.unknown.push_back("the loop needs more memory than any device has");
    return prediction;
  }
  if (peaks.first_oom_event) {  // the figures are of what came before: no peaks of the loop
    prediction.unknown.push_back(
        "runs out of memory at " + format_bytes(scenario.config.capacity_bytes.value_or(0)) +
        " for the allocator (phase " + phase_at(trace, *peaks.first_oom_event) + ")");
    return prediction;
  }
  const DeviceSpread spread = device_spread();
  const DeviceConstant constants = constant_of(scenario);
  const uint64_t constant = constants.bytes;
  const uint64_t device = peaks.reserved_bytes + constant;
  PredictedBytes whole{device, times(device, spread.low), times(device, spread.high)};
  PredictedBytes reserved{peaks.reserved_bytes, 0, whole.high - constant};
  // Measured were whole devices: what is not the constant is the allocator's.
  reserved.low =
      std::min(peaks.reserved_bytes,
               std::max(peaks.live_bytes, whole.low > constant ? whole.low - constant : 0));
  prediction.live = exactly(peaks.live_bytes);
  // Workspaces in it are by fitted rules, as in the reserved bytes: as far off as the device is.
  prediction.allocated = {
      peaks.allocated_bytes,
      std::max(peaks.live_bytes,
               peaks.allocated_bytes - std::min(peaks.allocated_bytes, whole.expected - whole.low)),
      peaks.allocated_bytes + (whole.high - whole.expected)};
  prediction.reserved = reserved;
  // The spread is that of one GPU, whose constant was fitted. Another one's is not known.
  whole.low = std::min(whole.low, times(peaks.reserved_bytes, spread.low) + constants.least_bytes);
  prediction.device = whole;
  prediction.at_peak = shares_at(trace, peaks.live_event);
  assume(trace, scenario, peaks, &prediction);
  if (prediction.method != EstimateMethod::kTraceOfModel)
    prediction.unknown.push_back(
        "what the script does after its second step: longer sequences, validation, checkpoints.");
  return prediction;
}

AllocatorConfig config_within(const TraceScenario& scenario, uint64_t capacity_bytes,
                              bool by_upper_end) {
  const double headroom = by_upper_end ? std::max(1.0, device_spread().high) : 1.0;
  const uint64_t usable = times(capacity_bytes, 1 / headroom);
  const uint64_t constant = constant_of(scenario).bytes;
  AllocatorConfig config = scenario.config;
  config.capacity_bytes = usable > constant ? usable - constant : 0;
  return config;
}

bool fits_into(const StepTrace& trace, const TraceScenario& scenario, uint64_t capacity_bytes,
               bool by_upper_end) {
  const AllocatorConfig config = config_within(scenario, capacity_bytes, by_upper_end);
  const StepPeaks peaks = simulate_steps(trace, config, scenario.release, table_of(scenario));
  return !peaks.first_oom_event && !peaks.is_beyond_measure;
}

}  // namespace gpumemprof
