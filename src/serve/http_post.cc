#include "serve/http_post.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/steady_clock.h"
#include "serve/http_request.h"
#include "serve/resolve_host.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostAnswerBytes = 64 << 10;
constexpr uint64_t kMostRetryAfterSeconds = 3'600;

std::unexpected<Error> refused(const HttpTarget& target, const std::string& why) {
  return fail(ErrorCode::kSystem, target.authority + ": " + why);
}

/// Closes its descriptor.
struct Socket {
  int fd = -1;
  explicit Socket(int fd) : fd(fd) {}
  Socket(const Socket&) = delete;
  ~Socket() {
    if (fd >= 0) close(fd);
  }
};

/// False: the time is over.
bool wait_for(int fd, short events, int64_t deadline_ns) {
  for (;;) {
    const int64_t left_ms = (deadline_ns - steady_now_ns()) / 1'000'000;
    if (left_ms <= 0) return false;
    pollfd one{fd, events, 0};
    const int ready = poll(&one, 1, static_cast<int>(std::min<int64_t>(left_ms, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

/// A connected socket, or -1 with errno.
int connect_to(const addrinfo& address, int64_t deadline_ns) {
  const int fd =
      socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol);
  if (fd < 0) return -1;
  int error = 0;
  if (connect(fd, address.ai_addr, address.ai_addrlen) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      if (!wait_for(fd, POLLOUT, deadline_ns))
        error = ETIMEDOUT;
      else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    }
  }
  if (error == 0) return fd;
  close(fd);
  errno = error;
  return -1;
}

Result<int> connect_to(const HttpTarget& target, int64_t deadline_ns) {
  auto found = resolve_host(target.host, target.port, deadline_ns - steady_now_ns());
  if (!found) return refused(target, found.error().message);
  int error = ECONNREFUSED;
  for (const addrinfo* one = found->get(); one != nullptr; one = one->ai_next) {
    const int fd = connect_to(*one, deadline_ns);
    if (fd >= 0) return fd;
    error = errno;
  }
  return refused(target, std::strerror(error));
}

bool is_same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return tolower(x) == tolower(y); });
}

/// The value of a field of the head, without the spaces before it; empty where it has none.
std::string_view field_of(std::string_view head, std::string_view name) {
  for (size_t at = head.find("\r\n"); at < head.size();) {
    at += 2;
    const size_t end = std::min(head.find("\r\n", at), head.size());
    const std::string_view line = head.substr(at, end - at);
    at = end;
    const size_t colon = line.find(':');
    if (colon == line.npos || !is_same_name(line.substr(0, colon), name)) continue;
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    return value;
  }
  return {};
}

std::optional<uint64_t> whole_number_of(std::string_view text) {
  uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size())
    return std::nullopt;
  return number;
}

/// Whether all has come of an answer that says how long it is.
bool is_whole(std::string_view bytes) {
  const size_t head_end = bytes.find("\r\n\r\n");
  if (head_end == bytes.npos) return false;
  const auto length = whole_number_of(field_of(bytes.substr(0, head_end), "Content-Length"));
  return length && bytes.size() - head_end - 4 >= *length;
}

}  // namespace

Result<HttpTarget> parse_http_url(std::string_view url) {
  const std::string whole(url);
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorCode::kUsage, whole + ": " + why);
  };
  if (url.starts_with("https://")) {
    return wrong(
        "https is not spoken: send to a collector on this machine, such as "
        "http://127.0.0.1:4318, and let that one encrypt");
  }
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return wrong("an address begins with http://");
  for (const char c : url) {
    if (c <= 0x20 || c >= 0x7f) return wrong("an address has visible ASCII characters alone");
  }
  url.remove_prefix(kScheme.size());
  HttpTarget out;
  const size_t slash = std::min(url.find('/'), url.size());
  out.authority = url.substr(0, slash);
  out.path = slash == url.size() ? "/" : url.substr(slash);
  if (out.path.find_first_of("#") != out.path.npos) return wrong("an address ends before #");
  if (out.authority.find_first_of("@?#") != out.authority.npos)
    return wrong("an address is a host and a port; secrets go into a header");
  std::string_view place = out.authority;
  std::string_view port = "80";
  const size_t bracket = place.starts_with('[') ? place.find(']') : 0;
  if (bracket == place.npos) return wrong("[ without ]");
  if (const size_t colon = place.find(':', bracket); colon != place.npos) {
    port = place.substr(colon + 1);
    place = place.substr(0, colon);
  }
  if (bracket != 0) {
    if (place.size() != bracket + 1) return wrong("no port stands behind ]");
    place = place.substr(1, bracket - 1);
  }
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (place.empty() || error != std::errc{} || end != port.data() + port.size() || number == 0 ||
      number > 65535) {
    return wrong("a host and a port are wanted, such as http://127.0.0.1:4318");
  }
  out.host = place, out.port = port;
  return out;
}

