// gpumemprof completion: what a shell loads to complete this command; and the page of the manual.
#include <cstdio>
#include <memory>

#include "cli/command_shape.h"
#include "cli/commands.h"

namespace gpumemprof {

void add_completion_command(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "print the completion script of bash, zsh or fish");
  command->add_option("shell", *shell, "the shell that will load it")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, shell] {
    const ToolShape tool = tool_shape(app);
    const std::string text = *shell == "bash"  ? bash_completion(tool)
                             : *shell == "zsh" ? zsh_completion(tool)
                                               : fish_completion(tool);
    std::fwrite(text.data(), 1, text.size(), stdout);
  });
  // For who builds a package: help does not list it.
  CLI::App* manual =
      app.add_subcommand("manual", "write the page of the manual, in roff")->group("");
  manual->callback([&app] {
    const std::string text = manual_page(tool_shape(app), GPUMEMPROF_VERSION, GPUMEMPROF_RELEASED);
    std::fwrite(text.data(), 1, text.size(), stdout);
  });
}

}  // namespace gpumemprof
