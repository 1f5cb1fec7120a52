// What zsh completes: a file for its functions, or for `source <(…)`.
#include <algorithm>

#include "cli/command_shape.h"

namespace gpumemprof {
namespace {

/// Inside of '…', where `special` mean something to _arguments or _describe.
std::string zsh_escaped(const std::string& text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
    } else {
      if (special.find(c) != special.npos || c == '\\') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string zsh_action(const OptionShape& option) {
  if (!option.values.empty()) return '(' + joined(option.values, " ") + ')';
  return option.takes == Takes::kFile     ? "_files"
         : option.takes == Takes::kFolder ? "_files -/"
                                          : " ";
}

/// One specification of _arguments: '(-o --output)'{-o,--output}'[text]:FILE:_files'
std::string zsh_option(const OptionShape& option) {
  std::string braces;
  for (const std::string& name : option.names) {
    // The value may stand in the same word.
    const char* joined = option.takes == Takes::kNothing ? "" : name.starts_with("--") ? "=" : "+";
    braces += (braces.empty() ? "" : ",") + name + joined;
  }
  std::string rest = '[' + zsh_escaped(first_clause(option.text), "[]") + ']';
  // --steps A B: a value a word
  if (option.takes != Takes::kNothing) {
    std::string name = option.type;
    std::ranges::replace(name, ' ', '-');
    rest += ':' + zsh_escaped(name, ":") + ':' + zsh_action(option);
  }
  const bool several = option.names.size() > 1;
  const std::string names = several ? "'{" + braces + "}'" : braces;
  return option.repeats ? "'*" + names + rest + "'" : "'(" + joined(option.names, " ") + ")" + names + rest + "'";
}

void add_zsh_command(std::string& text, const CommandShape& command) {
  text += "      " + command.name + ")\n";
  if (command.takes_program) {
    text +=
        "        local at=${words[(i)--]}\n"
        "        if (( at < CURRENT )); then\n"
        "          shift $at words\n"
        "          (( CURRENT -= at ))\n"
        "          _normal && return\n"
        "        fi\n";
  }
  text += "        _arguments -S";
  for (const OptionShape& option : command.options) text += " \\\n          " + zsh_option(option);
  for (const OptionShape& positional : command.positionals)
    if (!positional.values.empty())
      text += " \\\n          ':" + positional.names[0] + ':' + zsh_action(positional) + "'";
  if (command.takes == Takes::kFile) text += " \\\n          '*:path:_files'";
  if (command.takes == Takes::kFolder) text += " \\\n          '*:folder:_files -/'";
  text += " && return\n        ;;\n";
}

}  // namespace

std::string zsh_completion(const ToolShape& tool) {
  const std::string name = tool.name;
  std::string text = "#compdef " + name + "\n# " + name + " completion zsh wrote it\n_" + name +
                     "() {\n  local curcontext=$curcontext state line\n  local -a ours\n  ours=(\n";
  for (const CommandShape& command : tool.commands)
    text += "    '" + command.name + ':' + zsh_escaped(first_clause(command.text), ":") + "'\n";
  text += "    'help:show the help of a command'\n  )\n  _arguments -C";
  for (const OptionShape& option : tool.options) text += " \\\n    " + zsh_option(option);
  text +=
      " \\\n    '1: :->command' '*:: :->arguments' && return\n"
      "  case $state in\n"
      "  command) _describe -t commands command ours && return ;;\n"
      "  arguments)\n    case $line[1] in\n"
      "      help) _describe -t commands command ours && return ;;\n";
  for (const CommandShape& command : tool.commands) add_zsh_command(text, command);
  text +=
      "    esac\n    ;;\n  esac\n  return 1\n}\n"
      "if [[ $funcstack[1] == _" +
      name + " ]]; then _" + name + " \"$@\"; else compdef _" + name + " " + name + "; fi\n";
  return text;
}

}  // namespace gpumemprof
