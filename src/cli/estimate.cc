// gpumemprof estimate: what a run will need, before it is paid for.
#include <algorithm>
#include <memory>
#include <string>

#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/estimate_arguments.h"
#include "cli/estimate_config.h"
#include "cli/estimate_exported.h"
#include "cli/estimate_trace.h"

namespace gpumemprof {
namespace {

/// As the parser leaves them; lives as long as the parser.
struct EstimateCommandLine {
  EstimateArguments arguments;
  std::vector<std::string> parsed;   // the command as the parser took it apart
  std::vector<std::string> unknown;  // options that nobody defined
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
  if (subjects > 1)
    return usage("-- COMMAND, --model, --config and --trace are ways to say what: give one");
  const bool is_command = !line.parsed.empty() && arguments.target.empty();
  if (!is_command && !line.unknown.empty()) {
    return usage(
        ("there is no option " + line.unknown[0] + ": see gpumemprof estimate --help").c_str());
  }
  if (!arguments.batch.empty() && arguments.batch != "auto" &&
      (arguments.batch.size() > 9 ||
       !std::ranges::all_of(arguments.batch, [](char c) { return c >= '0' && c <= '9'; }) ||
       std::stoul(arguments.batch) == 0)) {
    return usage("--batch is a number above 0, or auto");
  }
  if (arguments.batch == "auto" && arguments.capacity.empty()) {
    return usage(
        "--batch auto looks for the largest batch that fits: say into what with --capacity");
  }
  if (!arguments.target.empty()) {
    if (line.parsed.size() != 1)
      return usage("--target takes one exported model: --target cpu model.onnx");
    return estimate_exported(arguments, line.parsed[0]);
  }
  if (!arguments.calibration.empty() && !arguments.device_constant.empty())
    return usage("--calibration has a --device-constant of its own: give one");
  if (!arguments.dims.empty()) return usage("--dim is of an exported model: --target cpu MODEL");
  if (!arguments.config.empty()) return estimate_from_configuration(arguments);
  if (!line.parsed.empty()) {
    auto words = command_words("estimate", line.parsed, line.unknown);
    if (!words) return report_error("estimate", words.error());
    arguments.command = std::move(*words);
  }
  return estimate_by_tracing(arguments);
}

void add_what(CLI::App& command, EstimateArguments& arguments) {
  command
      .add_option(
          "--model", arguments.model,
          "a timm or torchvision model in a standard training loop: timm:NAME or torchvision:NAME")
      ->type_name("LIBRARY:NAME");
  command
      .add_option("--config", arguments.config,
                  "a configuration of a language model, by closed form")
      ->type_name("FILE");
  command
      .add_option("--trace", arguments.traces,
                  "a trace that was written before (docs/estimate-trace.md); two, of two batches, "
                  "stand for "
                  "all batches")
      ->type_name("FILE")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  command
      .add_option("--target", arguments.target,
                  "an exported model (.onnx, .pte or .pt2) where it runs without a GPU, measured "
                  "on the CPU of this machine: cpu or mobile")
      ->check(CLI::IsMember({"cpu", "mobile"}));
  command
      .add_option("--dim", arguments.dims,
                  "the size of an open dimension of an exported model's input, by its name or as "
                  "INPUT.INDEX; may be given several times")
      ->type_name("NAME=N")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
}

void add_run(CLI::App& command, EstimateArguments& arguments) {
  command
      .add_option("--batch", arguments.batch,
                  "samples a device and step; auto: the largest that fits --capacity. In a command "
                  "the word {batch} stands for it")
      ->type_name("N|auto");
  command
      .add_option("--optimizer", arguments.optimizer,
                  "sgd, momentum, adam, adamw, adamw8bit, adafactor, rmsprop, adagrad or none")
      ->type_name("NAME");
  command
      .add_option("--precision", arguments.precision,
                  "fp32, tf32, bf16, fp16, amp-bf16 or amp-fp16")
      ->type_name("NAME");
  command.add_flag("--checkpointing", arguments.checkpointing,
                   "activations are computed again in the backward pass");
  command.add_flag("--inference", arguments.inference, "no gradients and no optimizer");
  command.add_flag("--on-host", arguments.on_host,
                   "where a command cannot be traced without memory: two real steps of it on the "
                   "host's memory");
  command
      .add_option_function<std::vector<std::string>>(
          "--set",
          [&arguments](const std::vector<std::string>& texts) {
            if (arguments.option_typed.empty()) arguments.option_typed = "--set";
            arguments.options.insert(arguments.options.end(), texts.begin(), texts.end());
          },
          "an extra assumption; may be given several times")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);  // else a following "--" would be eaten
  command
      .add_option("--settings", arguments.settings,
                  "allocator settings to compare, as in PYTORCH_ALLOC_CONF; may be given several "
                  "times, a line of the table each")
      ->type_name("KEY:VALUE,...")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);  // else a following "--" would be eaten
}

void add_limits(CLI::App& command, EstimateArguments& arguments) {
  command
      .add_option("--capacity", arguments.capacity,
                  "what the process can have of the device, such as 24GiB")
      ->type_name("SIZE");
  command
      .add_option("--device-constant", arguments.device_constant,
                  "what the CUDA context and library handles take, such as 1.5GiB (default: from a "
                  "table)")
      ->type_name("SIZE");
  command
      .add_option("--calibration", arguments.calibration,
                  "what gpumemprof calibrate measured on the GPU, in place of the table")
      ->type_name("FILE");
  command
      .add_option(
          "--prices", arguments.prices,
          "a file of boards and what an hour of each costs you, to name the cheapest that fits")
      ->type_name("FILE");
}

}  // namespace

void add_estimate_command(CLI::App& app, CommandContext& context) {
  auto line = std::make_shared<EstimateCommandLine>();
  CLI::App* command = app.add_subcommand(
      "estimate",
      "predict the memory of a training run before it: of a script, a model or a configuration");
  command->footer(
      "A COMMAND runs up to its optimizer's second step. Tensors have no memory and checkpoints "
      "are\n"
      "not written; whatever else it does until then (files, requests, logs) does happen.\n\n"
      "gpumemprof estimate [options] -- python train.py\n"
      "gpumemprof estimate --model timm:resnet50 --batch 64 --optimizer adamw\n"
      "gpumemprof estimate --config config.json --batch 4 --tp 2 --dp 4 --zero 1\n"
      "gpumemprof estimate --target mobile --capacity 512MiB model.onnx");
  EstimateArguments& arguments = line->arguments;
  add_what(*command, arguments);
  add_run(*command, arguments);
  add_limits(*command, arguments);
  add_configuration_options(*command, &arguments);
  command->add_option("--format", arguments.format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command
      ->add_option("-o,--output", arguments.output, "write to this file instead of standard output")
      ->type_name("FILE");
  command->add_option("command", line->parsed, "the program and its arguments")
      ->type_name("COMMAND");
  command->allow_extras();  // options of a command: command_words() tells them from ours
  command->callback([line, command, &context] {
    line->unknown = command->remaining();
    std::erase(line->unknown, "--");  // the parser counts it in
    context.exit_code = estimate_command(*line);
  });
}

}  // namespace gpumemprof
