// gpumemprof mcp: answers programs that speak the Model Context Protocol, in a Python of ours.
#include <memory>
#include <nlohmann/json.hpp>

#include "base/size.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/python_program.h"

namespace gpumemprof {
namespace {

/// Below it the Python of sql does not start.
constexpr uint64_t kLeastMemoryBytes = 2ull << 30;

struct McpArguments {
  std::vector<std::string> folders;
  std::string memory = "4GiB";
  double timeout_s = 120;
};

int serve_tools(const McpArguments& arguments) {
  const auto memory = parse_size(arguments.memory);
  if (!memory) return report_error("--memory", memory.error());
  if (*memory < kLeastMemoryBytes)
    return report_error("--memory", {ErrorCode::kUsage, "must be 2GiB or more"});
  const nlohmann::json options = {{"command", own_program()},
                                  {"memory", format_bytes(*memory)},
                                  {"memory_bytes", *memory},
                                  {"timeout_s", arguments.timeout_s}};
  return become_child("mcp", options, arguments.folders);
}

}  // namespace

void add_mcp_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<McpArguments>();
  CLI::App* command =
      app.add_subcommand("mcp", "answer questions of AI agents about runs (Model Context Protocol)");
  add_value(command, "folder", "FOLDER...", arguments->folders,
            "only what lies below these folders is read (default: the working folder)");
  add_defaulted(command, "--memory", "SIZE", arguments->memory,
                "address space that the server and each call may use, 2GiB or more");
  add_defaulted(command, "--timeout", "SECONDS", arguments->timeout_s,
                "stop a call after this time")
      ->check(CLI::PositiveNumber);
  command->callback([arguments, &context] {
    if (arguments->folders.empty()) arguments->folders = {"."};
    context.exit_code = serve_tools(*arguments);
  });
}

}  // namespace gpumemprof
