#include "estimate/training_setup.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/size.h"
#include "estimate/model_config.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kMostRanks = 1u << 20;

template <class Kind>
struct Word {
  const char* text;
  Kind kind;
};

constexpr std::array kOptimizers = {Word{"adamw", OptimizerKind::kAdam},
                                    Word{"adam", OptimizerKind::kAdam},
                                    Word{"sgd", OptimizerKind::kSgd},
                                    Word{"momentum", OptimizerKind::kMomentum},
                                    Word{"adamw8bit", OptimizerKind::kAdam8bit},
                                    Word{"adafactor", OptimizerKind::kAdafactor},
                                    Word{"rmsprop", OptimizerKind::kRmsprop},
                                    Word{"adagrad", OptimizerKind::kAdagrad},
                                    Word{"none", OptimizerKind::kNone}};
constexpr std::array kPrecisions = {
    Word{"fp32", TrainingPrecision::kFp32},        Word{"tf32", TrainingPrecision::kFp32},
    Word{"bf16", TrainingPrecision::kBf16},        Word{"fp16", TrainingPrecision::kFp16},
    Word{"amp-bf16", TrainingPrecision::kAmpBf16}, Word{"amp-fp16", TrainingPrecision::kAmpFp16}};
constexpr std::array kRecomputes = {Word{"none", RecomputeMode::kNone},
                                    Word{"selective", RecomputeMode::kSelective},
                                    Word{"full", RecomputeMode::kFull}};
constexpr std::array kAttentions = {Word{"flash", AttentionKernel::kFlash},
                                    Word{"unfused", AttentionKernel::kUnfused}};
constexpr std::array kStages = {Word{"most", StageChoice::kMostLoaded},
                                Word{"first", StageChoice::kFirst},
                                Word{"last", StageChoice::kLast}};

template <class Words, class Kind>
bool find_word(const Words& words, std::string_view text, Kind* out) {
  for (const auto& word : words) {
    if (text == word.text) {
      *out = word.kind;
      return true;
    }
  }
  return false;
}

template <class Words>
std::string all_words(const Words& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + std::string(word.text);
  return out;
}

template <class Words, class Kind>
const char* word_of(const Words& words, Kind kind) {
  for (const auto& word : words) {
    if (word.kind == kind) return word.text;
  }
  return "";
}

