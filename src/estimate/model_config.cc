#include "estimate/model_config.h"

#include <algorithm>

#include "estimate/parameters.h"

namespace gpumemprof {

uint64_t ConfigReader::count(const char* name, uint64_t fallback, uint64_t most, uint64_t least) {
  auto value = values_.count(name, fallback, least, most);
  if (value) return *value;
  if (!error_) error_ = value.error();
  return fallback;
}

uint64_t ConfigReader::required(const char* name, uint64_t most) {
  if (!values_.has(name)) refuse(ErrorCode::kBadInput, std::string("has no ") + name);
  return count(name, 1, most, 1);
}

double ConfigReader::share(const char* name, double fallback) {
  auto value = values_.share(name, fallback);
  if (value) return *value;
  if (!error_) error_ = value.error();
  return fallback;
}

void ConfigReader::heads(const char* groups, uint64_t usual_groups, const char* dim,
                         ModelShape* shape) {
  shape->kv_heads = count(groups, usual_groups, kMaxWidth, 1);
  if (shape->heads % shape->kv_heads != 0) {
    refuse(ErrorCode::kBadInput, groups + (": " + std::to_string(shape->kv_heads)) +
                                     " does not divide the " + std::to_string(shape->heads) +
                                     " heads");
  }
  shape->head_dim = count(dim, std::max<uint64_t>(1, shape->hidden / shape->heads), kMaxWidth, 1);
}

void ConfigReader::refuse(ErrorCode code, std::string message) {
  if (!error_) error_ = Error{code, std::move(message)};
}

bool is_megatron_config(const ConfigValues& values) {
  return !values.has("model_type") &&
         (values.has("num_layers") || values.has("encoder_num_layers")) &&
         values.has("hidden_size");
}

namespace {

constexpr double kMostParameters = 1e15;

Result<ModelShape> shape_of_dialect(const ConfigValues& values) {
  if (is_megatron_config(values)) return megatron_shape(values);
  if (values.has("model_type")) return huggingface_shape(values);
  return fail(ErrorCode::kUnsupported,
              "is not a known configuration: neither Hugging Face's (no model_type) nor Megatron's "
              "(no num-layers and hidden-size)");
}

}  // namespace

Result<ModelShape> model_shape(const ConfigValues& values) {
  auto shape = shape_of_dialect(values);
  // Each value is within its bounds; their product may not be, and what follows counts in 64 bits.
  if (shape && !(rough_parameter_count(*shape) < kMostParameters)) {
    return fail(ErrorCode::kBadInput, "describes a model of more than 10^15 parameters");
  }
  return shape;
}

}  // namespace gpumemprof
