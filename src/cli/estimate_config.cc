#include "cli/estimate.h"

#include <filesystem>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "estimate/configuration_answer.h"
#include "report/estimate_report.h"

namespace gpumemprof {
namespace {

/// A setting as an option of its own: `--tp 4` is `--set tp=4`.
struct SettingOption {
  const char* name;
  const char* help;
  const char* type = "N";  // null: a flag
};
constexpr SettingOption kSettingOptions[] = {
    {"--sequence", "tokens per sequence (default: from the configuration)"},
    {"--micro-batches", "micro-batches per step"},
    {"--tp", "tensor-parallel ranks"},
    {"--pp", "pipeline-parallel ranks"},
    {"--vpp", "layer chunks per pipeline rank"},
    {"--cp", "context-parallel ranks"},
    {"--ep", "expert-parallel ranks"},
    {"--dp", "data-parallel ranks"},
    {"--zero", "ZeRO stage, 0 to 3"},
    {"--context", "tokens in the KV cache (inference)"},
    {"--page", "tokens per page of the KV cache"},
    {"--sequence-parallel", "split along the sequence what tensor parallelism leaves whole",
     nullptr},
    {"--distributed-optimizer", "split the optimizer state over --dp", nullptr},
    {"--fsdp", "fully shard over --dp", nullptr},
    {"--kv-dtype", "dtype of the KV cache", "fp32|bf16|fp16|fp8|int8"},
    {"--table", "also show the peaks with other optimizers, precisions and checkpointing",
     nullptr},
};

Result<SetupOption> as_setting(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos) return fail(ErrorCode::kUsage, "--set takes KEY=VALUE");
  return SetupOption{text.substr(0, equals), text.substr(equals + 1)};
}

Result<ConfigurationRequest> request_of(const EstimateArguments& arguments) {
  if (!arguments.settings.empty()) {
    return fail(ErrorCode::kUsage,
                "--settings needs a trace or a program: a configuration has no order of "
                "allocations to replay");
  }
  ConfigurationRequest request;
  request.subject = std::filesystem::path(arguments.config).filename().string();
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) request.options.emplace_back(name, text);
  };
  add("batch", arguments.batch);
  add("optimizer", arguments.optimizer);
  add("precision", arguments.precision);
  add("device-constant", arguments.device_constant);
  if (!arguments.calibration.empty()) {
    auto found = read_calibration(arguments.calibration);
    if (!found) return std::unexpected(found.error());
    // Before what the user says: of two of a name the later counts.
    add("workspace", std::to_string(2 * found->product_workspace_bytes));
    add("device-constant", std::to_string(found->device_constant_bytes()));
    request.device_constant_source = calibration_source(*found);
  }
  if (arguments.checkpointing) add("checkpointing", "full");
  if (arguments.inference) add("inference", "true");
  for (const std::string& text : arguments.options) {
    if (text == "table=true") {
      request.table = true;
      continue;
    }
    auto setting = as_setting(text);
    if (!setting) return std::unexpected(setting.error());
    request.options.push_back(std::move(*setting));
  }
  const auto capacity = read_capacity(arguments.capacity);
  if (!capacity) return std::unexpected(capacity.error());
  request.capacity_bytes = *capacity;
  return request;
}

}  // namespace

void add_configuration_options(CLI::App& command, EstimateArguments* arguments) {
  for (const SettingOption& option : kSettingOptions) {
    const auto keep = [arguments, name = option.name](const std::string& value) {
      if (arguments->option_typed.empty()) arguments->option_typed = name;
      arguments->options.push_back(std::string(name + 2) + '=' + value);
    };
    CLI::Option* added =
        option.type ? command.add_option_function<std::string>(option.name, keep, option.help)
                          ->type_name(option.type)
                    : command.add_flag_callback(option.name, [keep] { keep("true"); }, option.help);
    added->group("Options of --config");
  }
}

int estimate_from_configuration(const EstimateArguments& arguments) {
  auto request = request_of(arguments);
  if (!request) return report_error("estimate", request.error());
  auto text = read_small_file(arguments.config, kMaxConfigBytes);
  if (!text) return report_error(arguments.config, text.error());
  if (!arguments.prices.empty()) {
    auto prices = read_small_file(arguments.prices, 1u << 20);
    if (!prices) return report_error(arguments.prices, prices.error());
    if (prices->empty())
      return report_error(arguments.prices, {ErrorCode::kBadInput, "is empty", {}});
    request->prices = std::move(*prices);
  }
  auto answer = answer_configuration(*text, *request);
  if (!answer) {
    const bool is_usage = answer.error().code == ErrorCode::kUsage;
    const bool is_prices = answer.error().message.starts_with("the price list");
    return report_error(is_prices  ? arguments.prices
                        : is_usage ? "estimate"
                                   : arguments.config,
                        answer.error());
  }
  std::vector<std::string> inputs = {arguments.config};
  if (!arguments.prices.empty()) inputs.push_back(arguments.prices);
  if (!arguments.calibration.empty()) inputs.push_back(arguments.calibration);
  const std::string& path = arguments.output;
  return write_output(
      arguments.format == "json"
          ? estimate_json(*answer)
          : fitted_to_terminal(estimate_text(*answer, report_columns(path)), path),
      path, inputs);
}

Result<Calibration> read_calibration(const std::string& path) {
  auto text = read_small_file(path, kMaxCalibrationBytes);
  auto found = text ? parse_calibration(*text) : std::unexpected(text.error());
  if (found) return found;
  Error error = found.error();
  error.message = "--calibration " + path + ": " + error.message;
  return std::unexpected(std::move(error));
}

}  // namespace gpumemprof
