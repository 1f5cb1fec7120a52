// What `gpumemprof serve` answers, apart from sockets.
#pragma once

#include <functional>
#include <string>

#include "picture/picture.h"
#include "serve/http_server.h"
#include "serve/metric_families.h"

namespace gpumemprof {

struct ServiceOptions {
  std::string token;    ///< empty: none is asked for, and the field Host must be a local one
  std::string version;  ///< of this command
};

/// Routes: "/" the live page, "/events" its stream, "/metrics", "/debug/pprof/gpu", "/healthz". A path is compared with
/// these and used for nothing else. Not thread-safe.
class Service {
 public:
  using TakeProfile = std::function<Result<std::string>()>;

  /// `take` and `profile` are asked at most once in 900 ms each, and only where somebody wants to
  /// see. `profile` gives a gzipped profile.proto.
  Service(ServiceOptions options, std::function<Picture()> take, TakeProfile profile = {})
      : options_(std::move(options)), take_(std::move(take)), take_profile_(std::move(profile)) {}

  HttpResponse answer(const HttpRequest& request);
  /// The event that goes to every stream now.
  std::string next_event();
  /// Taken anew where the last one is older than 900 ms.
  const Picture& picture();

 private:
  bool may_see(const HttpRequest& request) const;
  HttpResponse profile();

  ServiceOptions options_;
  std::function<Picture()> take_;
  TakeProfile take_profile_;
  Picture last_;
  HttpResponse last_profile_;
  int64_t last_ns_ = 0, last_profile_ns_ = 0;
};

/// In a time that does not tell where they differ.
bool is_same_secret(std::string_view a, std::string_view b);

}  // namespace gpumemprof
