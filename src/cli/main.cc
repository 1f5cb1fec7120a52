// The gpumemprof command: every subcommand is a file of its own.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/large_heap.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/watch.h"

namespace {

using namespace gpumemprof;

/// One file has two names: what it is called as says whose words it speaks.
bool is_called_tfmemprof(const char* program_path) {
  const std::string_view path = program_path ? program_path : "";
  return path.substr(path.rfind('/') + 1) == "tfmemprof";  // npos + 1 is 0
}

/// What reads files, writes its answer and ends.
bool reads_files_alone(std::string_view command) {
  return command == "analyze" || command == "whatif" || command == "diff" || command == "export" ||
         command == "seal";
}

/// An unset variable of a script is no value: --fail-on "" would let everything pass. --set "" means
/// the defaults.
void refuse_empty_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) refuse_empty_values(*command);
  for (CLI::Option* option : app.get_options()) {
    const bool takes_value = option->get_type_size() > 0 && !option->get_lnames().empty();
    if (!takes_value || option->check_lname("set")) continue;
    option->check(CLI::Validator(
        [](std::string& value) { return value.empty() ? "a value is missing" : std::string(); },
        ""));
  }
}

int run_command_line(int argc, char** argv) {
  CommandContext context;
  context.program_path = argc > 0 ? argv[0] : "";
  context.tensorflow = is_called_tfmemprof(argv[0]);
  if (context.tensorflow) set_tool_name("tfmemprof");
  const std::string tool = tool_name();
  CLI::App app{"Shows where the memory of a " +
               std::string(context.tensorflow ? "TensorFlow" : "PyTorch, TensorFlow or JAX") +
               " program goes: records every allocation, explains the peak."};
  app.name(tool);
  app.set_version_flag("-V,--version", tool + " " GPUMEMPROF_VERSION);
  app.require_subcommand(1);
  // In the order in which help lists them, by groups.
  add_run_command(app, context);
  if (!context.tensorflow) add_lines_command(app, context);
  add_gate_command(app, context);
  add_analyze_command(app, context);
  add_view_command(app, context);
  add_advise_command(app, context);
  add_diff_command(app, context);
  add_sql_command(app, context);
  add_mcp_command(app, context);
  add_explain_oom_command(app, context);
  add_whatif_command(app, context);
  if (!context.tensorflow) add_estimate_command(app, context);
  if (!context.tensorflow) add_calibrate_command(app, context);
  add_top_command(app, context);
  add_serve_command(app, context);
  add_monitor_command(app, context);
  add_track_command(app, context);
  add_info_command(app, context);
  add_diagnose_command(app, context);
  add_runs_command(app, context);
  add_export_command(app, context);
  add_seal_command(app, context);
  add_completion_command(app);
  add_help(app);
  refuse_empty_values(app);
  // Last: subcommands would end their help with it, too.
  app.footer("Start with: " + tool +
             " run -- python train.py\nExit codes: 0 ok, 1 the tool failed, 2 usage or bad "
             "input, 3 a gate failed. `run` exits as its program does.");
  const std::vector<std::string> words = with_help_words(app, {argv + std::min(argc, 1), argv + argc});
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as parse() wants them
  try {
    app.parse(std::move(reversed));  // callbacks run in here; CLI11 speaks in exceptions, we do not
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      const int code = app.exit(error, text, std::cerr);
      std::cout << help_on_terminal(text.str());
      return code;
    }
    return wrong_usage(usage_error(app, error, words));
  }
  return context.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  // Before anything else: a tracker that is stopped while it starts still leaves a complete file.
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "track" || command == "monitor") gpumemprof::hold_stop_signals();
  if (reads_files_alone(command)) gpumemprof::use_large_heap();
  gpumemprof::raise_descriptor_limit();
  const int exit_code = run_command_line(argc, argv);
  // Help and tables that did not reach a full disk or a closed pipe are a failure, not a success.
  std::cout.flush();
  errno = 0;
  const bool is_flushed = std::fflush(stdout) == 0;
  const int why = errno;
  if (is_flushed && std::ferror(stdout) == 0 && std::cout.good()) return exit_code;
  if (exit_code != gpumemprof::kExitOk) return exit_code;  // it has said why
  return gpumemprof::report_error(
      "standard output", {gpumemprof::ErrorCode::kSystem,
                          why != 0 ? std::strerror(why) : "it could not be written in full"});
}
