#include "estimate/closed_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimate/activations.h"
#include "estimate/library_table.h"
#include "estimate/rank_bytes.h"

namespace gpumemprof {
namespace {

// Of the library's configurations that the formula was made on, nine of ten measured peaks lie
// between these parts of the estimate (docs/accuracy-megatron.md).
constexpr double kMegatronLow = 0.93, kMegatronHigh = 1.19;
// Nothing was measured on a GPU for these: a guess, and called so.
constexpr double kTransformersLow = 0.8, kTransformersHigh = 1.25;
// A caching allocator keeps more than is allocated. Below 90 % of use the authors of STAlloc speak
// of severe fragmentation, so that is the upper end.
constexpr double kReservedHigh = 1 / 0.9;
// The CUDA context alone is a few hundred MiB, by driver and GPU. Above it come handles and code of
// libraries: at most what the table of libraries has, which was fitted on models that use many.
constexpr double kContextUsual = 600.0 * (1 << 20);
constexpr double kMostModelBytes = 4e18;

uint64_t rounded(double bytes) { return static_cast<uint64_t>(std::llround(bytes)); }

/// "bf16" names several ways to train; which one is meant decides over twice the memory.
void add_precision(const TrainingSetup& setup, Prediction* out) {
  if (setup.fsdp || setup.precision == TrainingPrecision::kFp32) return;  // add_assumptions() says it
  const std::string name = precision_name(setup.precision);
  const std::string type = name.substr(name.find('-') + 1);
  out->assumptions.push_back(
      is_autocast(setup.precision)
          ? Assumption{"weights, gradients and the optimizer's state in fp32, autocast to " + type,
                       "--precision " + name}
      : setup.zero_stage > 0
          ? Assumption{"weights in " + type + "; ZeRO keeps an fp32 copy of them and fp32 states",
                       "--precision " + name + ", and DeepSpeed's way"}
          : Assumption{"weights, gradients and the optimizer's state in " + type +
                           ", no fp32 copy; bf16=True of Trainer is --precision amp-bf16",
                       "--precision " + name});
}

void add_assumptions(const ModelShape& shape, const TrainingSetup& setup, Prediction* out) {
  const auto add = [&](std::string what, std::string source) {
    out->assumptions.push_back({std::move(what), std::move(source)});
  };
  out->assumptions = shape.assumptions;
  const bool megatron = shape.code == ModelCode::kMegatron;
  add(megatron ? "run by Megatron-LM with Transformer Engine"
      : setup.inference ? "run by Transformers, without gradients"
                        : "run by Transformers in a plain training loop",
      "the kind of configuration");
  if (shape.quantization) {
    const std::string& method = shape.quantization->method;
    if (setup.inference)
      add(fmt::format("matrices of layers quantized by {}: {:.2f} bits a weight, scales included; "
                      "embeddings, norms and the output layer are not",
                      method, shape.quantization->bits),
          "quantization_config");
    else
      add("quantization_config (" + method + ") is left out: weights are trained in " +
              precision_name(setup.precision),
          "the kind of run");
  }
  if (!setup.inference) {
    if (!megatron) add_precision(setup, out);
    add(setup.attention == AttentionKernel::kFlash
            ? "attention by a flash kernel: scores are never stored whole"
            : "attention by separate operators: scores are stored",
        setup.attention == AttentionKernel::kFlash ? "default"
        : shape.has_eager_attention                ? "Transformers' default for this family"
                                                   : "configuration or option");
    if (shape.experts.count != 0) {
      add(setup.capacity_factor > 0 ? "each expert takes tokens up to its capacity"
                                    : "tokens spread evenly over experts",
          setup.capacity_factor > 0 ? "option" : "default");
    }
    if (setup.pipeline > 1) {
      add(setup.chunks > 1 ? "the interleaved schedule: chunks in flight by rank"
                           : "the 1F1B schedule",
          "default");
    }
    if (!megatron && setup.data * setup.context > 1 && setup.zero_stage == 0 && !setup.fsdp) {
      add("DistributedDataParallel keeps a second copy of the gradients in its buckets after the "
          "first step",
          "PyTorch's default");
    }
    if (!megatron && setup.fsdp) {
      add("FSDP's shards of weights and gradients, and the optimizer's states, are in fp32; layers "
          "in use are gathered in " +
              std::string(element_bytes(setup.precision) < 4 ? "two bytes a weight" : "fp32"),
          "FSDP's mixed precision over weights loaded in fp32");
    }
  } else {
    if (shape.latent) add("the KV cache holds compressed keys and values", "as vLLM and SGLang do");
    add((setup.names_sequence ? "a prompt of " + std::to_string(setup.prompt_tokens) + " tokens"
                              : "a prompt as long as the context, " +
                                    std::to_string(setup.prompt_tokens) + " tokens,") +
            " is computed at once, with the logits of " +
            (shape.is_encoder ? "every token" : "the last token"),
        setup.names_sequence ? "--sequence" : "default; change with --sequence");
  }
  add("workspaces of libraries: " + std::to_string(setup.workspace_bytes >> 20) +
          " MiB of the allocator",
      setup.measured_source.empty()
          ? "two of cuBLAS at 32 MiB, as on Hopper; change with --set workspace"
          : "two of cuBLAS, " + setup.measured_source + "; change with --set workspace");
  add(megatron ? "interval: 0.93 to 1.19 of the expected figure"
               : "interval: 0.8 to 1.25 of the expected figure, and no less than the weights, the "
                 "optimizer's state and the KV cache",
      megatron ? "the spread in docs/accuracy-megatron.md"
               : "a guess: there are no measured runs to compare with");
  add("reserved: up to a ninth more than allocated",
      "a rule of thumb; a closed form has no order of allocations");
  if (setup.device_constant_bytes != 0) {
    add("CUDA context and libraries: " + std::to_string(setup.device_constant_bytes >> 20) + " MiB",
        setup.measured_source.empty() ? "option" : setup.measured_source);
  } else {
    const DeviceConstant constant = device_constant();
    add("CUDA context and libraries: " + std::to_string(constant.least_bytes >> 20) + " to " +
            std::to_string(constant.bytes >> 20) + " MiB, 600 expected",
        std::string(constant.least_source) + "; the upper end is " + std::string(constant.source));
  }
}

/// What is there whatever the run does: bytes that follow from the configuration alone.
double certain_bytes(const std::vector<PredictedShare>& shares) {
  double out = 0;
  for (const PredictedShare& share : shares) {
    const bool is_certain = share.category == Category::kOptimizerState ||
                            share.category == Category::kKvCache || share.name == "weights";
    if (is_certain) out += static_cast<double>(share.bytes);
  }
  return out;
}

/// Arithmetic is exact where nothing of a run is in it.
void set_peaks(const ModelShape& shape, const TrainingSetup& setup, double total, Prediction* out) {
  const bool megatron = shape.code == ModelCode::kMegatron;
  const double low = megatron ? kMegatronLow : kTransformersLow,
               high = megatron ? kMegatronHigh : kTransformersHigh;
  const double at_least = megatron ? total * low : std::max(total * low, certain_bytes(out->at_peak));
  out->allocated = PredictedBytes{rounded(total), rounded(at_least), rounded(total * high)};
  const double reserved = total * (1 + kReservedHigh) / 2;
  out->reserved = PredictedBytes{rounded(reserved), rounded(at_least),
                                 rounded(total * high * kReservedHigh)};
  const double measured = static_cast<double>(setup.device_constant_bytes);
  const bool known = setup.device_constant_bytes != 0;
  const double least = static_cast<double>(device_constant().least_bytes),
               most = static_cast<double>(device_constant().bytes);
  out->device = PredictedBytes{rounded(reserved + (known ? measured : kContextUsual)),
                               rounded(at_least + (known ? measured : least)),
                               rounded(total * high * kReservedHigh + (known ? measured : most))};
}

}  // namespace

Result<Prediction> predict_closed_form(const ModelShape& shape, const TrainingSetup& setup) {
  RankBytes most;
  double most_total = -1;
  const uint64_t stages = setup.pipeline;
  for (uint64_t stage = 0; stage < stages; ++stage) {
    if (setup.stage == StageChoice::kFirst && stage != 0) continue;
    if (setup.stage == StageChoice::kLast && stage + 1 != stages) continue;
    if (stage > 1 && stage + 2 < stages) continue;  // those in the middle hold less than the second
    RankBytes rank = setup.inference ? inference_bytes(shape, setup, stage)
                                     : training_bytes(shape, setup, stage);
    const double total = rank.total();
    if (total > most_total) {
      most_total = total;
      most = std::move(rank);
    }
  }
  if (!(most_total < kMostModelBytes))
    return fail(ErrorCode::kUsage, "the sum exceeds any machine's memory");
  Prediction out;
  out.method = EstimateMethod::kClosedForm;
  out.batch = setup.batch;
  for (const auto& [key, bytes] : most.parts) {
    if (bytes >= 0.5) out.at_peak.push_back({key.second, key.first, rounded(bytes)});
  }
  std::ranges::stable_sort(out.at_peak, std::greater<>(), &PredictedShare::bytes);
  double total = 0;  // of the rounded parts, so that they add up
  for (const PredictedShare& share : out.at_peak) total += static_cast<double>(share.bytes);
  set_peaks(shape, setup, total, &out);
  add_assumptions(shape, setup, &out);
  if (stages > 1 && setup.stage == StageChoice::kMostLoaded) {
    out.assumptions.push_back({"the pipeline rank that needs most: " + most.name, "arithmetic"});
  }
  out.unknown.push_back("live: a closed form counts allocator blocks, not tensors.");
  if (setup.tensor * setup.pipeline * setup.context * setup.expert * setup.data > 1) {
    out.unknown.push_back(
        "NCCL's buffers: outside of the allocator, not included in the device figure.");
  }
  return out;
}

Result<ConfigurationCase> read_configuration(std::string_view text) {
  auto values = parse_config(text);
  if (!values) return std::unexpected(values.error());
  auto shape = model_shape(*values);
  if (!shape) return std::unexpected(shape.error());
  return ConfigurationCase{std::move(*values), std::move(*shape)};
}

}  // namespace gpumemprof
