#include "serve/http_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/steady_clock.h"

namespace gpumemprof {
namespace {

constexpr int64_t kLookAgainNs = 4'000'000;  // at what is_later
constexpr size_t kMostIgnored = 1 << 16;  // bytes that a client may send after its request

Error system_error(const std::string& what) {
  return {ErrorCode::kSystem, what + ": " + std::strerror(errno)};
}

/// A socket address, and its length.
std::pair<sockaddr_storage, socklen_t> socket_address(const ListenAddress& address) {
  sockaddr_storage storage{};
  if (address.is_v6) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    v6->sin6_family = AF_INET6, v6->sin6_port = htons(address.port);
    inet_pton(AF_INET6, address.ip.c_str(), &v6->sin6_addr);
    return {storage, sizeof *v6};
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  v4->sin_family = AF_INET, v4->sin_port = htons(address.port);
  inet_pton(AF_INET, address.ip.c_str(), &v4->sin_addr);
  return {storage, sizeof *v4};
}

}  // namespace

std::string status_text(int status) {
  switch (status) {
    case 200:
      return "200 OK";
    case 400:
      return "400 Bad Request";
    case 401:
      return "401 Unauthorized";
    case 404:
      return "404 Not Found";
    case 405:
      return "405 Method Not Allowed";
    case 411:
      return "411 Length Required";
    case 413:
      return "413 Content Too Large";
    case 414:
      return "414 URI Too Long";
    case 421:
      return "421 Misdirected Request";
    case 431:
      return "431 Request Header Fields Too Large";
    case 507:
      return "507 Insufficient Storage";
    case 503:
      return "503 Service Unavailable";
    case 505:
      return "505 HTTP Version Not Supported";
    default:
      return "500 Internal Server Error";
  }
}

Result<HttpServer> HttpServer::open(const ListenAddress& address, const HttpLimits& limits) {
  const int family = address.is_v6 ? AF_INET6 : AF_INET;
  const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::unexpected(system_error("no socket"));
  HttpServer server(fd, address, limits);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.is_v6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  const auto [storage, length] = socket_address(address);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&storage), length) != 0 || listen(fd, 128) != 0)
    return std::unexpected(system_error("cannot listen on " + address_text(address)));
  sockaddr_storage bound{};
  socklen_t bound_length = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &bound_length);
  server.address_.port = ntohs(address.is_v6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  return server;
}

