#include "cli/recorded_run.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/size.h"
#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/progress.h"

namespace gpumemprof {
namespace {

#ifndef GPUMEMPROF_VERSION
#define GPUMEMPROF_VERSION "unknown"
#endif

/// The program's last line may have no end. On a terminal as many blanks as it is wide go on to the
/// next line from anywhere but the beginning of one.
void begin_a_line() {
  winsize size = {};
  if (isatty(STDERR_FILENO) != 1 || ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return;
  if (size.ws_col == 0) return;
  say(std::string(std::min<size_t>(size.ws_col, 1000), ' ') + '\r');
}

}  // namespace

void say(std::string_view text) {
  while (!text.empty()) {
    ssize_t n = write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return tool_name() + (": " + text) + '\n';
}

Result<RunOutcome> run_and_show(RunArguments* arguments, bool says_more) {
  std::optional<Progress> progress;
  if (!arguments->quiet) {
    arguments->options.on_finishing = [&](double share) {
      if (!progress) begin_a_line(), progress.emplace("finishing the recording");
      progress->update(share);
    };
  }
  auto outcome = run_program(arguments->options);
  const bool has_warnings = outcome && !outcome->warnings.empty();
  if (outcome && !progress && (says_more || has_warnings)) begin_a_line();
  return outcome;
}

Status complete_run_options(std::string_view subcommand, RunArguments* arguments) {
  auto words = command_words(std::string(subcommand), arguments->command, arguments->wrong_option);
  if (!words) return std::unexpected(words.error());
  arguments->options.command = std::move(*words);
  arguments->options.record_cpu = !arguments->no_cpu;
  arguments->options.attribution = !arguments->no_attribution;
  arguments->options.record_driver = !arguments->no_driver;
  arguments->options.version = GPUMEMPROF_VERSION;
  if (!arguments->max_disk.empty()) {
    auto size = parse_size(arguments->max_disk);
    if (!size) return fail(size.error().code, "--max-disk: " + size.error().message);
    arguments->options.max_disk_bytes = *size;
  }
  return {};
}

void add_run_options(CLI::App* command, RunArguments* arguments) {
  add_value(command, "-o,--output", "FOLDER", arguments->options.folder,
            "folder of the recording (default: named after the program and the time)");
  command->add_flag("--force", arguments->options.force,
                    "replace the recording that is in the folder");
  command->add_option("--stacks", arguments->options.stacks, "which stacks to record")
      ->check(CLI::IsMember({"python", "native", "both", "none"}))
      ->capture_default_str();
  command->add_flag("--free-stacks", arguments->options.free_stacks,
                    "also record where memory is freed");
  command->add_flag("--host", arguments->options.record_host,
                    "also record blocks of malloc and maps of 64 KiB and more: NumPy, pandas, files");
  command->add_flag("--no-cpu", arguments->no_cpu, "do not record CPU tensors");
  command->add_flag(
      "--no-attribution", arguments->no_attribution,
      "record stacks only: no modules, steps, parameter names or categories; less overhead");
  command->add_flag("--no-driver", arguments->no_driver,
                    "do not record the CUDA driver, HIP and Level Zero: no memory of libraries, "
                    "contexts, modules");
  add_value(command, "--max-disk", "SIZE", arguments->max_disk,
            "drop the oldest events above this size (24GiB, 24GB or bytes); peaks and totals "
            "stay exact");
  CLI::Option* thorough = command->add_flag_callback(
      "--explain-leaks", [arguments] { arguments->options.explain_leaks = true; },
      "record which variable, attribute or container holds each tensor, at intervals and at the "
      "end, so that `analyze` can name what keeps a leak (default: within 1 % of the run time)");
  command
      ->add_flag_callback(
          "--no-explain-leaks", [arguments] { arguments->options.explain_leaks = false; },
          "never look for the holders of tensors")
      ->excludes(thorough);
  add_value(command, "command", "COMMAND", arguments->command, "the program and its arguments");
  command->allow_extras();  // options of a command without "--": command_words() says what to do
}

}  // namespace gpumemprof
