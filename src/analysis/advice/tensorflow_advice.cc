#include "analysis/advice/tensorflow_advice.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <string>

#include "analysis/advice/practices.h"
#include "analysis/leaks/leak_findings.h"
#include "analysis/leaks/leak_names.h"
#include "analysis/pass/op_names.h"
#include "base/size.h"
#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kLeastBytes = 1 << 20;
constexpr uint64_t kLeastShare = 10;  // one part in so many of the peak

/// True for the scopes in which Keras computes losses and metrics: no layers.
bool is_of_loss(std::string_view layer) {
  return layer.contains("loss") || layer.contains("metric") || layer.contains("accuracy") ||
         layer.contains("crossentropy");
}

/// Whether the ops of the stack make a variable, which is eager by nature.
bool makes_variable(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    const std::string_view file = tables.strings.get(frame.file);
    return file.contains("/initializers/") || file.contains("/ops/resource_variable_ops.py");
  }) != 0;
}

bool is_in_named_layer(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    return tables.strings.get(frame.file) == kLayerScopeFile;
  }) != 0;
}

struct Share {
  uint64_t eager = 0, input = 0, layers = 0, peak = 0;
};

Share share_of(const DeviceAnalysis& device, const Tables& tables) {
  // Without Keras' names every scope may be a layer.
  const bool are_layers_named = tables.strings.find(kLayerScopeFile).has_value();
  Share share{.peak = device.figures.peak_bytes};
  WorkReader reader(tables);
  // What a variable took over, or a list keeps, is there in a graph as well.
  absl::flat_hash_map<uint32_t, uint64_t> kept;
  for (const Holder& holder : device.holders_before_exit) kept[holder.stack] = holder.bytes;
  for (const Holder& holder : device.holders_at_peak) {
    const Work work = reader.of(holder.stack);
    if (work.mode == ExecutionMode::kGraph) {
      const bool is_layer = (work.phase == Phase::kForward || work.phase == Phase::kGradient) &&
                            (!are_layers_named || is_in_named_layer(tables, holder.stack));
      if (is_layer && !work.layer.empty() && !is_of_loss(work.layer)) share.layers += holder.bytes;
    } else if (work.mode == ExecutionMode::kEager && work.phase != Phase::kOptimizer) {
      if (work.operation == "_EagerConst" || work.operation == "Const")
        share.input += holder.bytes;
      else if (work.phase != Phase::kInput && !makes_variable(tables, holder.stack))
        share.eager +=
            holder.bytes - (work.phase == Phase::kGradient
                                ? 0  // those of the last step are there at the end, too
                                : std::min(holder.bytes, kept[holder.stack]));
    }
  }
  return share;
}

bool counts(uint64_t bytes, uint64_t peak) {
  return bytes >= kLeastBytes && bytes >= peak / kLeastShare;
}

/// Features that the names of all ops show, whether or not they hold memory at the peak.
struct Seen {
  bool names = false, layers = false, layer_casts = false, datasets = false;
  bool keras = false;  ///< code of Keras ran: a scope of tf.Module or a function is no layer
};

Seen seen_ops(const Tables& tables) {
  Seen seen;
  for (uint32_t i = 0; i < tables.stacks.frame_count(); ++i) {
    const Frame& frame = tables.stacks.frame(i);
    const std::string_view op = tables.strings.get(frame.function);
    const std::string_view file = tables.strings.get(frame.file);
    seen.keras |= file.contains("/keras/") || file.contains("/tf_keras/");
    if (file != kOperationFile || op == kMadeBy) continue;
    const OperationName name = parse_operation_name(op);
    seen.names = true;
    seen.layers |= name.phase == Phase::kForward && !is_of_loss(name.layer);
    seen.layer_casts |= is_layer_cast(op);
    seen.datasets |= name.phase == Phase::kInput;
  }
  seen.layers &= seen.keras;
  return seen;
}

