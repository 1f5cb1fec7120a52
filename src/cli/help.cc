#include "cli/help.h"

#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace gpumemprof {
namespace {

struct CommandHelp {
  std::string_view name, group;
  std::string_view usage;                    // behind the name
  std::array<std::string_view, 2> examples;  // without the tool's name
};

constexpr std::array<CommandHelp, 23> kCommands = {{
    {"run",
     "Record",
     "[OPTIONS] -- COMMAND [ARGUMENTS...]",
     {"run -- python train.py",
      "run -o slow --max-disk 20GiB -- torchrun --nproc-per-node 2 train.py"}},
    {"lines", "Record", "SCRIPT [ARGUMENTS...]", {"lines train.py", "lines train.py --epochs 1"}},
    {"gate",
     "Record",
     "[OPTIONS] -- COMMAND [ARGUMENTS...]",
     {"gate --baseline memory.json -- pytest -k train",
      "gate --baseline memory.json --reason \"first baseline\" -- python train.py"}},
    {"analyze",
     "Understand",
     "[OPTIONS] PATH...",
     {"analyze slow", "analyze snapshot.pickle --format html -o memory.html"}},
    {"view", "Understand", "[OPTIONS] PATH [OTHER]", {"view slow", "view slow --html slow.html"}},
    {"advise",
     "Understand",
     "[OPTIONS] RECORDING... or advise [OPTIONS] -- COMMAND [ARGUMENTS...]",
     {"advise slow", "advise --steps 5 -- python train.py"}},
    {"diff", "Understand", "[OPTIONS] A [B]", {"diff before after", "diff slow --steps 10 20"}},
    {"sql",
     "Understand",
     "[OPTIONS] PATH... [QUERY]",
     {"sql slow \"SELECT * FROM peak_by_line LIMIT 10\"",
      "sql before after \"SELECT * FROM grew('before', 'after')\" --format csv"}},
    {"mcp", "Understand", "[OPTIONS] [FOLDER...]", {"mcp", "mcp recordings --memory 8GiB"}},
    {"explain-oom",
     "Understand",
     "[OPTIONS] [FILE]",
     {"explain-oom train.log", "python train.py 2>&1 | TOOL explain-oom -"}},
    {"whatif",
     "Predict",
     "[OPTIONS] PATH",
     {"whatif snapshot.pickle --sweep",
      "whatif slow --set expandable_segments:True --capacity 24GiB"}},
    {"estimate",
     "Predict",
     "[OPTIONS] [-- COMMAND [ARGUMENTS...]]",
     {"estimate --model timm:resnet50 --batch auto --capacity 24GiB",
      "estimate -- python train.py"}},
    {"calibrate",
     "Predict",
     "[OPTIONS]",
     {"calibrate -o h200.json", "calibrate --device 1 -o second.json"}},
    {"top", "Watch", "[OPTIONS] [FOLDER...]", {"top", "top --once --format json"}},
    {"serve",
     "Watch",
     "[OPTIONS] [FOLDER...]",
     {"serve", "serve --listen 0.0.0.0:9810 --token-file token"}},
    {"monitor",
     "Watch",
     "[OPTIONS]",
     {"monitor --duration 60 --output memory.csv", "monitor --pid 4321 --interval 0.5"}},
    {"track",
     "Watch",
     "[OPTIONS]",
     {"track --output memory.jsonl", "track --output memory.json --warning-threshold 70"}},
    {"info", "Watch", "[OPTIONS]", {"info", "info --detailed --format json"}},
    {"diagnose", "Watch", "[OPTIONS]", {"diagnose", "diagnose --duration 10 --output diagnosis"}},
    {"runs",
     "Keep",
     "[OPTIONS] ACTION [PATH|ID...]",
     {"runs add slow --store history --commit HEAD --model resnet50 --set batch=64",
      "runs list --store s3://team/runs --line train.py:41"}},
    {"export",
     "Keep",
     "[OPTIONS] --to FORMAT PATH...",
     {"export slow --to perfetto -o slow.perfetto-trace", "export slow --to folded --at end"}},
    {"seal", "Keep", "FOLDER...", {"seal slow", "seal monday tuesday"}},
    {"completion",
     "Set up",
     "SHELL",
     {"completion zsh > ~/.zfunc/_TOOL",
      "completion bash > ~/.local/share/bash-completion/completions/TOOL"}},
}};

const CommandHelp* help_of(std::string_view name) {
  const auto found = std::ranges::find(kCommands, name, &CommandHelp::name);
  return found == kCommands.end() ? nullptr : &*found;
}

void say_plainly(CLI::Option* option) {
  if (option->get_type_size() == 0) return;
  option->option_text(plain_type(*option));
  const std::string value = option->get_default_str(), text = option->get_description();
  if (!value.empty() && !text.contains("default"))
    option->description(text + (text.empty() ? "" : " ") + "(default: " + value + ")");
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* command, std::string name) const override {
    const CommandHelp* help = help_of(command->get_name());
    if (!help) return CLI::Formatter::make_usage(command, std::move(name));
    return "Usage: " + name + ' ' + std::string(help->usage) + '\n';
  }
  /// The type of the value, which say_plainly() has; not what else the parser knows of the option.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string type = option->get_option_text();
    if (type.empty()) return type;
    type.insert(0, 1, ' ');
    // With one blank before it the description would be taken for more of the name.
    const size_t end = 2 + make_option_name(option, option->get_positional()).size() + type.size();
    return type.append(end + 1 == get_column_width() ? 1 : 0, ' ');
  }
};

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::string with_tool_name(std::string text, std::string_view name) {
  constexpr std::string_view kTool = "TOOL";
  for (size_t at = 0; (at = text.find(kTool, at)) != text.npos; at += name.size())
    text.replace(at, kTool.size(), name);
  return text;
}

