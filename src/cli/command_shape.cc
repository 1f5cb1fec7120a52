#include "cli/command_shape.h"

#include <algorithm>

#include "cli/help.h"

namespace gpumemprof {
namespace {

std::vector<std::string> alternatives(std::string type) {
  while (type.ends_with('.') || type.ends_with(',')) type.pop_back();
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= type.size();) {
    const size_t end = std::min(type.find('|', begin), type.size());
    parts.push_back(type.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_value(const std::string& part) {
  return !part.empty() && std::ranges::all_of(part, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  }) && part != "-";
}

void read_type(OptionShape& option) {
  if (option.type.empty()) return;
  option.takes = Takes::kWord;
  for (const std::string& part : alternatives(option.type)) {
    if (is_value(part)) option.values.push_back(part);
    if (part == "FILE") option.takes = Takes::kFile;
    if ((part == "DIR" || part == "FOLDER") && option.takes != Takes::kFile)
      option.takes = Takes::kFolder;
  }
}

OptionShape option_shape(const CLI::Option& option) {
  OptionShape shape;
  for (const std::string& name : option.get_snames()) shape.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) shape.names.push_back("--" + name);
  if (shape.names.empty()) shape.names.push_back(option.get_name(true));
  if (option.get_items_expected_max() > 0) shape.type = plain_type(option);
  shape.text = option.get_description();
  shape.group = option.get_group();
  shape.repeats = option.get_expected_max() > 1;
  read_type(shape);
  return shape;
}

CommandShape command_shape(const CLI::App& command) {
  CommandShape shape;
  shape.name = command.get_name();
  shape.text = command.get_description();
  shape.group = command.get_group();
  shape.usage = usage_of(shape.name);
  shape.footer = command.get_footer();
  shape.takes_program = shape.usage.contains("-- COMMAND");
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    OptionShape one = option_shape(*option);
    if (option->get_positional()) {
      if (one.type != "COMMAND") shape.takes = one.takes;
      shape.positionals.push_back(std::move(one));
    } else {
      shape.options.push_back(std::move(one));
    }
  }
  // The words behind it are a script's, which the parser does not know.
  if (command.get_prefix_command()) shape.takes = Takes::kFile;
  return shape;
}

}  // namespace

ToolShape tool_shape(const CLI::App& app) {
  ToolShape tool{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) tool.options.push_back(option_shape(*option));
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) tool.commands.push_back(command_shape(*command));
  return tool;
}

std::string joined(const std::vector<std::string>& words, std::string_view by) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += by;
    text += word;
  }
  return text;
}

std::string first_clause(const std::string& text) {
  size_t end = text.size();
  for (const char* mark : {"; ", ". ", " (default"}) end = std::min(end, text.find(mark));
  return text.substr(0, end);
}

}  // namespace gpumemprof
