#include "serve/page_host.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "base/query.h"
#include "page/bundle.h"
#include "serve/service.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kApi = "/api/v1/", kBearerWord = "Bearer ";

HttpResponse refuse(int status, std::string_view what) {
  return {.status = status, .type = "application/json", .body = error_answer(status, what).body};
}

}  // namespace

Result<std::string> random_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    return fail(ErrorCode::kSystem, std::string("no random token: ") + std::strerror(errno));
  std::string token;
  for (const unsigned char byte : bytes) {
    token += "0123456789abcdef"[byte >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  return token;
}

PageHost::PageHost(PageService& service, std::string token, ListenAddress address)
    : service_(service),
      token_(std::move(token)),
      address_(std::move(address)),
      headers_(page_headers()) {}

bool PageHost::is_own_host(const std::string& host) const {
  return host == address_text(address_) || host == "localhost:" + std::to_string(address_.port);
}

bool PageHost::has_token(const HttpRequest& request) const {
  const std::string_view field = request.authorization;
  if (field.starts_with(kBearerWord))
    return is_same_secret(field.substr(kBearerWord.size()), token_);
  const auto token = query_value(request.query, "token");
  return token && is_same_secret(*token, token_);
}

HttpResponse PageHost::answer(const HttpRequest& request) {
  if (!is_own_host(request.host)) return refuse(421, "this is not the page's address");
  if (!has_token(request))
    return refuse(401, "the address has no token: open the one that the command printed");
  if (request.path == "/") {
    return {.type = "text/html; charset=utf-8",
            .body = std::string(page_bundle()),
            .headers = headers_};
  }
  if (!request.path.starts_with(kApi)) return refuse(404, "try / or /api/v1/");
  PageAnswer answer =
      service_.answer(std::string_view(request.path).substr(kApi.size()), request.query);
  return {.status = answer.status,
          .type = std::move(answer.type),
          .body = std::move(answer.body),
          .headers = headers_,
          .is_later = answer.is_later};
}

}  // namespace gpumemprof
