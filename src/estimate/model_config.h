// From a configuration to the shape of its model: Hugging Face's config.json and Megatron's
// arguments, told apart by what they hold.
#pragma once

#include "estimate/config_values.h"
#include "estimate/model_shape.h"

namespace gpumemprof {

/// Bounds of what is believed: far above any model, far below what could overflow 64 bits when
/// multiplied.
inline constexpr uint64_t kMaxLayers = 4096, kMaxWidth = 1u << 20, kMaxVocabulary = 1u << 24,
                          kMaxExperts = 1u << 16, kMaxTokens = 1u << 27;

/// Errors: kBadInput, kUnsupported; one sentence.
Result<ModelShape> model_shape(const ConfigValues& values);

bool is_megatron_config(const ConfigValues& values);

// One a dialect.
Result<ModelShape> huggingface_shape(const ConfigValues& values);
Result<ModelShape> megatron_shape(const ConfigValues& values);

class ConfigReader;
/// quantization_config, where there is one.
void read_quantization(ConfigReader& read, ModelShape& shape);

/// Reads values and keeps the first error, so that a dialect is one list of reads.
class ConfigReader {
 public:
  explicit ConfigReader(const ConfigValues& values) : values_(values) {}

  uint64_t count(const char* name, uint64_t fallback, uint64_t most, uint64_t least = 0);
  /// An error where it is absent.
  uint64_t required(const char* name, uint64_t most);
  double share(const char* name, double fallback);
  bool flag(const char* name, bool fallback) const { return values_.flag(name, fallback); }
  bool is_positive(const char* name) const { return values_.is_positive(name); }
  std::string text(const char* name) const { return values_.text(name); }
  bool has(const char* name) const { return values_.has(name); }
  bool is_null(const char* name) const { return values_.is_null(name); }
  const ConfigList* list(const char* name) const { return values_.list(name); }
  const ConfigTexts* texts(const char* name) const { return values_.texts(name); }
  /// Groups of heads that share keys and values, and how wide a head is; `heads` is read.
  void heads(const char* groups, uint64_t usual_groups, const char* dim, ModelShape* shape);
  void refuse(ErrorCode code, std::string message);
  const std::optional<Error>& error() const { return error_; }

 private:
  const ConfigValues& values_;
  std::optional<Error> error_;
};

}  // namespace gpumemprof
