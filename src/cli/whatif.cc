// gpumemprof whatif: what other allocator settings would have done with the same requests.
#include <algorithm>
#include <memory>

#include "allocator/config.h"
#include "analysis/analyze.h"
#include "analysis/replay/study_request.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "report/whatif_report.h"

namespace gpumemprof {
namespace {

struct WhatIfArguments {
  std::string path;
  StudyRequest request;
  bool no_seal = false;
  int device = -1;
  std::string format = "text";
  std::string output;
};

using History = std::shared_ptr<const AllocatorSnapshot>;

Result<History> read(const WhatIfArguments& arguments) {
  auto input = open_input_showing_progress({arguments.path}, !arguments.no_seal);
  Result<History> snapshot = input ? allocator_history(*input) : std::unexpected(input.error());
  if (!snapshot && snapshot.error().code == ErrorCode::kUnsupported) {
    snapshot.error().message +=
        "; files without segments cannot be simulated: torch.cuda.memory._dump_snapshot() writes "
        "one with them";
  }
  return snapshot;
}

/// Of settings that the file's release does not have, but another one does.
Error with_remedy(Error error, const StudyOptions& options) {
  const bool is_of_another =
      error.code == ErrorCode::kUsage && !options.release &&
      std::ranges::all_of(options.settings, [](const std::string& settings) {
        return parse_settings(settings, newest_release()).has_value();
      });
  if (is_of_another) {
    error.message += "; the file tells this release by its keys and addresses: if it is of "
                     "another one, name that with --torch";
  }
  return error;
}

int what_if_command(const WhatIfArguments& arguments) {
  Result<StudyOptions> options = study_options(arguments.request);
  if (!options) return report_error("", options.error());
  const Result<History> read_history = read(arguments);
  if (!read_history) return report_error(arguments.path, read_history.error());
  const AllocatorSnapshot* snapshot = read_history->get();
  Result<size_t> trace =
      study_trace(*snapshot, arguments.device < 0 ? "" : std::to_string(arguments.device));
  if (!trace) return report_error(arguments.path, trace.error());
  std::string text;
  {
    Progress progress("simulating");
    options->on_progress = [&](double done) { progress.update(done); };
    Result<SettingsStudy> study = study_settings(*snapshot, *trace, *options);
    if (!study) return report_error(arguments.path, with_remedy(study.error(), *options));
    const WhatIfSubject subject{.path = arguments.path,
                                .device = device_name(snapshot->tables.devices[*trace]),
                                .version_hint = snapshot->info.writer_version_hint,
                                .other_devices = snapshot->traces.size() > 1};
    text = arguments.format == "json"
               ? whatif_json(*study, subject)
               : fitted_to_terminal(whatif_text(*study, subject), arguments.output);
  }
  return write_output(text, arguments.output, {arguments.path});
}

}  // namespace

void add_whatif_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<WhatIfArguments>();
  CLI::App* command = app.add_subcommand(
      "whatif",
      "replay a PyTorch snapshot or a recording under other allocator settings or on another GPU");
  add_value(command, "path", "DIR|FILE", arguments->path,
            "a PyTorch memory snapshot, or a recording (folder or file)")
      ->required();
  add_repeatable(
      command, "--set", "KEY:VALUE,...", arguments->request.settings,
      "settings to try, as in PYTORCH_CUDA_ALLOC_CONF; may be repeated, one simulation each");
  add_value(command, "--capacity", "SIZE", arguments->request.capacity,
            "device memory available to the process, such as 40GiB, or none for unlimited "
            "(default: what the process could reserve, if the run ran out of memory; else "
            "none)");
  add_value(command, "--torch", "VERSION", arguments->request.torch,
            "PyTorch release whose rules apply, such as 2.13 or latest (default: the one "
            "that the file is of, as far as it tells)");
  command->add_flag("--sweep", arguments->request.sweep, "also try a set of promising settings");
  add_value(command, "--device", "N", arguments->device,
            "device number (default: the one that ran out of memory, else the one with the "
            "most memory)")
      ->check(CLI::NonNegativeNumber);
  add_defaulted(command, "--threads", "N", arguments->request.threads, "parallel simulations")
      ->check(CLI::Range(1, 64));
  command->add_flag("--force", arguments->request.force,
                    "predict even if the replay of the recorded settings is not faithful");
  command->add_flag("--no-seal", arguments->no_seal, "do not compress the files of the recording");
  add_text_or_json_option(command, &arguments->format);
  add_output_option(command, &arguments->output);
  command->callback([arguments, &context] { context.exit_code = what_if_command(*arguments); });
}

}  // namespace gpumemprof