/// "[core_attn moe_act]", "core_attn,moe_act" or the like, as people write it in these files.
void read_recomputed_modules(ConfigReader& read, RecomputedModules* modules) {
  const std::string text = read.text("recompute_modules");
  if (text.empty()) return;
  *modules = {.core_attention = false};
  const std::pair<const char*, bool*> names[] = {
      {"core_attn", &modules->core_attention},     {"layernorm", &modules->norms},
      {"mla_up_proj", &modules->latent_up},        {"mlp", &modules->mlp},
      {"moe_act", &modules->expert_activation},    {"moe", &modules->experts},
      {"shared_experts", &modules->shared_experts}};
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz_";
  for (size_t begin = 0; (begin = text.find_first_of(kLetters, begin)) != text.npos;) {
    const size_t end = std::min(text.find_first_not_of(kLetters, begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const auto known =
        std::ranges::find_if(names, [&](const auto& one) { return word == one.first; });
    if (known == std::end(names))
      return read.refuse(ErrorCode::kBadInput,
                         "recompute_modules: there is no " + word.substr(0, 40) +
                             ": core_attn, layernorm, mla_up_proj, mlp, moe_act, moe and "
                             "shared_experts are");
    *known->second = true;
    begin = end;
  }
}

/// One option after the other; the first that makes no sense is the error.
class OptionTaker {
 public:
  explicit OptionTaker(TrainingSetup* setup) : setup_(setup) {}

  Status take(const SetupOption& option) {
    const auto& [name, text] = option;
    TrainingSetup& s = *setup_;
    if (name == "optimizer") return word(option, kOptimizers, &s.optimizer);
    if (name == "precision") return word(option, kPrecisions, &s.precision);
    if (name == "checkpointing") return word(option, kRecomputes, &s.recompute);
    if (name == "attention") return word(option, kAttentions, &s.attention);
    if (name == "stage") return word(option, kStages, &s.stage);
    if (name == "kv-dtype") return cache_type(option);
    if (name == "workspace") return size(option, &s.workspace_bytes);
    if (name == "device-constant") return size(option, &s.device_constant_bytes);
    if (name == "capacity-factor") return factor(option);
    for (const auto& [known, target] : flags()) {
      if (name == known) return flag(option, target);
    }
    for (const auto& [known, target, most] : counts()) {
      if (name == known) return count(option, target, most);
    }
    return fail(
        ErrorCode::kUsage,
        "unknown setting " + name +
            "; known are batch, sequence, decoder-sequence, micro-batches, optimizer, precision, "
            "checkpointing, attention, fused-loss, tp, pp, vpp, cp, ep, etp, dp, "
            "sequence-parallel, distributed-optimizer, zero, fsdp, stage, workspace, "
            "device-constant, capacity-factor, inference, kv-dtype, context, page");
  }

 private:
  struct Count {
    const char* name;
    uint64_t* target;
    uint64_t most;
  };
  std::vector<std::pair<const char*, bool*>> flags() {
    TrainingSetup& s = *setup_;
    return {{"fused-loss", &s.fused_loss},
            {"sequence-parallel", &s.sequence_parallel},
            {"distributed-optimizer", &s.distributed_optimizer},
            {"fsdp", &s.fsdp},
            {"inference", &s.inference}};
  }
  std::vector<Count> counts() {
    TrainingSetup& s = *setup_;
    return {{"batch", &s.batch, kMaxTokens},
            {"sequence", &s.sequence, kMaxTokens},
            {"decoder-sequence", &s.decoder_sequence, kMaxTokens},
            {"micro-batches", &s.micro_batches, kMaxTokens},
            {"tp", &s.tensor, kMostRanks},
            {"pp", &s.pipeline, kMostRanks},
            {"vpp", &s.chunks, kMaxLayers},
            {"cp", &s.context, kMostRanks},
            {"ep", &s.expert, kMostRanks},
            {"etp", &s.expert_tensor, kMostRanks},
            {"dp", &s.data, kMostRanks},
            {"zero", &s.zero_stage, 3},
            {"context", &s.context_tokens, kMaxTokens},
            {"page", &s.page_tokens, kMaxTokens}};
  }

  template <class Words, class Kind>
  Status word(const SetupOption& option, const Words& words, Kind* out) {
    if (find_word(words, option.second, out)) return {};
    return fail(ErrorCode::kUsage, option.first + " is one of " + all_words(words));
  }
  Status flag(const SetupOption& option, bool* out) {
    *out = option.second.empty() || option.second == "true" || option.second == "1";
    if (*out || option.second == "false" || option.second == "0") return {};
    return fail(ErrorCode::kUsage, option.first + " is true or false");
  }
  Status count(const SetupOption& option, uint64_t* out, uint64_t most) {
    const std::string& text = option.second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
    const uint64_t least = option.first == "zero" ? 0 : 1;
    if (error == std::errc() && end == text.data() + text.size() && *out >= least && *out <= most)
      return {};
    return fail(ErrorCode::kUsage, option.first + " is a number from " + std::to_string(least) +
                                       " to " + std::to_string(most));
  }
  Status size(const SetupOption& option, uint64_t* out) {
    auto bytes = parse_size(option.second);
    if (!bytes) return std::unexpected(bytes.error());
    *out = *bytes;
    return {};
  }
  Status factor(const SetupOption& option) {
    const std::string& text = option.second;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), setup_->capacity_factor);
    if (error == std::errc() && end == text.data() + text.size() && setup_->capacity_factor >= 0 &&
        setup_->capacity_factor <= 1000) {
      return {};
    }
    return fail(ErrorCode::kUsage, "capacity-factor is a number from 0 to 1000");
  }
  Status cache_type(const SetupOption& option) {
    constexpr std::array kTypes = {Word<uint64_t>{"fp32", 4}, Word<uint64_t>{"bf16", 2},
                                   Word<uint64_t>{"fp16", 2}, Word<uint64_t>{"fp8", 1},
                                   Word<uint64_t>{"int8", 1}};
    return word(option, kTypes, &setup_->cache_element_bytes);
  }

  TrainingSetup* setup_;
};

