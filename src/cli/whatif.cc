// gpumemprof whatif: what other allocator settings would have done with the same requests.
#include <filesystem>
#include <memory>

#include "analysis/settings_study.h"
#include "analysis/snapshot_analysis.h"
#include "base/size.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "readers/torch_snapshot/read.h"
#include "report/whatif_report.h"

namespace gpumemprof {
namespace {

struct WhatIfArguments {
  std::string path;
  std::vector<std::string> settings;
  std::string capacity;
  std::string torch;
  bool sweep = false;
  bool force = false;
  int device = -1;
  unsigned threads = 2;
  std::string format = "text";
  std::string output;
};

Result<StudyOptions> study_options(const WhatIfArguments& arguments) {
  StudyOptions options{.settings = arguments.settings,
                       .sweep = arguments.sweep,
                       .force = arguments.force,
                       .threads = arguments.threads};
  if (!arguments.capacity.empty()) {
    Result<uint64_t> bytes = parse_size(arguments.capacity);
    if (!bytes)
      return fail(ErrorCode::kUsage,
                  "--capacity " + arguments.capacity + ": " + bytes.error().message);
    if (*bytes == 0) return fail(ErrorCode::kUsage, "--capacity must be more than nothing");
    options.capacity_bytes = *bytes;
  }
  if (!arguments.torch.empty()) {
    Result<Release> release = find_release(arguments.torch);
    if (!release) return fail(ErrorCode::kUsage, "--torch: " + release.error().message);
    options.release = *release;
  }
  return options;
}

Result<AllocatorSnapshot> read(const WhatIfArguments& arguments) {
  if (!is_torch_snapshot(arguments.path)) {
    // Says what is wrong with a path that cannot be read at all.
    if (std::error_code error; !std::filesystem::exists(arguments.path, error)) {
      return fail(ErrorCode::kNotFound, "no such file or folder");
    }
    return fail(ErrorCode::kUnsupported,
                "no snapshot of PyTorch's allocator: recordings and samples hold no segments, "
                "streams and requested sizes, so another setting cannot be simulated; "
                "torch.cuda.memory._dump_snapshot() writes one");
  }
  Progress progress("reading");
  return read_torch_snapshot(arguments.path,
                             {.on_progress = [&](double done) { progress.update(done); }});
}

Result<size_t> choose_trace(const AllocatorSnapshot& snapshot, int device) {
  if (device < 0) {
    const std::optional<size_t> main = main_trace(snapshot);
    if (main) return *main;
    return fail(ErrorCode::kUnsupported, "the snapshot is empty: no segment and no event");
  }
  std::string known;
  for (size_t i = 0; i < snapshot.traces.size(); ++i) {
    if (snapshot.traces[i].device == device) return i;
    known += (i == 0 ? "" : ", ") + std::to_string(snapshot.traces[i].device);
  }
  return fail(ErrorCode::kUsage, "--device " + std::to_string(device) + ": the file has " +
                                     (known.empty() ? "no device" : "device " + known));
}

int what_if_command(const WhatIfArguments& arguments) {
  Result<StudyOptions> options = study_options(arguments);
  if (!options) return report_error("", options.error());
  Result<AllocatorSnapshot> snapshot = read(arguments);
  if (!snapshot) return report_error(arguments.path, snapshot.error());
  Result<size_t> trace = choose_trace(*snapshot, arguments.device);
  if (!trace) return report_error(arguments.path, trace.error());
  std::string text;
  {
    Progress progress("simulating");
    options->on_progress = [&](double done) { progress.update(done); };
    Result<SettingsStudy> study = study_settings(*snapshot, *trace, *options);
    if (!study) return report_error(arguments.path, study.error());
    const WhatIfSubject subject{.path = arguments.path,
                                .device = device_name(snapshot->tables.devices[*trace]),
                                .version_hint = snapshot->info.writer_version_hint,
                                .other_devices = snapshot->traces.size() > 1};
    text = arguments.format == "json" ? whatif_json(*study, subject) : whatif_text(*study, subject);
  }
  auto output = Output::open(arguments.output, {arguments.path});
  if (!output) return report_error("", output.error());
  if (auto done = output->write(text); !done) return report_output_error(*output, done.error());
  if (auto done = output->close(); !done) return report_output_error(*output, done.error());
  return kExitOk;
}

}  // namespace

void add_whatif_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<WhatIfArguments>();
  CLI::App* command = app.add_subcommand(
      "whatif", "replay a PyTorch snapshot under other allocator settings or on another GPU");
  command->add_option("path", arguments->path, "a memory snapshot of PyTorch")
      ->required()
      ->type_name("FILE");
  command
      ->add_option(
          "--set", arguments->settings,
          "settings to try, as in PYTORCH_CUDA_ALLOC_CONF; may be given several times, one "
          "simulation each")
      ->type_name("KEY:VALUE,...")
      ->take_all()
      ->expected(1);
  command
      ->add_option("--capacity", arguments->capacity,
                   "what the process can have of the device, such as 40GiB (default: it never runs "
                   "out)")
      ->type_name("SIZE");
  command
      ->add_option("--torch", arguments->torch,
                   "the release of PyTorch whose rules to follow, such as 2.13 or latest (default: "
                   "the one that wrote the file)")
      ->type_name("VERSION");
  command->add_flag("--sweep", arguments->sweep, "also try the settings that are worth it");
  command
      ->add_option(
          "--device", arguments->device,
          "the device's number (default: the one that ran out of memory, else the one that "
          "holds most)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--threads", arguments->threads, "simulations at a time")
      ->type_name("N")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_flag("--force", arguments->force,
                    "predict even where the replay of the recorded settings is not faithful");
  command->add_option("--format", arguments->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command
      ->add_option("-o,--output", arguments->output,
                   "write to this file instead of standard output")
      ->type_name("FILE");
  command->callback([arguments, &context] { context.exit_code = what_if_command(*arguments); });
}

}  // namespace gpumemprof
