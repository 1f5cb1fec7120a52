// Pushes metrics to a collector by OTLP over HTTP, in a thread that nothing waits for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "serve/http_post.h"

namespace gpumemprof {

struct OtlpOptions {
  HttpTarget target;  ///< with its path
  HttpFields fields;
  size_t most_waiting = 60;            ///< messages; then the oldest is lost
  int64_t timeout_ns = 3'000'000'000;  ///< of one try
  int64_t first_pause_ns = 1'000'000'000, most_pause_ns = 60'000'000'000;  ///< between tries
};

/// "http://127.0.0.1:4318" is a collector, which takes metrics at /v1/metrics; a path of its own is
/// taken as it is. Errors: those of parse_http_url.
Result<HttpTarget> parse_otlp_url(std::string_view url);

/// What became of the messages so far. A message is lost where it waited too long, was refused for
/// good, or was left at the end.
struct OtlpCounts {
  uint64_t sent = 0, lost = 0, retries = 0, waiting = 0;
  uint64_t lost_points = 0;      ///< data points of the lost messages
  uint64_t rejected_points = 0;  ///< of sent ones, which the collector did not take
  std::string last_error;        ///< empty while all is well
};

/// Thread-safe. Retries what may be retried (no connection, 429, 502, 503, 504) with pauses that
/// double, or as long as the collector asks for; meanwhile messages wait.
class OtlpPush {
 public:
  explicit OtlpPush(OtlpOptions options);
  ~OtlpPush() { stop(); }
  OtlpPush(const OtlpPush&) = delete;
  /// Never waits.
  void send(std::string message, uint64_t points);
  OtlpCounts counts() const;
  /// One last try for what waits, of two seconds at most; what is left then is lost.
  void stop();

 private:
  struct Message {
    std::string bytes;
    uint64_t points;
  };
  void work();
  bool deliver(const Message& message, int64_t* pause_ns);
  void lose_front();

  OtlpOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Message> waiting_;
  bool is_sending_ = false;  // the first of `waiting_` is on its way
  OtlpCounts counts_;
  bool is_stopping_ = false;
  std::chrono::steady_clock::time_point last_moment_;  // for new tries, once it stops
  std::thread thread_;                                 // last: it uses the others
};

}  // namespace gpumemprof