std::string help_on_terminal(const std::string& help) {
  const size_t examples = std::min(help.find("\nExamples:\n"), help.size());
  return fitted_to_terminal(help.substr(0, examples), "") + help.substr(examples);
}

std::string usage_of(std::string_view command) {
  const CommandHelp* help = help_of(command);
  return help ? std::string(help->usage) : std::string();
}

std::string plain_type(const CLI::Option& option) {
  constexpr std::array<std::string_view, 7> kChecks = {":NONNEGATIVE", ":POSITIVE", ":FLOAT in",
                                                       ":INT in",      ":UINT in",  ":DIR",
                                                       ":UNSIGNED"};
  std::string type = option.get_type_name();
  if (const size_t set = type.find(":{"); set != type.npos) {
    type = type.substr(set + 2, type.find('}') - set - 2);
    std::ranges::replace(type, ',', '|');
  }
  for (std::string_view check : kChecks) type.resize(std::min(type.find(check), type.size()));
  return type == "TEXT" ? "NAME" : type == "UINT" || type == "INT" ? "N" : type;
}

void add_help(CLI::App& app) {
  const auto formatter = std::make_shared<HelpFormatter>();
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    const CommandHelp* help = help_of(command->get_name());
    if (!help) continue;
    command->group(std::string(help->group));
    command->formatter(formatter);
    for (CLI::Option* option : command->get_options()) say_plainly(option);
    std::string footer = command->get_footer();
    footer += footer.empty() ? "Examples:" : "\n\nExamples:";
    for (std::string_view example : help->examples) {
      const bool is_whole = example.find(" | ") != example.npos;
      footer += "\n  " + with_tool_name((is_whole ? "" : "TOOL ") + std::string(example), tool_name());
    }
    command->footer(footer);
  }
}

std::vector<std::string> with_help_words(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty()) return {"--help"};
  if (words[0] == "help") {
    words.erase(words.begin());
    words.resize(std::min<size_t>(words.size(), 1));
    words.emplace_back("--help");
  }
  // The parser would show the whole help for a name that it does not know.
  const std::vector<std::string> known = command_names(app);
  if (!words[0].starts_with('-') && std::ranges::find(known, words[0]) == known.end())
    words.resize(1);
  return words;
}

std::string wrong_option_sentence(const CLI::App& command, const std::string& name) {
  const bool is_long = name.starts_with("--");
  const std::string meant = is_long ? nearest(name, option_names(command)) : "";
  const bool is_whole = command.get_parent() == nullptr;
  const std::string see = is_whole ? std::string() : command.get_name() + ' ';
  return name + " is not an option of " + (is_whole ? tool_name() : command.get_name()) +
         (meant.empty() ? "" : "; did you mean " + meant + "?") + " (see " + tool_name() + ' ' +
         see + "--help)";
}

std::string wrong_option_sentence(const CLI::App& command) {
  for (const std::string& word : command.remaining()) {
    if (word != "--") return wrong_option_sentence(command, word.substr(0, word.find('=')));
  }
  return {};
}

