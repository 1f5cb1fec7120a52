// What a traced program made and dropped on the device, step by step, as the child process that ran
// it without memory wrote it. docs/estimate-trace.md has the bytes of the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// What a storage is, where the tracer knew it; else its life tells (storage_life.h).
enum class StorageKind : uint8_t {
  kUntold,
  kParameter,
  kBuffer,
  kGradient,
  kOptimizerState,
  kInput
};

/// Whose turn it was.
enum class StepPhase : uint8_t { kSetup, kInput, kForward, kBackward, kOptimizer, kOther };

enum class ConvolutionPart : uint8_t { kForward, kInputGradient, kWeightGradient };

/// A convolution as the library is asked for it.
struct ConvolutionCall {
  ConvolutionPart part = ConvolutionPart::kForward;
  bool is_transposed = false;
  uint32_t shape = 0;  ///< equal for calls of the same sizes and geometry
  uint64_t input_bytes = 0, output_bytes = 0, weight_bytes = 0;
  uint64_t kernel_elements = 0;  ///< 9 of a 3×3
  uint64_t groups = 1, in_channels = 0, out_channels = 0;
};

struct TracedEvent {
  enum class Kind : uint8_t {
    kAlloc,
    kFree,
    kConvolution,  ///< `index` in StepTrace::convolutions
    kProduct,      ///< of matrices: the first asks for the library's workspace
    kPhase,        ///< `phase` from here on
    kEmptyCache,
  };
  Kind kind = Kind::kAlloc;
  StorageKind storage_kind = StorageKind::kUntold;
  StepPhase phase = StepPhase::kSetup;
  uint16_t stream = 0;
  uint32_t index = 0;   ///< of the storage, in the order in which they are made; see kConvolution
  uint32_t module = 0;  ///< in StepTrace::names; 0: none was being called
  uint64_t bytes = 0;
};

/// What the tracer says of the run.
struct LoopFacts {
  uint64_t batch = 0;  ///< 0: not known
  std::string subject, optimizer, precision, torch, device;
  std::string method = "model";  ///< "model", "script" or "host"
  bool cudnn_benchmark = false;
  std::vector<std::string> assumptions;  ///< one sentence each
  std::vector<std::string> unknown;
};

struct StepTrace {
  LoopFacts facts;
  std::vector<std::string> names = {""};
  std::vector<TracedEvent> events;
  std::vector<ConvolutionCall> convolutions;
  uint32_t storages = 0;
};

/// Errors: kBadInput with the byte of the line that is wrong; a file that ends early is one.
/// Whatever comes back is sound: storages are made once, in order, and dropped at most once, all
/// indices are valid, and live bytes stay below 2^60.
Result<StepTrace> parse_step_trace(std::string_view text);

/// Errors also: those of reading the file.
Result<StepTrace> read_step_trace(const std::string& path);

}  // namespace gpumemprof
