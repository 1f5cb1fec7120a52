#include "serve/page_host.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

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

/// The last part of what a browser calls a file: a name in a folder, and nothing else.
std::string file_name(const std::optional<std::string>& said) {
  constexpr size_t kMostBytes = 200;
  std::string name = said.value_or("");
  name.erase(0, name.find_last_of("/\\") + 1);
  std::erase_if(name, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (name.size() > kMostBytes) name.erase(0, name.size() - kMostBytes);
  if (name.empty() || name.front() == '.') name.insert(0, "file");
  return name;
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

PageHost::PageHost(PageService& service, std::string token, ListenAddress address,
                   std::string folder)
    : service_(service),
      token_(std::move(token)),
      address_(std::move(address)),
      headers_(page_headers()),
      folder_(std::move(folder)) {}

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

std::optional<HttpResponse> PageHost::refusal(const HttpRequest& request) const {
  if (!is_own_host(request.host)) return refuse(421, "this is not the page's address");
  if (!has_token(request))
    return refuse(401, "the address has no token: open the one that the command printed");
  return std::nullopt;
}

std::expected<int, HttpResponse> PageHost::open(const HttpRequest& request) {
  if (auto refused = refusal(request)) return std::unexpected(std::move(*refused));
  if (request.path != std::string(kApi) + "file" || folder_.empty())
    return std::unexpected(refuse(404, "nothing can be sent here"));
  if (request.body_bytes == 0) return std::unexpected(refuse(400, "the file is empty"));
  if (request.body_bytes > kMostUploadBytes - uploaded_bytes_)
    return std::unexpected(refuse(413, "files that are sent may be 4 GiB in all"));
  struct statvfs disk{};
  const uint64_t with_margin = request.body_bytes + (uint64_t{256} << 20);
  if (statvfs(folder_.c_str(), &disk) != 0 ||
      uint64_t{disk.f_bavail} * disk.f_frsize < with_margin)
    return std::unexpected(refuse(507, "there is no room for it in " + folder_));
  // A folder of its own keeps the name, which is what the page shows and what some readers go by.
  const std::string place = folder_ + "/" + std::to_string(upload_count_++);
  const std::string path = place + "/" + file_name(query_value(request.query, "name"));
  if (mkdir(place.c_str(), 0700) != 0)
    return std::unexpected(refuse(500, std::string("no folder: ") + std::strerror(errno)));
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0)
    return std::unexpected(refuse(500, std::string("no file: ") + std::strerror(errno)));
  uploads_[fd] = path;
  uploaded_bytes_ += request.body_bytes;
  return fd;
}

HttpResponse PageHost::finish(const HttpRequest& request, int fd) {
  const std::string path = std::move(uploads_[fd]);
  uploads_.erase(fd);
  const bool is_written = close(fd) == 0;
  const auto number = is_written ? service_.add({path}) : std::nullopt;
  if (number) {
    return {.type = "application/json",
            .body = "{\"file\": " + std::to_string(*number) + "}",
            .headers = headers_};
  }
  unlink(path.c_str());
  uploaded_bytes_ -= request.body_bytes;
  if (!is_written) return refuse(507, std::string("not written: ") + std::strerror(errno));
  return refuse(503, "another file is being read, or there are 16 already");
}

void PageHost::drop(int fd) {
  close(fd);
  unlink(uploads_[fd].c_str());
  uploads_.erase(fd);
}

HttpResponse PageHost::answer(const HttpRequest& request) {
  if (auto refused = refusal(request)) return std::move(*refused);
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