/// Megatron's arguments say how it is run, too.
void take_megatron(ConfigReader& read, const ModelShape& shape, TrainingSetup& s) {
  s.batch = read.count("micro_batch_size", 1, kMaxTokens, 1);
  s.sequence =
      read.count("seq_length", read.count("encoder_seq_length", 0, kMaxTokens), kMaxTokens);
  s.decoder_sequence = read.count("decoder_seq_length", 0, kMaxTokens);
  s.tensor = read.count("tensor_model_parallel_size", 1, kMostRanks, 1);
  s.pipeline = read.count("pipeline_model_parallel_size", 1, kMostRanks, 1);
  s.context = read.count("context_parallel_size", 1, kMostRanks, 1);
  s.expert = read.count("expert_model_parallel_size", 1, kMostRanks, 1);
  s.expert_tensor = read.count("expert_tensor_parallel_size", s.tensor, kMostRanks, 1);
  s.data = read.count("data_parallel_size", 1, kMostRanks, 1);
  s.chunks = read.count("num_virtual_stages_per_pipeline_rank", 1, kMaxLayers, 1);
  const uint64_t per_chunk = read.count("num_layers_per_virtual_pipeline_stage", 0, kMaxLayers);
  if (per_chunk != 0) s.chunks = std::max<uint64_t>(1, shape.layers / s.pipeline / per_chunk);
  const uint64_t global = read.count("global_batch_size", 0, 1u << 30);
  if (global != 0) s.micro_batches = std::max<uint64_t>(1, global / s.batch / s.data);
  s.sequence_parallel = read.flag("sequence_parallel", false) && s.tensor > 1;
  s.distributed_optimizer = read.flag("use_distributed_optimizer", false);
  s.fsdp = read.flag("use_torch_fsdp2", false) || read.flag("use_megatron_fsdp", false);
  s.fused_loss = read.flag("cross_entropy_loss_fusion", false);
  s.precision = read.flag("bf16", false)   ? TrainingPrecision::kBf16
                : read.flag("fp16", false) ? TrainingPrecision::kFp16
                                           : TrainingPrecision::kFp32;
  const std::string granularity = read.text("recompute_granularity");
  if (granularity == "full") s.recompute = RecomputeMode::kFull;
  if (granularity == "selective") s.recompute = RecomputeMode::kSelective;
  read_recomputed_modules(read, &s.recomputed);
  if (read.text("attention_backend") == "unfused") s.attention = AttentionKernel::kUnfused;
  if (read.text("optimizer") == "sgd") s.optimizer = OptimizerKind::kMomentum;
}

Status check(const ModelShape& shape, const TrainingSetup& s) {
  const auto divides = [](uint64_t part, uint64_t whole) { return whole % part == 0; };
  const auto wrong = [](std::string text) { return fail(ErrorCode::kUsage, std::move(text)); };
  if (!divides(s.tensor, shape.heads))
    return wrong("tp does not divide the " + std::to_string(shape.heads) + " heads");
  if (s.pipeline * s.chunks > shape.layers + shape.encoder_layers)
    return wrong("there are more stages than layers");
  if (s.pipeline > 1 && shape.encoder_layers != 0)
    return wrong("pp with an encoder and a decoder is not supported");
  if (s.expert > 1 && shape.experts.count == 0)
    return wrong("ep needs a model with experts; this one has none");
  if (s.expert > 1 && !divides(s.expert, shape.experts.count))
    return wrong("ep does not divide the experts");
  const uint64_t dense = s.tensor * s.context * s.data, experts = s.expert * s.expert_tensor;
  if (s.expert > 1 && !divides(dense, experts) && !divides(experts, dense))
    return wrong(std::to_string(experts) + " ranks of experts and " + std::to_string(dense) +
                 " of the rest are no one layout: one has to be a multiple of the other");
  if (s.context > 1 && !divides(s.context, s.sequence))
    return wrong("cp does not divide the sequence");
  if (s.inference && s.prompt_tokens > s.context_tokens)
    return wrong("a prompt of " + std::to_string(s.prompt_tokens) +
                 " tokens (sequence) is longer than the context of " +
                 std::to_string(s.context_tokens));
  if (s.distributed_optimizer && shape.code != ModelCode::kMegatron)
    return wrong("distributed-optimizer is Megatron's option; use --zero 1");
  if (s.zero_stage > 0 && s.fsdp) return wrong("zero and fsdp are the same thing: give one");
  const uint64_t longest = s.inference ? std::max(s.context_tokens, s.prompt_tokens) : s.sequence;
  if (shape.learned_positions != 0 && longest > shape.learned_positions)
    return wrong("the model has a table of " + std::to_string(shape.learned_positions) +
                 " positions: " + std::to_string(longest) + " tokens cannot be run");
  if (s.zero_stage > 0 && s.distributed_optimizer)
    return wrong("zero and distributed-optimizer are the same thing: give one");
  return {};
}

/// Options that this kind of run or model does not have, and those that need another one.
Status check_options(const ModelShape& shape, const TrainingSetup& s,
                     const std::vector<SetupOption>& options) {
  constexpr std::array kOfInference = {"context", "kv-dtype", "page"};
  constexpr std::array kOfTraining = {"optimizer", "checkpointing", "micro-batches", "zero",
                                      "fsdp", "distributed-optimizer", "fused-loss", "vpp", "cp",
                                      "sequence-parallel", "capacity-factor"};
  for (const auto& [name, text] : options) {
    if (text == "false" || text == "0" || text == "none") continue;
    const auto is_name = [&](const char* one) { return name == one; };
    const bool is_of_cache = std::ranges::any_of(kOfInference, is_name);
    if (is_of_cache && !s.inference)
      return fail(ErrorCode::kUsage, name + " is of the KV cache: give it with --inference");
    if (is_of_cache && shape.is_encoder)
      return fail(ErrorCode::kUsage, name + " is of the KV cache, and this model has none");
    if (s.inference && std::ranges::any_of(kOfTraining, is_name))
      return fail(ErrorCode::kUsage, name + " is of training: give it without --inference");
    if ((name == "zero" || name == "fsdp") && s.data * s.context == 1)
      return fail(ErrorCode::kUsage, name + " splits over data-parallel ranks: give --dp");
  }
  return {};
}

}  // namespace

