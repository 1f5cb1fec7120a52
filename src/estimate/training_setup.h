// How a model would be run: batch, precision, optimizer, and over how many devices in which ways.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "estimate/config_values.h"
#include "estimate/model_shape.h"

namespace gpumemprof {

enum class OptimizerKind : uint8_t {
  kNone,
  kSgd,
  kMomentum,
  kAdam,
  kAdam8bit,
  kAdafactor,
  kRmsprop,
  kAdagrad
};
enum class TrainingPrecision : uint8_t { kFp32, kBf16, kFp16, kAmpBf16, kAmpFp16 };
enum class RecomputeMode : uint8_t { kNone, kSelective, kFull };
enum class AttentionKernel : uint8_t { kFlash, kUnfused };
enum class StageChoice : uint8_t { kMostLoaded, kFirst, kLast };

/// Megatron's `--recompute-modules`: what selective recomputation computes again.
struct RecomputedModules {
  bool core_attention = true;  ///< "core_attn", its default: what lies between queries and output
  bool norms = false;          ///< "layernorm": those before attention and MLP
  bool latent_up = false;      ///< "mla_up_proj": opened queries, keys and values
  bool mlp = false;            ///< "mlp": of layers without experts
  bool expert_activation = false;  ///< "moe_act"
  bool experts = false;            ///< "moe": the whole of them, with router and shared ones
  bool shared_experts = false;     ///< "shared_experts"
};

struct TrainingSetup {
  bool inference = false;
  uint64_t batch = 1;             ///< sequences a device and micro batch
  uint64_t sequence = 0;          ///< tokens; of the encoder where there is one
  uint64_t decoder_sequence = 0;  ///< of a decoder behind an encoder
  uint64_t micro_batches = 1;     ///< a step, one after the other

  OptimizerKind optimizer = OptimizerKind::kAdam;
  TrainingPrecision precision = TrainingPrecision::kBf16;
  RecomputeMode recompute = RecomputeMode::kNone;
  RecomputedModules recomputed;  ///< where that is kSelective, of Megatron alone
  AttentionKernel attention = AttentionKernel::kFlash;
  bool fused_loss = false;  ///< Megatron: the fused cross entropy; else: logits are never whole

  uint64_t tensor = 1, pipeline = 1, chunks = 1, context = 1, expert = 1, expert_tensor = 1,
           data = 1;
  bool sequence_parallel = false, distributed_optimizer = false, fsdp = false;
  uint64_t zero_stage = 0;
  StageChoice stage = StageChoice::kMostLoaded;

  uint64_t workspace_bytes = 0;  ///< of libraries, taken from the allocator
  uint64_t device_constant_bytes =
      0;                        ///< context and libraries, where they were measured; 0: unknown
  std::string measured_source;  ///< of the two above, where they were measured; may be empty
  double capacity_factor = 0;   ///< of experts; 0: every expert gets the same share of the tokens
  uint64_t cache_element_bytes = 0, context_tokens = 0, page_tokens = 1;  ///< inference
  /// Inference: tokens that are computed at once. The context, where `names_sequence` is not set.
  uint64_t prompt_tokens = 0;
  bool names_sequence = false;  ///< --sequence was given; the configuration's own is not meant
};

/// One thing that the user said: "tp" and "4".
using SetupOption = std::pair<std::string, std::string>;

/// What the configuration says of the run (Megatron's does), overruled by `options`. Names of
/// options: batch, sequence, decoder-sequence, micro-batches, optimizer, precision, checkpointing,
/// attention, fused-loss, tp, pp, vpp, cp, ep, etp, dp, sequence-parallel, distributed-optimizer,
/// zero, fsdp, stage, workspace, device-constant, capacity-factor, inference, kv-dtype, context,
/// page. Errors: kUsage for an option, kBadInput for the file; one sentence.
Result<TrainingSetup> training_setup(const ConfigValues& values, const ModelShape& shape,
                                     const std::vector<SetupOption>& options);

const char* optimizer_name(OptimizerKind kind);
const char* precision_name(TrainingPrecision precision);
const char* recompute_name(RecomputeMode mode);
/// "training, adamw, bf16, batch 4 x 4096 tokens, tp 2, pp 4"
std::string setup_words(const TrainingSetup& setup);

}  // namespace gpumemprof
