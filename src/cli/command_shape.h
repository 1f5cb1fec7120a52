// The command line as data, read from the parser: what help shows is what shells complete and the
// manual has.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gpumemprof {

/// What a shell offers for a value.
enum class Takes { kNothing, kWord, kFile, kFolder };

struct OptionShape {
  std::vector<std::string> names;  ///< "-o", "--output"; of a positional its name alone
  std::string type;                ///< "text|json", "FILE"; empty for a flag
  std::string text;
  std::string group;                ///< the heading of help that it stands under
  std::vector<std::string> values;  ///< the words of `type` that are values: those without capitals
  Takes takes = Takes::kNothing;
  bool repeats = false;
};

struct CommandShape {
  std::string name, text, group;
  std::string usage;   ///< behind the name
  std::string footer;  ///< notes and examples
  std::vector<OptionShape> options, positionals;
  bool takes_program = false;     ///< a program and its arguments may follow --
  Takes takes = Takes::kNothing;  ///< what its positionals are
};

struct ToolShape {
  std::string name, text, footer;
  std::vector<OptionShape> options;
  std::vector<CommandShape> commands;  ///< those that help lists, in its order
};

/// Call it once all commands and their help are added.
ToolShape tool_shape(const CLI::App& app);

std::string joined(const std::vector<std::string>& words, std::string_view by);

/// `text` up to the end of its first clause: shells show it beside an option.
std::string first_clause(const std::string& text);

// A script for the shell to load, or the page of the manual.
std::string bash_completion(const ToolShape& tool);
std::string zsh_completion(const ToolShape& tool);
std::string fish_completion(const ToolShape& tool);
std::string manual_page(const ToolShape& tool, const std::string& version, const std::string& date);

}  // namespace gpumemprof