void add_eager(const Share& share, AdviceReport* report) {
  if (!counts(share.eager, share.peak)) return;
  report->advice.push_back({"tf_function",
                            "eager ops held " + format_bytes(share.eager) + " of " +
                                format_bytes(share.peak) +
                                " at the peak: an upper bound of the saving",
                            "Put the step under @tf.function (Keras: without run_eagerly=True), so "
                            "that tensors are freed after their last use",
                            share.eager,
                            {{"eager_bytes", share.eager}, {"peak_bytes", share.peak}}});
}

void add_precision(const Share& share, const Seen& seen, bool is_host, AdviceReport* report) {
  if (seen.layer_casts) return;  // it is in use
  if (!seen.layers) {
    report->unknown.emplace_back("mixed_precision",
                                 "the recording has no op of a layer of Keras in a graph, so its "
                                 "dtypes are unknown");
    return;
  }
  if (!counts(share.layers, share.peak)) return;
  const char* policy = is_host ? "mixed_bfloat16" : "mixed_float16";
  report->advice.push_back(
      {"mixed_precision",
       "layers held " + format_bytes(share.layers) + " of " + format_bytes(share.peak) +
           " at the peak, and no layer casts its inputs: the saving is at most half of it",
       std::string("Call tf.keras.mixed_precision.set_global_policy(\"") + policy +
           "\") before the model is created",
       share.layers / 2,
       {{"layer_bytes", share.layers}, {"peak_bytes", share.peak}}});
  if (is_host)
    report->advice.back().cost = "steps may take longer: most CPUs emulate half precision";
}

void add_input(const Share& share, const Seen& seen, AdviceReport* report) {
  if (seen.datasets || !counts(share.input, share.peak)) return;
  report->advice.push_back(
      {"tf_data",
       "arrays converted to tensors whole held " + format_bytes(share.input) + " of " +
           format_bytes(share.peak) + " at the peak, and tf.data was not used",
       "Read the data in batches: tf.data.Dataset.from_generator or a file format of tf.data's, "
       ".batch(…).prefetch(tf.data.AUTOTUNE)",
       share.input,
       {{"input_bytes", share.input}, {"peak_bytes", share.peak}}});
}

/// GPU memory that a pool reserved and never used: its regions' peak minus its blocks' peak.
void add_allocator(const Analysis& analysis, const Tables& tables, AdviceReport* report) {
  uint64_t regions = 0, blocks = 0;
  bool any_gpu = false;
  for (const DeviceAnalysis& device : analysis.devices) {
    if (device.device >= tables.devices.size()) continue;
    const Device& memory = tables.devices[device.device];
    if (memory.type != kTensorflowGpu) continue;
    any_gpu = true;
    (memory.layer == Layer::kDriver ? regions : blocks) += device.figures.peak_bytes;
  }
  if (!any_gpu || regions == 0) {
    const char* why = any_gpu ? "the recording does not say how much of the GPU the pool reserved"
                              : "the recording has no GPU memory";
    report->unknown.emplace_back("memory_growth", why);
    report->unknown.emplace_back("allocator", why);
    return;
  }
  const uint64_t unused = regions - std::min(regions, blocks);
  if (!counts(unused, regions)) return;
  report->advice.push_back({"allocator",
                            "the pool reserved " + format_bytes(regions) +
                                " of the GPU and had at most " + format_bytes(blocks) +
                                " of it in use",
                            "Set memory growth (tf.config.experimental.set_memory_growth, or "
                            "TF_FORCE_GPU_ALLOW_GROWTH=true), or "
                            "TF_GPU_ALLOCATOR=cuda_malloc_async when sizes vary much",
                            unused,
                            {{"region_bytes", regions}, {"block_bytes", blocks}}});
}

bool is_of_tensorflow(const DeviceAnalysis& device, const Tables& tables) {
  return device.device < tables.devices.size() && is_tensorflow(tables.devices[device.device]) &&
         tables.devices[device.device].layer != Layer::kDriver;
}