Result<std::pair<std::string, std::string>> parse_http_field(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string name(text.substr(0, equals));
  if (equals == text.npos || !is_token(name))
    return fail(ErrorCode::kUsage, "a header is NAME=VALUE");
  const std::string value(text.substr(equals + 1));
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f)
      return fail(ErrorCode::kUsage, name + ": the value of a header has visible characters alone");
  }
  for (const char* own : {"Host", "Content-Length", "Content-Type", "Connection",
                          "Transfer-Encoding", "Content-Encoding", "Expect"}) {
    if (is_same_name(name, own)) return fail(ErrorCode::kUsage, name + ": is set by this command");
  }
  return std::pair(name, value);
}

Result<PostAnswer> parse_http_answer(std::string_view bytes) {
  const auto bad = [](uint64_t at) { return fail_at(at, "the answer is not HTTP/1"); };
  const size_t head_end = bytes.find("\r\n\r\n");
  if (head_end == bytes.npos || !bytes.starts_with("HTTP/1.") || bytes.size() < 13) return bad(0);
  PostAnswer out;
  const std::string_view code = bytes.substr(9, 3);
  const auto [end, error] = std::from_chars(code.data(), code.data() + 3, out.status);
  if (bytes[8] != ' ' || error != std::errc{} || end != code.data() + 3 || out.status < 100)
    return bad(9);
  const std::string_view head = bytes.substr(0, head_end);
  // A date is not read: then the ordinary pause holds.
  if (const auto seconds = whole_number_of(field_of(head, "Retry-After"))) {
    out.retry_after_ns =
        static_cast<int64_t>(std::min(*seconds, kMostRetryAfterSeconds)) * kSecondNs;
  }
  if (!field_of(head, "Transfer-Encoding").empty()) return out;  // pieces are not put together
  out.body = bytes.substr(head_end + 4, kMostAnswerBytes);
  return out;
}

Result<PostAnswer> http_post(const HttpTarget& target, const HttpFields& fields,
                             std::string_view body, int64_t timeout_ns) {
  const int64_t deadline_ns = steady_now_ns() + timeout_ns;
  const auto connected = connect_to(target, deadline_ns);
  if (!connected) return std::unexpected(connected.error());
  const Socket socket(*connected);
  std::string out = "POST " + target.path + " HTTP/1.1\r\nHost: " + target.authority +
                    "\r\nContent-Type: application/x-protobuf\r\nConnection: close\r\n"
                    "Content-Length: " +
                    std::to_string(body.size()) + "\r\n";
  for (const auto& [name, value] : fields) out += name + ": " + value + "\r\n";
  (out += "\r\n") += body;
  std::string in;
  bool is_answered = false;
  for (size_t sent = 0; sent < out.size();) {
    if (!wait_for(socket.fd, POLLOUT, deadline_ns)) return refused(target, "took too long");
    const ssize_t n = send(socket.fd, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (n >= 0) {
      sent += static_cast<size_t>(n);
    } else if (errno != EAGAIN && errno != EINTR) {
      // It may have answered before it had read all, and closed: the answer tells why.
      is_answered = true;
      break;
    }
  }
  char piece[4096];
  while (in.size() < kMostAnswerBytes && !is_whole(in)) {
    if (!wait_for(socket.fd, POLLIN, deadline_ns)) {
      // With its head there is an answer, though not when it ends: what it took is not sent again.
      if (in.find("\r\n\r\n") != in.npos) break;
      return refused(target, "took too long");
    }
    const ssize_t n = recv(socket.fd, piece, sizeof piece, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0 && in.empty()) return refused(target, std::strerror(errno));
    if (n <= 0) break;
    in.append(piece, static_cast<size_t>(n));
  }
  if (in.empty())
    return refused(target, is_answered ? "closed the connection" : "answered nothing");
  auto answer = parse_http_answer(in);
  if (!answer) return refused(target, answer.error().message);
  return answer;
}

}  // namespace gpumemprof
