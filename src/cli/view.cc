// gpumemprof view: the page of a run, served to this machine's browser.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/page.h"
#include "cli/temporary_folder.h"
#include "cli/watch.h"
#include "input/input.h"
#include "page/service.h"
#include "serve/page_host.h"

extern char** environ;

namespace gpumemprof {
namespace {

constexpr uint16_t kPorts = 50;  // that are tried, from --port on

struct ViewArguments {
  std::vector<std::string> paths;
  uint16_t port = 8050;
  bool no_browser = false, no_index = false;
  std::string html;
};

/// The first port from `port` on that is free.
Result<HttpServer> open_server(uint16_t port) {
  for (uint16_t i = 0;; ++i) {
    ListenAddress address{.ip = "127.0.0.1", .port = static_cast<uint16_t>(port + i)};
    address.is_loopback = true;
    auto server = HttpServer::open(address, {});
    const bool may_try_next = port != 0 && i + 1 < kPorts && port + i < UINT16_MAX;
    if (server || !may_try_next) return server;
  }
}

/// Where there is a desktop; that it fails is no error, as the address is printed.
void open_browser(const std::string& url) {
  if (!std::getenv("DISPLAY") && !std::getenv("WAYLAND_DISPLAY")) return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  std::string program = "xdg-open", argument = url;
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t pid;
  posix_spawnp(&pid, "xdg-open", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
}

PageLoad how_to_load(const ViewArguments& arguments) {
  return {.uses_index = !arguments.no_index,
          .on_note = [](const std::string& note) {
            std::fprintf(stderr, "gpumemprof: %s\n", note.c_str());
          }};
}

/// What cannot be read at all shows at once; all else the page says. Ends early if reading would
/// take longer than the moment: the browser starts meanwhile.
Status wait_a_moment(PageService& service) {
  constexpr int kLooks = 30;
  double before = service.share_read();
  for (int left = kLooks; left > 0 && service.is_reading(); --left) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const double now = service.share_read();
    if (now > before && 1 - now > (now - before) * left) break;
    before = now;
  }
  return service.is_reading() ? Status() : service.wait();
}

/// Two runs with events are there to be compared.
bool are_compared(const std::vector<std::string>& paths) {
  return paths.size() == 2 && std::ranges::all_of(paths, [](const std::string& path) {
           const InputKind kind = input_kind({path});
           return kind != InputKind::kSamples && kind != InputKind::kOomDump;
         });
}

int view(const ViewArguments& arguments, const sigset_t& stop) {
  std::vector<std::vector<std::string>> files;
  for (const std::string& path : arguments.paths) {
    if (access(path.c_str(), R_OK) != 0)
      return report_error(path, {ErrorCode::kNotFound, strerror(errno)});
    files.push_back({path});
  }
  if (!arguments.html.empty()) return write_page_of(files, arguments.html, how_to_load(arguments));
  auto token = random_token();
  if (!token) return report_error("", token.error());
  auto server = open_server(arguments.port);
  if (!server) return report_error("", server.error());
  PageService service(std::move(files), GPUMEMPROF_VERSION, how_to_load(arguments));
  if (auto read = wait_a_moment(service); !read)
    return report_error(service.failed_path(), read.error());
  auto folder = TemporaryFolder::make("gpumemprof-view");
  PageHost host(service, *token, server->address(), folder ? folder->path() : "");
  server->set_uploads(&host);
  const std::string url = "http://" + address_text(server->address()) + "/?token=" + *token +
                          (are_compared(arguments.paths) ? "#tab=compare" : "");
  std::printf("Serving %s (stop with Ctrl-C)\n", url.c_str());
  std::fflush(stdout);
  if (!arguments.no_browser) open_browser(url);
  const auto done =
      server->serve([&](const HttpRequest& request) { return host.answer(request); }, [] {}, stop);
  if (!done) return report_error("", done.error());
  if (!service.is_reading()) return kExitOk;
  { const auto gone = std::move(folder); }  // nothing else is written
  _exit(kExitOk);
}

}  // namespace

void add_view_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<ViewArguments>();
  CLI::App* command =
      app.add_subcommand("view", "explore a run in the browser, or two runs side by side");
  add_value(command, "path", "DIR|FILE", arguments->paths,
            "a recording, a snapshot or a profile; a second one is compared with it")
      ->required()
      ->expected(1, 2);
  add_defaulted(command, "--port", "N", arguments->port,
                "port on 127.0.0.1; the next free one if it is taken")
      ->check(CLI::Range(0, 65535));
  command->add_flag("--no-browser", arguments->no_browser, "print the address, open no browser");
  command->add_flag("--no-index", arguments->no_index,
                    "neither read nor write the index that makes the next opening fast");
  add_value(command, "--html", "FILE", arguments->html,
            "write the page with its data to this file instead, at most 10 MB");
  command->callback(
      [arguments, &context] { context.exit_code = view(*arguments, hold_stop_signals()); });
}

}  // namespace gpumemprof