struct LeakAtPeak {
  const Finding* finding;
  uint64_t bytes;
};

std::vector<LeakAtPeak> leaks_at_peak(const Analysis& analysis, const DeviceAnalysis& device) {
  std::vector<LeakAtPeak> out;
  for (const Finding& one : analysis.findings) {
    const bool is_part = std::ranges::find(device.parts, one.device) != device.parts.end();
    if (one.kind != FindingKind::kLeak || (one.device != device.device && !is_part)) continue;
    out.push_back({&one, leak_bytes_at_peak(one, device).value_or(one.bytes.value_or(0))});
  }
  return out;
}

/// Why nothing of a step is suggested: most of the peak is leaks', which nothing else frees. Empty
/// where it is not.
std::string why_leaks_come_first(const std::vector<LeakAtPeak>& leaks, uint64_t peak_bytes) {
  uint64_t bytes = 0;
  for (const LeakAtPeak& leak : leaks) bytes += leak.bytes;
  if (2 * bytes <= peak_bytes) return {};
  return leaks.size() == 1
             ? "a leak has " + format_bytes(bytes) + " of the peak: end it, and record again"
             : std::to_string(leaks.size()) + " leaks have " + format_bytes(bytes) +
                   " of the peak: end them, and record again";
}

/// Those that hold a 20th of the peak.
void add_leaks(const std::vector<LeakAtPeak>& leaks, uint64_t peak_bytes, AdviceReport* report) {
  constexpr uint64_t kLeastShareOfLeak = 20;
  for (const auto& [finding, bytes] : leaks) {
    if (bytes < kLeastBytes || bytes < peak_bytes / kLeastShareOfLeak) continue;
    const bool is_named = !finding->name.empty() && finding->name != kGrowth;
    Advice advice{is_named ? finding->name : "leak", finding->title, finding->fix, bytes,
                  {{"kept_bytes", bytes}, {"peak_bytes", peak_bytes}}};
    advice.stack = finding->stack;
    report->advice.push_back(std::move(advice));
  }
}

}  // namespace

bool is_layer_cast(std::string_view op) {
  const OperationName name = parse_operation_name(op);
  if (name.phase != Phase::kForward || is_of_loss(name.layer)) return false;
  const std::string_view last = op.substr(op.rfind('/') + 1);
  return last == "Cast" || last.starts_with("Cast_");
}

AdviceReport advise_tensorflow(const Analysis& analysis, const Tables& tables) {
  AdviceReport report;
  const DeviceAnalysis* main = scarcest_device(analysis, tables, is_of_tensorflow);
  if (!main || main->figures.peak_bytes == 0) return report;
  report.applies = true;
  const Seen seen = seen_ops(tables);
  constexpr std::array kOfTheStep = {"tf_function", "mixed_precision", "tf_data"};
  const std::vector<LeakAtPeak> leaks = leaks_at_peak(analysis, *main);
  const uint64_t peak_bytes = main->figures.peak_bytes;
  add_leaks(leaks, peak_bytes, &report);
  if (const std::string why = why_leaks_come_first(leaks, peak_bytes); !why.empty()) {
    for (const char* kind : kOfTheStep) report.unknown.emplace_back(kind, why);
  } else if (seen.names) {
    const Share share = share_of(*main, tables);
    add_eager(share, &report);
    add_precision(share, seen, is_host_memory(tables.devices[main->device]), &report);
    add_input(share, seen, &report);
  } else {
    for (const char* kind : kOfTheStep)
      report.unknown.emplace_back(kind, "the recording has no names of ops");
  }
  add_allocator(analysis, tables, &report);
  report.unknown.emplace_back("distribution",
                              "the recording does not say how many GPUs there were");
  std::ranges::stable_sort(report.advice, std::greater(), &Advice::bytes);
  return report;
}

}  // namespace gpumemprof
