// gpumemprof runs: a history of runs in a folder or an S3-like store, kept by a Python of ours.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/python_program.h"

namespace gpumemprof {
namespace {

struct RunsArguments {
  std::string action;
  std::vector<std::string> words;
  std::string store, commit, model, line;
  std::vector<std::string> settings;
  std::string format = "table";
};

const std::vector<std::string> kActions = {"add", "list", "show", "diff", "rm"};

int keep_runs(const RunsArguments& arguments) {
  if (std::ranges::find(kActions, arguments.action) == kActions.end()) {
    const std::string meant = nearest(arguments.action, kActions);
    return report_error(
        "runs", {ErrorCode::kUsage,
                 "there is no action '" + arguments.action +
                     (meant.empty() ? "': add, list, show, diff or rm"
                                    : "'; did you mean " + meant + "?")});
  }
  std::string store = arguments.store;
  if (const char* named = std::getenv("GPUMEMPROF_RUNS"); store.empty() && named) store = named;
  if (store.empty())
    return report_error("runs", {ErrorCode::kUsage,
                                 "name the store: --store FOLDER, --store s3://BUCKET/FOLDER, or "
                                 "set GPUMEMPROF_RUNS"});
  const nlohmann::json options = {
      {"command", own_program()},   {"store", store},
      {"commit", arguments.commit}, {"model", arguments.model},
      {"line", arguments.line},     {"settings", arguments.settings},
      {"format", arguments.format}};
  std::vector<std::string> words = {arguments.action};
  words.insert(words.end(), arguments.words.begin(), arguments.words.end());
  return become_child("runs", options, words);
}

}  // namespace

void add_runs_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<RunsArguments>();
  CLI::App* command = app.add_subcommand("runs", "keep a history of runs, and compare them");
  add_value(command, "action", "add|list|show|diff|rm", arguments->action,
            "add PATH... (recordings, snapshots; one run each), list, show ID, diff ID ID, "
            "or rm ID...")
      ->required();
  add_value(command, "word", "PATH|ID...", arguments->words, "paths or ids");
  add_value(command, "--store", "FOLDER|URI", arguments->store,
            "a folder, or s3://BUCKET/FOLDER (default: GPUMEMPROF_RUNS)");
  add_value(command, "--commit", "COMMIT", arguments->commit,
            "add: commit of the program; HEAD is looked up in the working folder. list: "
            "only its runs");
  add_value(command, "--model", "NAME", arguments->model,
            "add: model of the run; list: only its runs");
  add_repeatable(command, "--set", "KEY=VALUE", arguments->settings,
                 "add: a setting of the run; list: only runs with this setting; may be repeated");
  add_value(command, "--line", "LINE", arguments->line,
            "list: also show what lines with this text held at each peak, such as "
            "model.py:41 or forward");
  command->add_option("--format", arguments->format, "table, csv or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"table", "csv", "json"}));
  command->callback([arguments, &context] { context.exit_code = keep_runs(*arguments); });
}

}  // namespace gpumemprof
