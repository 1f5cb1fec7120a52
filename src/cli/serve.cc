// gpumemprof serve: metrics for Prometheus and a live page, of what is recorded on this machine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/file.h"
#include "base/steady_clock.h"
#include "cli/camera_arguments.h"
#include "cli/commands.h"
#include "cli/watch.h"
#include "picture/camera.h"
#include "report/words.h"
#include "serve/otlp_message.h"
#include "serve/otlp_push.h"
#include "serve/service.h"

namespace gpumemprof {
namespace {

constexpr size_t kLeastTokenBytes = 16;

struct ServeArguments {
  CameraOptions camera;
  std::string listen = "127.0.0.1:9810", token, token_file;
  std::string otlp;
  std::vector<std::string> otlp_headers;
  double otlp_interval = 10;
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
    if (token.empty()) return fail(ErrorCode::kUsage, arguments.token_file + " holds no token");
  }
  const char* variable = std::getenv("GPUMEMPROF_TOKEN");
  if (token.empty() && variable) token = variable;
  if (token.empty()) return token;
  if (token.size() < kLeastTokenBytes)
    return fail(ErrorCode::kUsage, "a token has at least 16 characters");
  for (const char c : token) {
    if (c <= 0x20 || c >= 0x7f)
      return fail(ErrorCode::kUsage, "a token has visible ASCII characters alone");
  }
  return token;
}

/// Where metrics are pushed to. Errors: kUsage.
Result<OtlpOptions> find_collector(const ServeArguments& arguments) {
  OtlpOptions out;
  auto target = parse_otlp_url(arguments.otlp);
  if (!target) return std::unexpected(target.error());
  out.target = std::move(*target);
  for (const std::string& text : arguments.otlp_headers) {
    auto field = parse_http_field(text);
    if (!field) return fail(ErrorCode::kUsage, "--otlp-header: " + field.error().message);
    out.fields.push_back(std::move(*field));
  }
  if (!(arguments.otlp_interval >= 1 && arguments.otlp_interval <= 86'400))
    return fail(ErrorCode::kUsage, "--otlp-interval is from 1 to 86400 seconds");
  return out;
}

/// Pushes a picture each interval, from the thread that serves.
class PushClock {
 public:
  PushClock(OtlpOptions options, double interval_seconds)
      : push_(std::move(options)), interval_ns_(static_cast<int64_t>(interval_seconds * 1e9)) {}
  /// Called about every second.
  void tick(Service* service) {
    const int64_t now = steady_now_ns();
    if (now < next_ns_) return;
    next_ns_ = std::max(next_ns_ + interval_ns_, now);
    uint64_t points = 0;
    std::string message = otlp_metrics(service->picture(), GPUMEMPROF_VERSION, &points);
    push_.send(std::move(message), points);
  }
  OtlpCounts counts() const { return push_.counts(); }

 private:
  OtlpPush push_;
  int64_t interval_ns_, next_ns_ = 0;
};

int serve(const ServeArguments& arguments, const sigset_t& stop) {
  const auto address = parse_listen_address(arguments.listen);
  if (!address) return report_error("", address.error());
  if (arguments.camera.alerts.warning_percent > arguments.camera.alerts.critical_percent) {
    return report_error(
        "", {ErrorCode::kUsage, "--warning-threshold is above --critical-threshold", std::nullopt});
  }
  auto token = find_token(arguments);
  if (!token) return report_error("", token.error());
  if (!address->is_loopback && token->empty()) {
    return report_error("", {ErrorCode::kUsage,
                             "--listen " + address_text(*address) +
                                 " can be reached from other machines: a token is wanted "
                                 "(--token-file FILE, or GPUMEMPROF_TOKEN)",
                             std::nullopt});
  }
  std::unique_ptr<PushClock> push;
  if (!arguments.otlp.empty()) {
    auto collector = find_collector(arguments);
    if (!collector) return report_error("--otlp", collector.error());
    push = std::make_unique<PushClock>(std::move(*collector), arguments.otlp_interval);
  }
  auto server = HttpServer::open(*address, {});
  if (!server) return report_error("", server.error());
  CameraOptions looking = arguments.camera;
  looking.most_look_ns = kLookForAView;
  Camera camera(looking);
  ServiceOptions options{.token = *token, .version = GPUMEMPROF_VERSION};
  if (push) options.push_counts = [&] { return push->counts(); };
  Service service(std::move(options), [&] { return camera.take(); });
  std::printf("Serving http://%s/ and /metrics%s; stop with Ctrl-C or kill\n",
              address_text(server->address()).c_str(),
              token->empty() ? "" : " to those who have the token");
  std::fflush(stdout);
  const auto done =
      server->serve([&](const HttpRequest& request) { return service.answer(request); },
                    [&] {
                      if (server->streams() > 0) server->broadcast(service.next_event());
                      if (push) push->tick(&service);
                    },
                    stop, push != nullptr);
  return done ? kExitOk : report_error("", done.error());
}

}  // namespace

void add_serve_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App* command =
      app.add_subcommand("serve", "metrics for Prometheus and a live page of what is recorded now");
  add_camera_folders(command, &arguments->camera);
  command->add_option("--listen", arguments->listen, "IP:PORT, [IPv6]:PORT, :PORT or PORT")
      ->type_name("ADDR")
      ->capture_default_str();
  command
      ->add_option("--token", arguments->token,
                   "who asks must have it; other users of this machine see a command line, so "
                   "better:")
      ->type_name("TOKEN");
  command
      ->add_option("--token-file", arguments->token_file,
                   "its first line is the token (also: GPUMEMPROF_TOKEN)")
      ->type_name("FILE");
  command
      ->add_option("--otlp", arguments->otlp,
                   "also push metrics to this collector by OTLP over HTTP: http://HOST:4318")
      ->type_name("URL");
  command
      ->add_option("--otlp-header", arguments->otlp_headers,
                   "a header of each push, such as Authorization=…; may be given again")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--otlp-interval", arguments->otlp_interval, "seconds between two pushes")
      ->type_name("S")
      ->capture_default_str();
  add_camera_thresholds(command, &arguments->camera);
  command->callback(
      [arguments, &context] { context.exit_code = serve(*arguments, hold_stop_signals()); });
}

}  // namespace gpumemprof
