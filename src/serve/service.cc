#include "serve/service.h"

#include "base/query.h"
#include "base/steady_clock.h"
#include "page/bundle.h"
#include "serve/metrics_text.h"

namespace gpumemprof {
namespace {

constexpr int64_t kFreshNs = 900'000'000;
constexpr std::string_view kBearer = "Bearer ";
// The page finds it, and follows the stream instead of asking for a file.
constexpr std::string_view kLiveMark =
    "<script type=\"application/json\" id=\"gpumemprof-live\">{}</script>";

}  // namespace

bool is_same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

bool Service::may_see(const HttpRequest& request) const {
  if (options_.token.empty()) return true;
  const std::string_view field = request.authorization;
  if (field.starts_with(kBearer))
    return is_same_secret(field.substr(kBearer.size()), options_.token);
  // A page cannot give a field to its stream of events, so there the query has it.
  const auto token = query_value(request.query, "token");
  return token && is_same_secret(*token, options_.token);
}

const Picture& Service::picture() {
  const int64_t now = steady_now_ns();
  if (last_ns_ == 0 || now - last_ns_ >= kFreshNs) {
    last_ = take_();
    last_ns_ = now;
  }
  return last_;
}

std::string Service::next_event() {
  return "event: picture\ndata: " + picture_json(picture(), Commands::kProgramOnly) + "\n\n";
}

HttpResponse Service::profile() {
  const int64_t now = steady_now_ns();
  if (last_profile_ns_ != 0 && now - last_profile_ns_ < kFreshNs) return last_profile_;
  auto taken = take_profile_();
  if (!taken) return {.status = 503, .body = taken.error().message + '\n'};
  last_profile_ = {.type = "application/octet-stream",
                   .body = std::move(*taken),
                   .headers = "Content-Disposition: attachment; filename=\"gpu.pb.gz\"\r\n"};
  last_profile_ns_ = now;
  return last_profile_;
}

HttpResponse Service::answer(const HttpRequest& request) {
  if (options_.token.empty() && !request.host.empty() && !is_local_host_field(request.host))
    return {.status = 421, .body = "without a token this server answers only to IP addresses\n"};
  const std::string& path = request.path;
  if (path == "/healthz") return {.body = "ok\n"};
  if (!may_see(request)) {
    return {.status = 401,
            .body = "a token is required: Authorization: Bearer TOKEN, or ?token=TOKEN\n",
            .headers = "WWW-Authenticate: Bearer realm=\"gpumemprof\"\r\n"};
  }
  if (path == "/") {
    return {.type = "text/html; charset=utf-8",
            .body = page_with(kLiveMark),
            .headers = page_headers()};
  }
  if (path == "/metrics") {
    const MetricsFormat format = metrics_format(request.accept);
    const auto families = metric_families(picture(), options_.version);
    return {.type = metrics_type(format), .body = metrics_text(families, format)};
  }
  if (path == "/debug/pprof/gpu" && take_profile_) return profile();
  if (path == "/events")
    return {.type = "text/event-stream", .body = next_event(), .is_stream = true};
  return {.status = 404, .body = "try /, /metrics, /debug/pprof/gpu, /events or /healthz\n"};
}

}  // namespace gpumemprof
