// gpumemprof calibrate: what CUDA and its libraries take of this machine's GPU beside tensors.
#include <sys/wait.h>

#include <cstdio>
#include <memory>

#include "base/file.h"
#include "base/size.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/python_program.h"
#include "cli/trace_child.h"
#include "estimate/calibration.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

struct CalibrateArguments {
  unsigned device = 0;
  std::string output;
};

/// The text that the measuring process wrote. Errors: kUnsupported with the reason.
Result<std::string> measured(unsigned device) {
  auto folder = TraceFolder::make();
  if (!folder) return std::unexpected(folder.error());
  const std::vector<std::string> words = {active_python(), "-m", "gpumemprof._children.calibrate",
                                          folder->path(), std::to_string(device)};
  auto status =
      run_traced(words, {{"GPUMEMPROF_ESTIMATE", ""}}, TraceStreams::kNone, TraceDevices::kSeen);
  if (!status) return std::unexpected(status.error());
  auto text = read_small_file(folder->path() + "/answer.json", kMaxCalibrationBytes);
  if (text && !text->empty()) return *text;
  std::string reason = folder->reason();
  if (reason.empty()) {
    reason = WIFSIGNALED(*status)
                 ? "the measuring process was ended by signal " + std::to_string(WTERMSIG(*status))
                 : "could not start measuring in " + active_python() +
                       ": install gpumemprof and torch there, or set GPUMEMPROF_PYTHON to the "
                       "Python to use";
  }
  return fail(ErrorCode::kUnsupported, reason);
}

std::string calibration_text(const Calibration& found) {
  std::string text = printable(calibration_source(found)) + '\n';
  const auto line = [&](uint64_t bytes, const char* what) {
    char row[128];
    std::snprintf(row, sizeof row, "  %9s  %s\n", format_bytes(bytes).c_str(), what);
    text += row;
  };
  line(found.context_bytes, "CUDA context, with PyTorch's first kernel");
  line(found.cublas_bytes, "cuBLAS, outside of the allocator");
  line(found.cudnn_bytes, "cuDNN, outside of the allocator");
  line(found.device_constant_bytes(), "sum: what estimates add to the allocator's memory");
  line(found.product_workspace_bytes, "workspace of a cuBLAS handle, from the allocator");
  if (found.basis != "process")
    text += "Measured as the rise in device use: the driver has no figure for the process.\n";
  return text;
}

int calibrate(const CalibrateArguments& arguments) {
  auto text = measured(arguments.device);
  if (!text) return report_error("calibrate", text.error());
  auto found = parse_calibration(*text);
  if (!found) return report_error("calibrate", found.error());
  std::fputs(calibration_text(*found).c_str(), stdout);
  if (arguments.output.empty()) return kExitOk;
  const int written = write_output(*text, arguments.output, {});
  if (written != kExitOk) return written;
  std::printf("Wrote %s: estimate --calibration %s uses it\n", printable(arguments.output).c_str(),
              printable(arguments.output).c_str());
  return kExitOk;
}

}  // namespace

void add_calibrate_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* command = app.add_subcommand(
      "calibrate", "measure what CUDA, cuBLAS and cuDNN use on this machine's GPU, for estimate");
  command->footer(
      "A separate process creates a context, multiplies matrices and convolves with "
      "PyTorch.\nAfter each it measures the driver's figure for the process minus the allocator's "
      "memory.\nThen: gpumemprof estimate --calibration h200.json -- python train.py");
  add_defaulted(command, "--device", "N", arguments->device, "number of the GPU, as in CUDA")
      ->check(CLI::Range(0, 1023));
  add_value(command, "-o,--output", "FILE", arguments->output,
            "write the calibration to this file");
  command->callback([arguments, &context] { context.exit_code = calibrate(*arguments); });
}

}  // namespace gpumemprof
