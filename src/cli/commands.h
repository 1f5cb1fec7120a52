// One file a subcommand; each adds itself to the command line and runs from its callback.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"

namespace gpumemprof {

// The exit codes are a contract. `run` ends with the recorded program's own.
inline constexpr int kExitOk = 0;
inline constexpr int kExitToolFailed = 1;
inline constexpr int kExitBadInput = 2;  ///< a usage error, or an input that cannot be read

/// What subcommands share. Lives in main() for as long as the command runs.
struct CommandContext {
  int exit_code = kExitOk;   ///< a subcommand's callback stores its result here
  std::string program_path;  ///< argv[0]; /proc/self/exe is the reliable way to find our own files
  bool tensorflow = false;   ///< called as `tfmemprof`: the same commands in TensorFlow's words
};

// Each adds one subcommand to `app`. `context` must outlive the parsing of the command line.
void add_run_command(CLI::App& app, CommandContext& context);
void add_gate_command(CLI::App& app, CommandContext& context);
void add_sql_command(CLI::App& app, CommandContext& context);
void add_runs_command(CLI::App& app, CommandContext& context);
void add_mcp_command(CLI::App& app, CommandContext& context);
void add_seal_command(CLI::App& app, CommandContext& context);
void add_analyze_command(CLI::App& app, CommandContext& context);
void add_advise_command(CLI::App& app, CommandContext& context);
void add_whatif_command(CLI::App& app, CommandContext& context);
void add_estimate_command(CLI::App& app, CommandContext& context);
void add_calibrate_command(CLI::App& app, CommandContext& context);
void add_diff_command(CLI::App& app, CommandContext& context);
void add_explain_oom_command(CLI::App& app, CommandContext& context);
void add_export_command(CLI::App& app, CommandContext& context);
void add_info_command(CLI::App& app, CommandContext& context);
void add_monitor_command(CLI::App& app, CommandContext& context);
void add_track_command(CLI::App& app, CommandContext& context);
void add_diagnose_command(CLI::App& app, CommandContext& context);
void add_top_command(CLI::App& app, CommandContext& context);
void add_view_command(CLI::App& app, CommandContext& context);
void add_serve_command(CLI::App& app, CommandContext& context);
void add_completion_command(CLI::App& app);
void add_lines_command(CLI::App& app, CommandContext& context);

/// The name that messages begin with: "gpumemprof", or "tfmemprof" where the command was called so.
const char* tool_name();
bool is_tfmemprof();
void set_tool_name(const char* name);  ///< a literal; before anything is printed

/// Prints `gpumemprof: SUBJECT: what is wrong (at byte N)` on stderr as one line, control
/// characters replaced, and returns the exit code that belongs to the error. SUBJECT may be empty.
int report_error(const std::string& subject, const Error& error);
/// The same of a request that makes no sense.
inline int wrong_usage(const std::string& what) {
  return report_error("", {ErrorCode::kUsage, what});
}

}  // namespace gpumemprof
