// What fish completes.
#include "cli/command_shape.h"
#include "cli/help.h"

namespace gpumemprof {
namespace {

constexpr const char* kFishStart = R"fish(# fish completion for TOOL; TOOL completion fish wrote it
# The command that is typed, and whether a program's words have begun behind it.
function __TOOL_command
    for word in (commandline -opc)[2..]
        string match -q -- '-*' $word; or begin; echo $word; return; end
    end
end
function __TOOL_is
    test "$(__TOOL_command)" = "$argv[1]"; and not contains -- -- (commandline -opc)
end
function __TOOL_runs
    contains -- (__TOOL_command) $argv; and contains -- -- (commandline -opc)
end
function __TOOL_program
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    complete -C (string join -- ' ' (string escape -- $words[(math $at + 1)..]) (commandline -ct))
end
complete -c TOOL -f
)fish";

std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

std::string fish_option(const OptionShape& option) {
  std::string text;
  for (const std::string& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.values.empty()) {
    text += " -x -a '" + joined(option.values, " ") + "'";
  } else if (option.takes == Takes::kFile) {
    text += " -r -F";
  } else if (option.takes == Takes::kFolder) {
    text += " -x -a '(__fish_complete_directories)'";
  } else if (option.takes == Takes::kWord) {
    text += " -x";
  }
  return text + " -d " + fish_quoted(first_clause(option.text)) + '\n';
}

}  // namespace

std::string fish_completion(const ToolShape& tool) {
  const std::string start = "complete -c " + tool.name + " -n ";
  const std::string name = "__" + tool.name;
  std::string text = with_tool_name(kFishStart, tool.name), programs;
  const std::string none = start + "'" + name + "_is \"\"'",
                    help = start + "'" + name + "_is help'";
  for (const OptionShape& option : tool.options) text += none + fish_option(option);
  for (const CommandShape& command : tool.commands) {
    const std::string one =
        " -a " + command.name + " -d " + fish_quoted(first_clause(command.text)) + '\n';
    text += none + one + help + one;
  }
  text += none + " -a help -d 'show the help of a command'\n";
  for (const CommandShape& command : tool.commands) {
    const std::string is = start + "'" + name + "_is " + command.name + "'";
    for (const OptionShape& option : command.options) text += is + fish_option(option);
    for (const OptionShape& positional : command.positionals)
      if (!positional.values.empty()) text += is + " -a '" + joined(positional.values, " ") + "'\n";
    if (command.takes == Takes::kFile) text += is + " -F\n";
    if (command.takes == Takes::kFolder) text += is + " -a '(__fish_complete_directories)'\n";
    if (command.takes_program) programs += ' ' + command.name;
  }
  return text + start + "'" + name + "_runs" + programs + "' -a '(" + name + "_program)'\n";
}

}  // namespace gpumemprof
