// What quantization_config of a config.json says of the weights of linear layers.
#include "base/in_quotes.h"
#include "estimate/model_config.h"

namespace gpumemprof {
namespace {

constexpr const char* kMember = "quantization_config.";

/// Packed weights; for each group along a row a scale in fp16 and a packed zero point, as GPTQ's
/// and AWQ's kernels read them.
double packed_bits(uint64_t bits, uint64_t group) {
  const double weight = static_cast<double>(bits);
  return group == 0 ? weight : weight + (16 + weight) / static_cast<double>(group);
}

/// bitsandbytes: a scale in fp32 for 64 weights of 4 bits; with double quantization one of a byte,
/// and one in fp32 for 256 of these.
double four_bit_blocks(bool double_quantization) {
  return 4 + (double_quantization ? 8 + 32.0 / 256 : 32) / 64;
}

}  // namespace

void read_quantization(ConfigReader& read, ModelShape& shape) {
  const auto member = [](const char* name) { return kMember + std::string(name); };
  const auto count = [&](const char* name, uint64_t fallback, uint64_t most) {
    return read.count(member(name).c_str(), fallback, most);
  };
  if (!read.has("quantization_config")) return;
  const std::string method = read.text(member("quant_method").c_str());
  double bits = 0;
  if (method == "gptq" || method == "awq") {
    const std::string group = member("group_size");
    const bool one_group = read.has(group.c_str()) && !read.is_positive(group.c_str());  // -1
    bits = packed_bits(count("bits", 4, 8), one_group ? 0 : count("group_size", 128, kMaxWidth));
  } else if (method == "bitsandbytes" && read.flag(member("load_in_4bit").c_str(), false)) {
    bits = four_bit_blocks(read.flag(member("bnb_4bit_use_double_quant").c_str(), false));
  } else if (method == "bitsandbytes") {
    bits = 8;  // and a scale a row
  } else if (method == "fp8") {
    const double block = static_cast<double>(count("weight_block_size", 0, kMaxWidth));
    bits = block == 0 ? 8 : 8 + 32 / (block * block);
  } else {
    return read.refuse(ErrorCode::kUnsupported,
                       "quantization_config has the quant_method " + in_quotes(method) +
                           ", which is not supported: gptq, awq, bitsandbytes and fp8 are; without "
                           "quantization_config the figures are those of unquantized weights");
  }
  shape.quantization = WeightQuantization{.method = method, .bits = bits};
}

}  // namespace gpumemprof
