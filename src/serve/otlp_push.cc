#include "serve/otlp_push.h"

#include <algorithm>
#include <chrono>

#include "serve/otlp_message.h"

namespace gpumemprof {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr auto kLastTry = std::chrono::seconds(2);

bool may_be_retried(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

Result<HttpTarget> parse_otlp_url(std::string_view url) {
  auto target = parse_http_url(url);
  if (target && target->path == "/") target->path = "/v1/metrics";
  return target;
}

OtlpPush::OtlpPush(OtlpOptions options)
    : options_(std::move(options)), thread_([this] { work(); }) {}

void OtlpPush::send(std::string message, uint64_t points) {
  {
    std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    waiting_.push_back({std::move(message), points});
    if (waiting_.size() > options_.most_waiting) {
      // The one that is on its way may arrive yet.
      const size_t oldest = is_sending_ && waiting_.size() > 1 ? 1 : 0;
      ++counts_.lost, counts_.lost_points += waiting_[oldest].points;
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(oldest));
    }
  }
  wake_.notify_all();
}

OtlpCounts OtlpPush::counts() const {
  std::lock_guard lock(mutex_);
  OtlpCounts out = counts_;
  out.waiting = waiting_.size();
  return out;
}

/// With the lock held.
void OtlpPush::lose_front() {
  ++counts_.lost, counts_.lost_points += waiting_.front().points;
  waiting_.pop_front();
}

/// One try. True where the message is done with, one way or the other; else `pause_ns` is how long
/// the server wants to be left alone, 0 where it does not say.
bool OtlpPush::deliver(const Message& message, int64_t* pause_ns) {
  const int64_t timeout_ns = [&] {
    std::lock_guard lock(mutex_);
    return is_stopping_ ? std::min<int64_t>(options_.timeout_ns, nanoseconds(kLastTry).count())
                        : options_.timeout_ns;
  }();
  const auto answer = http_post(options_.target, options_.fields, message.bytes, timeout_ns);
  std::lock_guard lock(mutex_);
  is_sending_ = false;
  if (answer && answer->status >= 200 && answer->status < 300) {
    ++counts_.sent;
    counts_.rejected_points += rejected_points(answer->body, message.points);
    counts_.last_error.clear();
    waiting_.pop_front();
    return true;
  }
  counts_.last_error =
      answer ? options_.target.authority + ": answered " + std::to_string(answer->status)
             : answer.error().message;
  if (answer && !may_be_retried(answer->status)) {
    lose_front();
    return true;
  }
  ++counts_.retries;
  *pause_ns = answer ? answer->retry_after_ns : 0;
  return false;
}

void OtlpPush::work() {
  int64_t pause_ns = options_.first_pause_ns;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    is_sending_ = true;
    // A copy: the queue may move while it is sent.
    const Message message = waiting_.front();
    lock.unlock();
    int64_t asked_ns = 0;
    const bool is_done = deliver(message, &asked_ns);
    lock.lock();
    if (is_stopping_ && (!is_done || steady_clock::now() >= last_moment_)) break;
    if (is_done) {
      pause_ns = options_.first_pause_ns;
      continue;
    }
    const auto until = steady_clock::now() + nanoseconds(std::max(pause_ns, asked_ns));
    pause_ns = std::min(2 * pause_ns, options_.most_pause_ns);
    wake_.wait_until(lock, until, [this] { return is_stopping_; });
  }
  while (!waiting_.empty()) lose_front();
}

void OtlpPush::stop() {
  {
    std::lock_guard lock(mutex_);
    if (!is_stopping_) last_moment_ = steady_clock::now() + kLastTry;
    is_stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace gpumemprof
