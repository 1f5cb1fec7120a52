// What `tfmemprof`, the same command under another name, has of its own: devices as TensorFlow
// writes them, thresholds in MiB, JSON where a file's name says nothing.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "cli/commands.h"
#include "telemetry/event.h"

namespace gpumemprof {

/// The number of the GPU that "/GPU:0", "GPU:1", "/device:GPU:2" or "3" names; empty for a CPU.
/// Errors: kUsage for anything else.
Result<std::optional<int>> parse_tensorflow_device(const std::string& text);

/// `--device`, as the tool has it: a number, or a name of TensorFlow's.
struct DeviceOption {
  int number = -1;    ///< -1: every device
  std::string name;   ///< of tfmemprof, as it was typed
  std::string notes;  ///< one sentence where another memory is measured than the one named

  /// Reads `name`. A GPU that this machine has no driver for is said in `notes`, and the CPU is
  /// measured. Errors: kUsage.
  Status resolve();
};
/// `meaning`: of the number.
void add_device_option(CLI::App* command, const CommandContext& context, DeviceOption* device,
                       const char* meaning = "only this accelerator");

/// `root` stands for "/": whether a driver of accelerators shows number `index`.
bool has_accelerator(int index, const std::string& root = "");

/// An alert at a fixed number of bytes: once, and again only after memory was 5 % below.
class Threshold {
 public:
  explicit Threshold(std::optional<double> mib);
  /// The alert that this sample raises, as an event of type "warning".
  std::optional<TelemetryEvent> look(const TelemetryEvent& sample);

 private:
  std::optional<double> bytes_;
  bool above_ = false;
};

}  // namespace gpumemprof
