// What the command line says of itself: groups, examples.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gpumemprof {

/// Sorts the commands into groups; gives each its usage and its examples. Call it once all are
/// added.
void add_help(CLI::App& app);

/// `text` with `name` for each TOOL in it.
std::string with_tool_name(std::string text, std::string_view name);

/// Wrapped for a terminal, but the examples: they are for copying.
std::string help_on_terminal(const std::string& help);

/// What follows the name of a command on its line of usage.
std::string usage_of(std::string_view command);

/// What an option takes, without the parser's checks and types: "SIZE", "python|native|both|none".
std::string plain_type(const CLI::Option& option);

/// The words to parse in place of those typed: none is --help, `help COMMAND` is COMMAND --help.
/// Of a name that `app` does not have only the name.
std::vector<std::string> with_help_words(const CLI::App& app, std::vector<std::string> words);

/// One line on what is wrong with the words: CLI11's, or what was most likely meant, and whose help
/// to read.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error,
                        const std::vector<std::string>& words);

/// "--frce is not an option of run; did you mean --force? (see gpumemprof run --help)". `name` is
/// without its value.
std::string wrong_option_sentence(const CLI::App& command, const std::string& name);

/// The same of what the parser left over of a command that has a program's words behind its own;
/// empty where nothing was.
std::string wrong_option_sentence(const CLI::App& command);

}  // namespace gpumemprof
