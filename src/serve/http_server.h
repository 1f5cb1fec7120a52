// A small HTTP/1.1 server for pages, metrics and one stream of events: GET and HEAD, PUT where
// somebody takes the bytes, one request a connection, one thread. docs/architecture.md says why it
// is not a library.
//
// What a client can take is bounded: connections, streams, bytes of a request, bytes that wait for
// a slow reader, and the time for each step as a whole, so that nobody holds a place by sending a
// byte now and then. Nothing of a request is a path of the file system.
#pragma once

#include <csignal>
#include <cstdint>
#include <expected>
#include <functional>
#include <list>
#include <string>

#include "base/error.h"
#include "serve/http_request.h"
#include "serve/listen_address.h"

namespace gpumemprof {

struct HttpLimits {
  size_t most_clients = 64, most_streams = 16;
  size_t most_waiting_bytes = 4 << 20;  ///< of a stream whose reader is slow: then it is closed
  int64_t request_ns = 5'000'000'000;   ///< from the connection to the end of the head
  int64_t later_ns = 300'000'000'000;  ///< for what is_later to be there
  int64_t response_ns = 10'000'000'000;
  int64_t upload_ns = 10'000'000'000;  ///< for the next bytes of a body that is taken
  int64_t linger_ns = 1'000'000'000;  ///< for the client to read the end and to close
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::string headers;     ///< further fields, each with its line end
  bool is_stream = false;  ///< stays open after `body` for what HttpServer::broadcast() sends
  bool is_later = false;   ///< none yet: the same request is handled again in some milliseconds
};

/// Takes what PUT sends.
class UploadSink {
 public:
  virtual ~UploadSink() = default;
  /// A file descriptor that request.body_bytes are written to, or why not.
  virtual std::expected<int, HttpResponse> open(const HttpRequest& request) = 0;
  /// All of them are there.
  virtual HttpResponse finish(const HttpRequest& request, int fd) = 0;
  /// They never will be.
  virtual void drop(int fd) = 0;
};

/// "404 Not Found"
std::string status_text(int status);

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Binds and listens. Errors: kSystem where the address cannot be had.
  static Result<HttpServer> open(const ListenAddress& address, const HttpLimits& limits);
  HttpServer(HttpServer&& other) noexcept;
  HttpServer& operator=(HttpServer&&) = delete;
  ~HttpServer();

  const ListenAddress& address() const { return address_; }  ///< with the port that it got
  /// Without it PUT is another method. It outlives the server's serve().
  void set_uploads(UploadSink* sink) { sink_ = sink; }

  /// Serves until one of `stop` (blocked signals) comes. `tick` is called about every second while
  /// there is a stream, from the same thread as `handler`. Errors: kSystem.
  Status serve(const Handler& handler, const std::function<void()>& tick, const sigset_t& stop);

  size_t streams() const;  ///< that are open now
  /// To every stream. Only from `handler` and `tick`.
  void broadcast(const std::string& text);

 private:
  struct Client {
    enum class State { kReading, kUploading, kWaiting, kWriting, kStreaming, kLingering };
    State state = State::kReading;
    int fd = -1;
    int64_t deadline_ns = 0;
    std::string in, out;
    size_t sent = 0;            ///< of `out`
    size_t ignored_bytes = 0;   ///< that came after the request
    bool then_stream = false;   ///< once `out` is sent
    bool has_sent_all = false;  ///< the client has closed its half
    HttpRequest upload;         ///< of kUploading
    int upload_fd = -1;
    uint64_t upload_left = 0;
  };

  HttpServer(int fd, ListenAddress address, const HttpLimits& limits)
      : fd_(fd), address_(std::move(address)), limits_(limits) {}
  void accept_clients(int64_t now);
  bool receive(Client& client, const Handler& handler, int64_t now);
  bool send_more(Client& client, int64_t now);
  void respond(Client& client, const Handler& handler, int64_t now);
  void respond_later(const Handler& handler, int64_t now);
  void answer(Client& client, const HttpResponse& response, bool is_head, int64_t now);
  void begin_upload(Client& client, const ParsedRequest& parsed, int64_t now);
  void take_upload(Client& client, std::string_view bytes, int64_t now);
  void end(Client& client);

  int fd_;
  ListenAddress address_;
  HttpLimits limits_;
  std::list<Client> clients_;
  UploadSink* sink_ = nullptr;
};

}  // namespace gpumemprof
