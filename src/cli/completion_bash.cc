// What bash completes. It needs nothing of the bash-completion package, and uses it for a program's
// own words.
#include <utility>

#include "cli/command_shape.h"
#include "cli/help.h"

namespace gpumemprof {
namespace {

constexpr const char* kBashStart = R"(# bash completion for TOOL; TOOL completion bash wrote it
_TOOL() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local command= program=0 options= values= takes= runs= rest= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} == -- ]] && { program=$((i + 1)); break; }
    [[ -z $command && ${COMP_WORDS[i]} != -* ]] && command=${COMP_WORDS[i]}
  done
  # --option=value comes in three words
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
  case $command in
)";

constexpr const char* kBashEnd = R"(  esac
  if ((program)); then
    [[ -n $runs ]] || rest=file
    if [[ -z $runs ]]; then :
    elif declare -F _comp_command_offset >/dev/null; then _comp_command_offset $program; return
    elif declare -F _command_offset >/dev/null; then _command_offset $program; return
    elif ((COMP_CWORD == program)); then mapfile -t COMPREPLY < <(compgen -c -- "$cur"); return
    else rest=file; fi
    options= values= takes=
  fi
  if [[ -n $values ]]; then mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur"); return; fi
  if [[ -z $takes && $cur == -* ]]; then mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur"); return; fi
  case ${takes:-$rest} in
  file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
  folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
  esac
}
complete -F _TOOL TOOL
)";

const char* bash_takes(Takes takes) {
  return takes == Takes::kFile ? "file" : takes == Takes::kFolder ? "folder" : "word";
}

std::string bash_options(const std::vector<OptionShape>& options) {
  std::string text;
  for (const OptionShape& option : options)
    text += (text.empty() ? "" : " ") + joined(option.names, " ");
  return text;
}

void add_bash_command(std::string& text, const CommandShape& command) {
  text += "  " + command.name + ")\n    options='" + bash_options(command.options) +
          (command.takes_program ? " --" : "") + "'";
  if (command.takes_program) text += " runs=1";
  if (command.takes != Takes::kNothing) text += std::string(" rest=") + bash_takes(command.takes);
  text += '\n';
  for (const OptionShape& positional : command.positionals)
    if (!positional.values.empty())
      text += "    [[ $cur == -* ]] || values='" + joined(positional.values, " ") + "'\n";
  std::string cases;
  for (const OptionShape& option : command.options) {
    if (option.takes == Takes::kNothing) continue;
    cases += "    " + joined(option.names, "|") + ") " +
             (option.values.empty() ? std::string("takes=") + bash_takes(option.takes)
                                    : "values='" + joined(option.values, " ") + "'") +
             " ;;\n";
  }
  if (!cases.empty()) text += "    case $prev in\n" + cases + "    esac\n";
  text += "    ;;\n";
}

}  // namespace

std::string bash_completion(const ToolShape& tool) {
  std::string names;
  for (const CommandShape& command : tool.commands) names += command.name + ' ';
  std::string text = kBashStart;
  text += "  '')\n    options='" + bash_options(tool.options) +
          "'\n    [[ $cur == -* ]] || values='" + names + "help'\n    ;;\n  help) values='" +
          names + "' ;;\n";
  for (const CommandShape& command : tool.commands) add_bash_command(text, command);
  text += kBashEnd;
  return with_tool_name(std::move(text), tool.name);
}

}  // namespace gpumemprof
