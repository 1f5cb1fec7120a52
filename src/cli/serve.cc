// gpumemprof serve: metrics for Prometheus and a live page, of what is recorded on this machine.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/watch.h"
#include "picture/camera.h"
#include "serve/live_profile.h"
#include "serve/service.h"

namespace gpumemprof {
namespace {

constexpr size_t kLeastTokenBytes = 16;

struct ServeArguments {
  CameraOptions camera;
  std::string listen = "127.0.0.1:9810", token, token_file;
};

/// The token: of the file, of the option, of the environment, in this order; empty for none.
/// Errors: kUsage for one that guessing would find or that no field can carry; those of the file.
Result<std::string> find_token(const ServeArguments& arguments) {
  std::string token = arguments.token;
  if (!arguments.token_file.empty()) {
    auto text = read_small_file(arguments.token_file, 4096);
    if (!text) return std::unexpected(text.error());
    token = *text;
    while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
    if (token.empty()) return fail(ErrorCode::kUsage, arguments.token_file + " contains no token");
  }
  const char* variable = std::getenv("GPUMEMPROF_TOKEN");
  if (token.empty() && variable) token = variable;
  if (token.empty()) return token;
  if (token.size() < kLeastTokenBytes)
    return fail(ErrorCode::kUsage, "a token needs at least 16 characters");
  for (const char c : token) {
    if (c <= 0x20 || c >= 0x7f)
      return fail(ErrorCode::kUsage, "a token may only contain visible ASCII characters");
  }
  return token;
}

int serve(const ServeArguments& arguments, const sigset_t& stop) {
  const auto address = parse_listen_address(arguments.listen);
  if (!address) return report_error("", address.error());
  if (arguments.camera.alerts.warning_percent > arguments.camera.alerts.critical_percent)
    return wrong_usage("--warning-threshold is above --critical-threshold");
  auto token = find_token(arguments);
  if (!token) return report_error("", token.error());
  if (!address->is_loopback && token->empty())
    return wrong_usage("--listen " + address_text(*address) +
                       " can be reached from other machines: a token is required "
                       "(--token-file FILE, or GPUMEMPROF_TOKEN)");
  auto server = HttpServer::open(*address, {});
  if (!server) return report_error("", server.error());
  CameraOptions looking = arguments.camera;
  looking.most_look_ns = kLookForAView;
  Camera camera(looking);
  Service service({.token = *token, .version = GPUMEMPROF_VERSION}, [&] { return camera.take(); },
                  [&] { return live_profile(camera, GPUMEMPROF_VERSION); });
  std::printf("Serving http://%s/, /metrics and /debug/pprof/gpu%s; stop with Ctrl-C or kill\n",
              address_text(server->address()).c_str(),
              token->empty() ? "" : " for clients with the token");
  std::fflush(stdout);
  const auto done =
      server->serve([&](const HttpRequest& request) { return service.answer(request); },
                    [&] {
                      if (server->streams() > 0) server->broadcast(service.next_event());
                    },
                    stop);
  return done ? kExitOk : report_error("", done.error());
}

}  // namespace

void add_serve_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App* command =
      app.add_subcommand("serve", "serve Prometheus metrics and a live page of running recordings");
  add_camera_folders(command, &arguments->camera);
  add_defaulted(command, "--listen", "ADDR", arguments->listen,
                "IP:PORT, [IPv6]:PORT, :PORT or PORT");
  add_value(command, "--token", "TOKEN", arguments->token,
            "token that clients must send; visible in ps, so prefer --token-file");
  add_value(command, "--token-file", "FILE", arguments->token_file,
            "file whose first line is the token (also: GPUMEMPROF_TOKEN)");
  add_camera_thresholds(command, &arguments->camera);
  command->callback(
      [arguments, &context] { context.exit_code = serve(*arguments, hold_stop_signals()); });
}

}  // namespace gpumemprof
