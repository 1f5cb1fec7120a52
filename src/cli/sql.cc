// gpumemprof sql: questions to runs and lakes, answered by DuckDB in a Python of ours.
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/python_program.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostQueryBytes = 16 << 20;

struct SqlArguments {
  std::vector<std::string> words;
  std::string file;
  std::string format = "table";
  double timeout_s = 0;
  bool allow_files = false;
  bool no_seal = false;
};

bool is_query(const std::string& word) {
  if (word.empty()) return true;
  return word.find_first_of(" \t\n;") != word.npos && access(word.c_str(), F_OK) != 0;
}

int ask(SqlArguments arguments) {
  nlohmann::json query;  // null: asked at the prompt
  if (is_query(arguments.words.back())) {
    query = arguments.words.back();
    arguments.words.pop_back();
  }
  if (!arguments.file.empty()) {
    if (!query.is_null()) return wrong_usage("give a query or --file, not both");
    auto text = read_small_file(arguments.file, kMostQueryBytes);
    if (!text) return report_error(arguments.file, text.error());
    query = *text;
  }
  if (arguments.words.empty())
    return wrong_usage("sql: name the runs before the query (see " +
                       std::string(tool_name()) + " sql --help)");
  const nlohmann::json options = {{"query", query},
                                  {"format", arguments.format},
                                  {"timeout_s", arguments.timeout_s},
                                  {"allow_files", arguments.allow_files},
                                  {"seal", !arguments.no_seal}};
  return become_child("sql", options, arguments.words);
}

}  // namespace

void add_sql_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<SqlArguments>();
  CLI::App* command = app.add_subcommand("sql", "query runs and lakes with SQL");
  add_value(command, "path", "PATH...", arguments->words,
            "recordings, snapshots, folders of export --to parquet; the last word may be "
            "the query; without one, it is read from a prompt or from standard input")
      ->required();
  add_value(command, "--file", "FILE", arguments->file, "read the query from this file");
  command->add_option("--format", arguments->format, "how rows are printed")
      ->capture_default_str()
      ->check(CLI::IsMember({"table", "csv", "json"}));
  add_value(command, "--timeout", "SECONDS", arguments->timeout_s,
            "stop a query after this time (default: none)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--allow-files", arguments->allow_files,
                    "let queries read and write files (default: only what was opened is read)");
  command->add_flag("--no-seal", arguments->no_seal, "do not compress the files of recordings");
  command->callback([arguments, &context] { context.exit_code = ask(*arguments); });
}

}  // namespace gpumemprof
