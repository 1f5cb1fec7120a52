// What libraries take of the device beside the program's tensors: data, each with its source.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "estimate/prediction.h"
#include "estimate/step_trace.h"

namespace gpumemprof {

/// The workspace that a convolution asks for, in units of (input + output) bytes.
struct WorkspaceRule {
  std::string_view what;
  double forward = 0, input_gradient = 0, weight_gradient = 0;
};

/// Sizes of workspaces are of an earlier trial, not fitted by `make accuracy`: library_table.cc.
struct LibraryTable {
  WorkspaceRule dense{"dense k×k", 0, 1, 2};
  WorkspaceRule pointwise{"1×1", 1, 1, 1};
  WorkspaceRule stem{"few input channels", 0.5, 0.5, 0.5};
  WorkspaceRule grouped{"grouped", 0, 0, 0};
  /// A library's handle asks for it at its first product of matrices: one handle a thread, and the
  /// backward pass has a thread of its own.
  uint64_t product_workspace_bytes = 8'519'680;
  /// Trying algorithms ends with the cache given back (cudnn.benchmark).
  bool empties_cache_after_trials = true;
};
const LibraryTable& library_table();

/// What a process has of the device besides what the allocator reserves: the CUDA context, and
/// handles and code of libraries.
struct DeviceConstant {
  uint64_t bytes = 0;
  std::string_view source;
  /// What it may be on another GPU than that of `source`; equal to `bytes` where it was measured.
  uint64_t least_bytes = 0;
  std::string_view least_source;
};
DeviceConstant device_constant();

/// Measured against predicted device bytes, of the models that the table was fitted on: the middle
/// 90 % lie between these, as shares of the prediction.
struct DeviceSpread {
  double low = 1, high = 1;
};
DeviceSpread device_spread();

/// Absent: PyTorch runs it with a kernel of its own, and no library is asked (depthwise).
std::optional<uint64_t> workspace_bytes(const ConvolutionCall& call, const LibraryTable& table);

}  // namespace gpumemprof
