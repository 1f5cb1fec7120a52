// The page over HTTP: who may see it, and under which policy.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "page/service.h"
#include "serve/http_server.h"

namespace gpumemprof {

/// 128 random bits as text. Errors: kSystem.
Result<std::string> random_token();

/// Routes: "/" the page, "/api/v1/…" what it asks. Both want the token, in the query or as a
/// bearer, and a field Host that is the address or localhost: a page of another site that had its
/// name point here cannot say so. Not thread-safe.
class PageHost final : public UploadSink {
 public:
  static constexpr uint64_t kMostUploadBytes = uint64_t{4} << 30;  ///< of all files together

  /// `folder`: where files are kept that the page sends; empty: it may send none.
  PageHost(PageService& service, std::string token, ListenAddress address,
           std::string folder = {});
  HttpResponse answer(const HttpRequest& request);

  /// "PUT /api/v1/file?name=…": becomes one more file of the page.
  std::expected<int, HttpResponse> open(const HttpRequest& request) override;
  HttpResponse finish(const HttpRequest& request, int fd) override;
  void drop(int fd) override;

 private:
  bool is_own_host(const std::string& host) const;
  bool has_token(const HttpRequest& request) const;
  std::optional<HttpResponse> refusal(const HttpRequest& request) const;

  PageService& service_;
  const std::string token_;
  const ListenAddress address_;
  const std::string headers_;
  const std::string folder_;
  std::map<int, std::string> uploads_;  // by descriptor: the path
  uint64_t uploaded_bytes_ = 0, upload_count_ = 0;
};

}  // namespace gpumemprof
