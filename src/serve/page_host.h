// The page over HTTP: who may see it, and under which policy.
#pragma once

#include <string>

#include "page/service.h"
#include "serve/http_server.h"

namespace gpumemprof {

/// 128 random bits as text. Errors: kSystem.
Result<std::string> random_token();

/// Routes: "/" the page, "/api/v1/…" what it asks. Both want the token, in the query or as a
/// bearer, and a field Host that is the address or localhost: a page of another site that had its
/// name point here cannot say so. Not thread-safe.
class PageHost {
 public:
  PageHost(PageService& service, std::string token, ListenAddress address);
  HttpResponse answer(const HttpRequest& request);

 private:
  bool is_own_host(const std::string& host) const;
  bool has_token(const HttpRequest& request) const;

  PageService& service_;
  const std::string token_;
  const ListenAddress address_;
  const std::string headers_;
};

}  // namespace gpumemprof
