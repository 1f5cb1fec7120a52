// gpumemprof estimate: what a run will need, before it is paid for.
#include <algorithm>
#include <memory>
#include <string>

#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/estimate.h"
#include "cli/help.h"
#include "cli/options.h"

namespace gpumemprof {
namespace {

/// As the parser leaves them; lives as long as the parser.
struct EstimateCommandLine {
  EstimateArguments arguments;
  std::vector<std::string> parsed;   // the command as the parser took it apart
  std::string wrong_option;  // a sentence; empty where there is none
};

int usage(const char* wrong) { return report_error("estimate", {ErrorCode::kUsage, wrong, {}}); }

int estimate_command(EstimateCommandLine& line) {
  EstimateArguments& arguments = line.arguments;
  const int subjects = !line.parsed.empty() + !arguments.model.empty() + !arguments.config.empty() +
                       !arguments.traces.empty();
  if (subjects == 0) {
    return usage(
        "give what to estimate: -- COMMAND, --model timm:NAME, --config FILE or --trace FILE");
  }
  if (subjects > 1) return usage("give exactly one of -- COMMAND, --model, --config and --trace");
  const bool is_command = !line.parsed.empty() && arguments.target.empty();
  if (!is_command && !line.wrong_option.empty()) return wrong_usage(line.wrong_option);
  if (!arguments.batch.empty() && arguments.batch != "auto" &&
      (arguments.batch.size() > 9 ||
       !std::ranges::all_of(arguments.batch, [](char c) { return c >= '0' && c <= '9'; }) ||
       std::stoul(arguments.batch) == 0)) {
    return usage("--batch takes a number from 1 to 999999999, or auto");
  }
  if (arguments.batch == "auto" && arguments.capacity.empty()) {
    return usage("--batch auto finds the largest batch that fits: give the size with --capacity");
  }
  if (!arguments.target.empty()) {
    if (line.parsed.size() != 1)
      return usage("--target takes one exported model: --target cpu model.onnx");
    return estimate_exported(arguments, line.parsed[0]);
  }
  if (!arguments.calibration.empty() && !arguments.device_constant.empty())
    return usage("--calibration already contains a --device-constant: give only one");
  if (!arguments.dims.empty())
    return usage("--dim goes with an exported model: --target cpu MODEL");
  if (!arguments.config.empty()) return estimate_from_configuration(arguments);
  if (!line.parsed.empty()) {
    auto words = command_words("estimate", line.parsed, line.wrong_option);
    if (!words) return report_error("", words.error());
    arguments.command = std::move(*words);
  }
  return estimate_by_tracing(arguments);
}

void add_what(CLI::App& command, EstimateArguments& arguments) {
  add_value(
      &command, "--model", "LIBRARY:NAME", arguments.model,
      "a timm or torchvision model in a standard training loop: timm:NAME or torchvision:NAME");
  add_value(&command, "--config", "FILE", arguments.config,
            "configuration of a language model; the estimate is a closed form");
  add_repeatable(&command, "--trace", "FILE", arguments.traces,
                 "an existing trace (docs/estimate-trace.md); two, at two batch sizes, cover all "
                 "batch sizes");
  command
      .add_option("--target", arguments.target,
                  "cpu or mobile: an exported model (.onnx, .pte or .pt2) that runs without a GPU, "
                  "measured on this machine's CPU")
      ->check(CLI::IsMember({"cpu", "mobile"}));
  add_repeatable(&command, "--dim", "NAME=N", arguments.dims,
                 "size of an open input dimension of an exported model, by name or as "
                 "INPUT.INDEX; may be repeated");
}

void add_run(CLI::App& command, EstimateArguments& arguments) {
  add_value(&command, "--batch", "N|auto", arguments.batch,
            "samples per device and step; auto: the largest that fits --capacity. In a "
            "command, {batch} is replaced by it");
  add_value(&command, "--optimizer",
            "sgd|momentum|adam|adamw|adamw8bit|adafactor|rmsprop|adagrad|none", arguments.optimizer,
            "of a model; several, separated by commas, make a table");
  add_value(&command, "--precision", "fp32|tf32|bf16|fp16|amp-bf16|amp-fp16", arguments.precision,
            "of a model; several, separated by commas, make a table");
  command.add_flag("--checkpointing", arguments.checkpointing,
                   "activation checkpointing: recompute in the backward pass");
  command.add_flag("--inference", arguments.inference, "no gradients and no optimizer");
  command.add_flag(
      "--on-host", arguments.on_host,
      "if a command cannot be traced without memory: run two real steps in host memory");
  command
      .add_option_function<std::vector<std::string>>(
          "--set",
          [&arguments](const std::vector<std::string>& texts) {
            if (arguments.option_typed.empty()) arguments.option_typed = "--set";
            arguments.options.insert(arguments.options.end(), texts.begin(), texts.end());
          },
          "an extra assumption; may be repeated")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);  // else a following "--" would be eaten
  add_repeatable(&command, "--settings", "KEY:VALUE,...", arguments.settings,
                 "allocator settings to compare, as in PYTORCH_ALLOC_CONF; may be repeated, one "
                 "table row each");
}

void add_limits(CLI::App& command, EstimateArguments& arguments) {
  add_value(&command, "--capacity", "SIZE", arguments.capacity,
            "device memory available to the process, such as 24GiB");
  add_value(
      &command, "--device-constant", "SIZE", arguments.device_constant,
      "memory of the CUDA context and library handles, such as 1.5GiB (default: from a table)");
  add_value(&command, "--calibration", "FILE", arguments.calibration,
            "a file of gpumemprof calibrate, instead of the built-in table");
  add_value(&command, "--prices", "FILE", arguments.prices,
            "a price list of boards, to name the cheapest that fits");
}

}  // namespace

void add_estimate_command(CLI::App& app, CommandContext& context) {
  auto line = std::make_shared<EstimateCommandLine>();
  CLI::App* command = app.add_subcommand(
      "estimate", "predict the memory of a training run from a script, a model or a configuration");
  command->footer(
      "A COMMAND runs up to its optimizer's second step. Tensors have no memory and checkpoints "
      "are\nnot written; everything else it does until then (files, requests, logs) does happen.");
  EstimateArguments& arguments = line->arguments;
  add_what(*command, arguments);
  add_run(*command, arguments);
  add_limits(*command, arguments);
  add_configuration_options(*command, &arguments);
  add_text_or_json_option(command, &arguments.format);
  add_output_option(command, &arguments.output);
  add_value(command, "command", "COMMAND", line->parsed, "the program and its arguments");
  command->allow_extras();  // options of a command: command_words() tells them from ours
  command->callback([line, command, &context] {
    line->wrong_option = wrong_option_sentence(*command);
    context.exit_code = estimate_command(*line);
  });
}

}  // namespace gpumemprof