Result<TrainingSetup> training_setup(const ConfigValues& values, const ModelShape& shape,
                                     const std::vector<SetupOption>& options) {
  TrainingSetup setup;
  setup.workspace_bytes = 64u << 20;
  ConfigReader read(values);
  if (shape.code == ModelCode::kMegatron) {
    take_megatron(read, shape, setup);
  } else if (shape.weight_bytes == 4) {
    setup.precision = TrainingPrecision::kFp32;
  }
  if (shape.has_eager_attention) setup.attention = AttentionKernel::kUnfused;
  if (read.error()) return std::unexpected(*read.error());
  const auto names = [&](const char* name) {
    return std::ranges::any_of(options,
                               [&](const SetupOption& option) { return option.first == name; });
  };
  const bool names_expert_tensor = names("etp");
  const bool expert_tensor_from_file = values.has("expert_tensor_parallel_size");
  OptionTaker taker(&setup);
  for (const SetupOption& option : options) {
    if (auto done = taker.take(option); !done) return std::unexpected(done.error());
  }
  // Megatron splits experts like the rest; elsewhere expert parallelism takes the place of that.
  const bool are_whole = shape.code == ModelCode::kTransformers && setup.expert > 1;
  if (!names_expert_tensor && !expert_tensor_from_file)
    setup.expert_tensor = are_whole ? 1 : setup.tensor;
  if (setup.sequence == 0) setup.sequence = shape.trained_positions;
  setup.names_sequence = names("sequence");
  if (setup.inference && setup.sequence == 0) setup.sequence = setup.context_tokens;
  if (setup.sequence == 0) {
    return fail(ErrorCode::kUsage, "the configuration has no sequence length: give --sequence");
  }
  if (shape.encoder_layers != 0 && setup.decoder_sequence == 0)
    setup.decoder_sequence = setup.sequence;
  if (setup.context_tokens == 0) setup.context_tokens = setup.sequence;
  setup.prompt_tokens = setup.names_sequence ? setup.sequence : setup.context_tokens;
  if (setup.cache_element_bytes == 0)
    setup.cache_element_bytes = setup.precision == TrainingPrecision::kFp32 ? 4 : 2;
  if (auto done = check(shape, setup); !done) return std::unexpected(done.error());
  if (auto done = check_options(shape, setup, options); !done) return std::unexpected(done.error());
  return setup;
}

const char* optimizer_name(OptimizerKind kind) { return word_of(kOptimizers, kind); }
const char* precision_name(TrainingPrecision precision) { return word_of(kPrecisions, precision); }
const char* recompute_name(RecomputeMode mode) { return word_of(kRecomputes, mode); }

std::string setup_words(const TrainingSetup& s) {
  std::string out =
      s.inference ? "inference" : "training, " + std::string(optimizer_name(s.optimizer));
  out += ", " + std::string(precision_name(s.precision));
  if (s.inference) {
    out += ", context " + std::to_string(s.context_tokens);
    if (s.names_sequence) out += ", prompt " + std::to_string(s.prompt_tokens);
  } else {
    out += ", sequence " + std::to_string(s.sequence);
    if (s.recompute != RecomputeMode::kNone)
      out += ", checkpointing " + std::string(recompute_name(s.recompute));
  }
  const std::pair<const char*, uint64_t> ways[] = {{"tp", s.tensor},  {"pp", s.pipeline},
                                                   {"vpp", s.chunks}, {"cp", s.context},
                                                   {"ep", s.expert},  {"dp", s.data}};
  for (const auto& [name, ranks] : ways) {
    if (ranks > 1) out += ", " + std::string(name) + ' ' + std::to_string(ranks);
  }
  if (s.sequence_parallel) out += ", sequence parallel";
  if (s.distributed_optimizer) out += ", distributed optimizer";
  if (s.zero_stage != 0) out += ", ZeRO stage " + std::to_string(s.zero_stage);
  if (s.fsdp) out += ", FSDP";
  const uint64_t gpus = s.pipeline * std::max(s.tensor * s.context * s.data,
                                              s.expert > 1 ? s.expert * s.expert_tensor : 1);
  if (gpus > 1) out += " on " + std::to_string(gpus) + " GPUs";
  return out;
}

}  // namespace gpumemprof