/// " from 1 to 64", " above 0": which values the option called `name` takes; empty without bounds.
std::string bounds_of(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  const std::string type = option ? option->get_type_name() : "";
  if (type.contains(":POSITIVE")) return " above 0";
  if (const size_t in = type.find(" in ["), to = type.find(" - ", in); to != type.npos)
    return " from " + type.substr(in + 5, to - in - 5) + " to " +
           type.substr(to + 3, type.find(']', to) - to - 3);
  return type.contains(":NONNEGATIVE") || type.contains(":UNSIGNED") ? " from 0 on" : "";
}

/// What CLI11 says of a value, without its bounds of 300 digits and its words for a programmer.
std::string plain_value_error(const CLI::App& command, const std::string& what) {
  constexpr std::string_view kValue = ": Value ", kRange = " not in range ";
  constexpr std::string_view kConvert = "Could not convert: ";  // of a flag: numbers were checked
  const std::string_view text = what;
  if (text.starts_with(kConvert))
    return what.substr(kConvert.size(), what.find(" = ") - kConvert.size()) + " takes no value";
  if (const size_t missing = text.find(": 1 required "); missing != text.npos)
    return what.substr(0, missing) + ": a value is missing";
  if (const size_t in = text.find(" not in {"); in != text.npos && text.ends_with('}')) {
    std::string values = what.substr(in + 9, text.size() - in - 10);
    for (size_t comma = 0; (comma = values.find(',', comma)) != values.npos; comma += 2)
      values.insert(comma + 1, " ");
    const size_t name = text.find(": ");
    if (name < in)
      return what.substr(0, name) + ": '" + what.substr(name + 2, in - name - 2) +
             "' is not one of " + values;
  }
  const std::string bounds = bounds_of(command, what.substr(0, what.find(": ")));
  if (text.ends_with("' is not a number") || text.ends_with("' is not a whole number"))
    return what + bounds;
  const size_t value = text.find(kValue), range = text.rfind(kRange);
  if (value == text.npos || range == text.npos || value + kValue.size() > range) return what;
  const std::string given = what.substr(value + kValue.size(), range - value - kValue.size());
  return what.substr(0, value) + ": '" + given + "' is " +
         (bounds == " from 0 on" ? "below 0" : "not" + bounds);
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error,
                        const std::vector<std::string>& words) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  const std::string see = std::string(" (see ") + tool_name() +
                          (parsed.empty() ? "" : ' ' + parsed[0]->get_name()) + " --help)";
  if (parsed.empty() && !words.empty() && !words[0].starts_with('-')) {
    const std::string meant = nearest(words[0], command_names(app));
    return "unknown command '" + words[0] + "'" +
           (meant.empty() ? "" : "; did you mean " + meant + "?") + see;
  }
  const CLI::App& command = parsed.empty() ? app : *parsed[0];
  const std::vector<std::string> known = option_names(command);
  const std::string what = error.what();
  // Of a command that has a program's words behind its own CLI11 names those.
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                        !(command.get_allow_extras() || command.get_prefix_command());
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (word == "--") break;
    const bool is_known = std::ranges::find(known, name) != known.end();
    const bool is_short = parsed.empty() && word.size() == 2 && word[0] == '-';
    if (!(word.starts_with("--") || is_short) || !(is_extra || what.contains(name)) || is_known)
      continue;
    return wrong_option_sentence(command, name);
  }
  // CLI11 counts a program's words to those before "--".
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && command.get_name() == "advise" &&
      std::ranges::find(words, "--") != words.end())
    return "give recordings or a program, not both" + see;
  constexpr std::string_view kAtMost = "path: At Most ";
  if (what.starts_with(kAtMost))
    return command.get_name() + " takes " +
           what.substr(kAtMost.size(), what.find(' ', kAtMost.size()) - kAtMost.size()) +
           " paths at most" + see;
  if (const auto words_left = command.remaining();
      dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !words_left.empty())
    return "unexpected argument '" + words_left.front() + "'" + see;
  const auto with_words = [&](std::string_view parsers, const char* ours) {
    const size_t at = what.find(parsers);
    return at == what.npos ? what : what.substr(0, at) + ours + what.substr(at + parsers.size());
  };
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr)
    return with_words(" requires ", " goes with ") + see;
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr)
    return with_words(" excludes ", " does not go with ") + see;
  return plain_value_error(command, what) + see;
}

}  // namespace gpumemprof
