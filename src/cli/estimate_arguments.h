// What the command line of `estimate` says, whichever way of estimating answers it.
#pragma once

#include <string>
#include <vector>

namespace gpumemprof {

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

}  // namespace gpumemprof
