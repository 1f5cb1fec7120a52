// A program recorded for a command: its options, and the run itself.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "run/run_program.h"

namespace gpumemprof {

/// What the command line says of it; lives as long as the parser.
struct RunArguments {
  RunOptions options;
  std::string max_disk;
  bool no_cpu = false;
  bool no_attribution = false;
  bool no_driver = false;
  bool quiet = false;
  std::vector<std::string> command;  // as the parser took it apart
  std::string wrong_option;          // a sentence of help.h; empty where there is none
};

/// The options of what is recorded and how, and the program behind "--". `arguments` must outlive
/// the parser. The callback must set `wrong_option` first.
void add_run_options(CLI::App* command, RunArguments* arguments);

/// Turns the arguments into options. Errors: kUsage; the message names the option.
Status complete_run_options(std::string_view subcommand, RunArguments* arguments);

/// Runs it and, once it has ended, shows how far the recording is finished. The cursor is at the
/// beginning of a line then. `says_more`: more than the warnings follows. Errors: run_program()'s.
Result<RunOutcome> run_and_show(RunArguments* arguments, bool says_more);

/// On standard error, as it is.
void say(std::string_view text);
/// As a line of the command's own; control characters would reach the terminal and are replaced.
std::string one_line(std::string text);

}  // namespace gpumemprof