HttpServer::HttpServer(HttpServer&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      address_(std::move(other.address_)),
      limits_(other.limits_),
      clients_(std::move(other.clients_)),
      sink_(other.sink_) {}

HttpServer::~HttpServer() {
  for (Client& client : clients_) end(client);
  if (fd_ >= 0) close(fd_);
}

size_t HttpServer::streams() const {
  return static_cast<size_t>(std::ranges::count_if(clients_, [](const Client& client) {
    return client.then_stream || client.state == Client::State::kStreaming;
  }));
}

void HttpServer::accept_clients(int64_t now) {
  while (clients_.size() < limits_.most_clients) {
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    Client& client = clients_.emplace_back();
    client.fd = fd, client.deadline_ns = now + limits_.request_ns;
  }
}

void HttpServer::respond(Client& client, const Handler& handler, int64_t now) {
  const ParsedRequest parsed = parse_request(client.in);
  if (parsed.status == 0) return;
  HttpResponse response;
  if (parsed.status == 200 && parsed.request.method == "PUT" && sink_ != nullptr)
    return begin_upload(client, parsed, now);
  const bool is_known = parsed.status == 200 && parsed.request.method != "PUT";
  const int refusal = parsed.request.method == "PUT" && sink_ == nullptr ? 405 : parsed.status;
  if (is_known) {
    response = handler(parsed.request);
    if (response.is_later) {
      if (client.state == Client::State::kReading) client.deadline_ns = now + limits_.later_ns;
      client.state = Client::State::kWaiting;
      return;
    }
    if (response.is_stream && streams() >= limits_.most_streams)
      response = {.status = 503, .body = "too many streams\n"};
  } else {
    response = {.status = refusal, .body = status_text(refusal) + '\n'};
    if (refusal == 405) response.headers = "Allow: GET, HEAD\r\n";
  }
  answer(client, response, parsed.request.method == "HEAD", now);
}

void HttpServer::answer(Client& client, const HttpResponse& response, bool is_head, int64_t now) {
  client.then_stream = response.is_stream && !is_head;
  client.out = "HTTP/1.1 " + status_text(response.status) + "\r\nContent-Type: " + response.type +
               "\r\nConnection: close\r\nCache-Control: no-store\r\n"
               "X-Content-Type-Options: nosniff\r\n" +
               response.headers;
  if (!response.is_stream)
    client.out += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  client.out += "\r\n";
  if (!is_head) client.out += response.body;
  client.in.clear();
  client.state = Client::State::kWriting;
  client.deadline_ns = now + limits_.response_ns;
}

void HttpServer::begin_upload(Client& client, const ParsedRequest& parsed, int64_t now) {
  const auto opened = sink_->open(parsed.request);
  if (!opened) return answer(client, opened.error(), false, now);
  client.upload = parsed.request, client.upload_fd = *opened;
  client.upload_left = parsed.request.body_bytes;
  client.state = Client::State::kUploading;
  const std::string begun = client.in.substr(parsed.head_bytes);
  client.in.clear();
  take_upload(client, begun, now);
}

void HttpServer::take_upload(Client& client, std::string_view bytes, int64_t now) {
  bytes = bytes.substr(0, std::min<uint64_t>(bytes.size(), client.upload_left));
  client.deadline_ns = now + limits_.upload_ns;
  while (!bytes.empty()) {
    const ssize_t put = write(client.upload_fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      sink_->drop(std::exchange(client.upload_fd, -1));
      return answer(client, {.status = 507, .body = status_text(507) + '\n'}, false, now);
    }
    bytes.remove_prefix(static_cast<size_t>(put));
    client.upload_left -= static_cast<uint64_t>(put);
  }
  if (client.upload_left != 0) return;
  answer(client, sink_->finish(client.upload, std::exchange(client.upload_fd, -1)), false, now);
}

void HttpServer::end(Client& client) {
  if (client.upload_fd >= 0) sink_->drop(std::exchange(client.upload_fd, -1));
  close(client.fd);
}

/// False: the connection is over.
bool HttpServer::receive(Client& client, const Handler& handler, int64_t now) {
  char buffer[65536];
  const ssize_t got = recv(client.fd, buffer, sizeof buffer, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) {
    client.has_sent_all = true;
    return client.state == Client::State::kWriting ||  // it may well still read
           client.state == Client::State::kWaiting;
  }
  if (client.state == Client::State::kUploading) {
    take_upload(client, {buffer, static_cast<size_t>(got)}, now);
    return client.state != Client::State::kWriting || send_more(client, now);
  }
  if (client.state != Client::State::kReading) {
    // What comes after the request is not listened to, and not for long.
    client.ignored_bytes += static_cast<size_t>(got);
    return client.ignored_bytes <= kMostIgnored;
  }
  client.in.append(buffer, static_cast<size_t>(got));
  respond(client, handler, now);
  return client.state != Client::State::kWriting || send_more(client, now);
}

/// False: the connection is over.
bool HttpServer::send_more(Client& client, int64_t now) {
  while (client.sent < client.out.size()) {
    const ssize_t put = send(client.fd, client.out.data() + client.sent,
                             client.out.size() - client.sent, MSG_NOSIGNAL);
    if (put < 0) return errno == EAGAIN || errno == EINTR;
    client.sent += static_cast<size_t>(put);
  }
  client.out.clear();
  client.sent = 0;
  if (client.state != Client::State::kWriting) return true;
  if (client.then_stream) {
    client.state = Client::State::kStreaming;
    client.then_stream = false;
    client.deadline_ns = INT64_MAX;
    return !client.has_sent_all;
  }
  if (client.has_sent_all) return false;
  // Closing with unread bytes of the client's would reset the connection and lose the answer.
  shutdown(client.fd, SHUT_WR);
  client.state = Client::State::kLingering;
  client.deadline_ns = now + limits_.linger_ns;
  return true;
}

void HttpServer::respond_later(const Handler& handler, int64_t now) {
  for (Client& client : clients_) {
    if (client.state != Client::State::kWaiting) continue;
    respond(client, handler, now);
    if (client.state == Client::State::kWriting && !send_more(client, now)) client.deadline_ns = 0;
  }
}

void HttpServer::broadcast(const std::string& text) {
  const int64_t now = steady_now_ns();
  for (Client& client : clients_) {
    if (client.state != Client::State::kStreaming && !client.then_stream) continue;
    if (client.out.size() - client.sent + text.size() > limits_.most_waiting_bytes) {
      client.deadline_ns = 0;
      continue;
    }
    client.out += text;
    if (client.state == Client::State::kStreaming && !send_more(client, now))
      client.deadline_ns = 0;
  }
}

Status HttpServer::serve(const Handler& handler, const std::function<void()>& tick,
                         const sigset_t& stop) {
  const int signals = signalfd(-1, &stop, SFD_NONBLOCK | SFD_CLOEXEC);
  if (signals < 0) return std::unexpected(system_error("no signalfd"));
  int64_t next_tick = 0;
  std::vector<pollfd> polled;
  for (;;) {
    int64_t now = steady_now_ns();
    int64_t next = INT64_MAX;
    if (streams() > 0) {
      if (now >= next_tick) {
        next_tick = now + kSecondNs;
        tick();
        now = steady_now_ns();
      }
      next = next_tick;
    } else {
      next_tick = now + kSecondNs;  // a stream begins with an event of its own
    }
    std::erase_if(clients_, [&](Client& client) {
      const bool is_over = now >= client.deadline_ns;
      if (is_over) end(client);
      return is_over;
    });
    polled.clear();
    polled.push_back({signals, POLLIN, 0});
    // Where every place is taken the others wait in the kernel's queue.
    const bool has_room = clients_.size() < limits_.most_clients;
    polled.push_back({has_room ? fd_ : -1, POLLIN, 0});
    for (const Client& client : clients_) {
      const bool is_waiting = client.state == Client::State::kWaiting;
      next = std::min(next, is_waiting ? now + kLookAgainNs : client.deadline_ns);
      const bool waits =
          client.sent < client.out.size() && client.state != Client::State::kLingering;
      const int wanted = (client.has_sent_all ? 0 : POLLIN) | (waits ? POLLOUT : 0);
      polled.push_back({client.fd, static_cast<short>(wanted), 0});
    }
    const int64_t left_ms =
        next == INT64_MAX ? -1 : std::min<int64_t>((next - now) / 1'000'000 + 1, 60'000);
    if (poll(polled.data(), polled.size(), static_cast<int>(left_ms)) < 0 && errno != EINTR) {
      const Error error = system_error("poll");
      close(signals);
      return std::unexpected(error);
    }
    if (polled[0].revents != 0) break;
    now = steady_now_ns();
    auto at = polled.begin() + 2;
    for (auto client = clients_.begin(); client != clients_.end(); ++at) {
      bool is_alive = (at->revents & (POLLERR | POLLNVAL)) == 0;
      if (is_alive && (at->revents & POLLOUT) != 0) is_alive = send_more(*client, now);
      if (is_alive && (at->revents & (POLLIN | POLLHUP)) != 0)
        is_alive = receive(*client, handler, now);
      if (!is_alive) end(*client);
      client = is_alive ? std::next(client) : clients_.erase(client);
    }
    respond_later(handler, now);
    if (polled[1].revents != 0) accept_clients(now);
  }
  close(signals);
  return {};
}

}  // namespace gpumemprof
