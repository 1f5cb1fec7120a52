// The ways of estimating behind `estimate`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "estimate/calibration.h"

namespace gpumemprof {

// What the command line of `estimate` says, whichever way of estimating answers it.

/// Texts as they were typed; empty: not given. Sizes are those of parse_size().
struct EstimateArguments {
  // What is estimated: one of these.
  std::vector<std::string> command;  ///< the user's own program
  std::string model;                 ///< "timm:resnet50", "torchvision:vit_b_16"
  std::string config;                ///< path of a configuration
  std::vector<std::string> traces;   ///< paths of one trace, or of two at two batches
  std::string target;                ///< "cpu" or "mobile": an exported model on that, no GPU
  std::vector<std::string> dims;     ///< NAME=N, sizes of its open dimensions

  // How it would run.
  std::string batch;      ///< a number, or "auto"
  std::string optimizer;  ///< "sgd", "momentum", "adam", "adamw", …
  std::string precision;  ///< "fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16"
  bool checkpointing = false;
  std::vector<std::string> options;   ///< --set KEY=VALUE: further facts of the run
  std::string option_typed;           ///< the first that is kept in `options`, as it was typed
  std::vector<std::string> settings;  ///< PYTORCH_ALLOC_CONF, each a line of the table
  bool inference = false;             ///< no gradients and no optimizer
  bool on_host = false;               ///< real steps of the command where it cannot be traced

  // What it has to fit into, and what that costs.
  std::string capacity;
  std::string device_constant;  ///< context and library handles
  std::string calibration;      ///< path of what `calibrate` measured
  std::string prices;           ///< path of the user's price list

  std::string format = "text";
  std::string output;
};

// The closed form behind `estimate --config`: the options that concern configurations alone, and
// what becomes of them.

/// Declares --sequence, --tp, --pp, --kv-dtype and the like. Each is stored as a line "KEY=VALUE"
/// in `arguments->options`, where --set puts its own.
void add_configuration_options(CLI::App& command, EstimateArguments* arguments);

/// Reads the configuration, predicts and prints. The exit code.
int estimate_from_configuration(const EstimateArguments& arguments);

/// `estimate --target`: an exported model on a processor.
/// `model` is the path. The exit code.
int estimate_exported(const EstimateArguments& arguments, const std::string& model);

/// Behind `estimate -- CMD` and `estimate --model`: two traced steps, merged and simulated.
/// Traces in a child process, predicts and prints. The exit code.
int estimate_by_tracing(const EstimateArguments& arguments);

/// `estimate --calibration FILE`.
/// Errors name the file in their message: the subject of the command is another one.
Result<Calibration> read_calibration(const std::string& path);

}  // namespace gpumemprof
