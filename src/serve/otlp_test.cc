// Addresses, answers and messages of the push. What a collector makes of a message is looked at in
// tests/live/test_otlp.py, by OpenTelemetry's own classes.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "serve/otlp_message.h"
#include "serve/otlp_push.h"
#include "serve/resolve_host.h"

namespace gpumemprof {
namespace {

std::string place(const char* url) {
  const auto target = parse_otlp_url(url);
  return target ? target->host + " " + target->port + " " + target->path : target.error().message;
}

TEST(Otlp, AnAddressIsAHostAPortAndAPath) {
  EXPECT_EQ(place("http://127.0.0.1:4318"), "127.0.0.1 4318 /v1/metrics");
  EXPECT_EQ(place("http://collector:4318/"), "collector 4318 /v1/metrics");
  EXPECT_EQ(place("http://[::1]:4318/api/otlp?x=1"), "::1 4318 /api/otlp?x=1");
  EXPECT_EQ(place("http://collector"), "collector 80 /v1/metrics");
  EXPECT_NE(place("https://collector:4318").find("https is not spoken"), std::string::npos);
  for (const char* wrong :
       {"", "collector:4318", "http://", "http://:1", "http://a:0", "http://a:x", "http://a:70000",
        "http://me:secret@a:1", "http://[::1", "http://a b", "http://a:1/#x", "http://[::1]x:1"}) {
    EXPECT_FALSE(parse_otlp_url(wrong)) << wrong;
  }
}

TEST(Otlp, AHeaderIsANameAndAValueAndNoneOfOurs) {
  const auto field = parse_http_field("Authorization=Basic a=b");
  ASSERT_TRUE(field);
  EXPECT_EQ(*field, std::pair(std::string("Authorization"), std::string("Basic a=b")));
  for (const char* wrong : {"a", "=b", "a b=c", "a=b\r\nc: d", "content-length=1", "Host=x"})
    EXPECT_FALSE(parse_http_field(wrong)) << wrong;
}

TEST(Otlp, AnAnswerIsReadAsFarAsItMatters) {
  const auto answer = parse_http_answer("HTTP/1.1 503 Busy\r\nretry-after: 7\r\n\r\nbody");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->retry_after_ns, 7'000'000'000);
  EXPECT_EQ(answer->body, "body");
  EXPECT_EQ(parse_http_answer("HTTP/1.1 503 x\r\nRetry-After: Fri, 1 Jan\r\n\r\n")->retry_after_ns,
            0);
  EXPECT_EQ(parse_http_answer("HTTP/1.1 503 x\r\nRetry-After: 99999999999\r\n\r\n")->retry_after_ns,
            3'600'000'000'000);
  EXPECT_EQ(parse_http_answer("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n")->body,
            "");
  const std::string whole = "HTTP/1.1 200 OK\r\n\r\n";
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_http_answer(whole.substr(0, size))) << size;
  EXPECT_FALSE(parse_http_answer("HTTP/1.1 2x0 OK\r\n\r\n"));
}

TEST(Otlp, NamesHaveDotsAndUnitsOfTheirOwn) {
  const auto name = [](const char* family) {
    const OtlpName of = otlp_name(family);
    return of.name + " " + of.unit;
  };
  EXPECT_EQ(name("gpumemprof_recording_allocated_bytes"), "gpumemprof.recording.allocated By");
  EXPECT_EQ(name("gpumemprof_recording_leak_bytes_per_second"), "gpumemprof.recording.leak By/s");
  EXPECT_EQ(name("gpumemprof_recording_live_blocks"), "gpumemprof.recording.live_blocks 1");
  EXPECT_EQ(name("gpumemprof_host_memory_total_bytes"), "gpumemprof.host.memory.total By");
  EXPECT_EQ(name("gpumemprof_recordings"), "gpumemprof.recordings 1");
}

TEST(Otlp, RejectedPointsAreThoseOfThePartialSuccess) {
  const auto rejected = [](std::string bytes) { return rejected_points(bytes, 7); };
  EXPECT_EQ(rejected(""), 0u);
  EXPECT_EQ(rejected(std::string("\x0a\x02\x08\x05", 4)), 5u);
  EXPECT_EQ(rejected(std::string("\x0a\x02\x08\x09", 4)), 7u);  // no more than were sent
  EXPECT_EQ(rejected("no protobuf"), 0u);
  // The right fields as another type: a number for the message, a text for the number.
  EXPECT_EQ(rejected(std::string("\x08\x05", 2)), 0u);
  EXPECT_EQ(rejected(std::string("\x0a\x03\x0a\x01\x05", 5)), 0u);
  EXPECT_EQ(rejected(std::string("\x0a\x09\x09\x05\x00\x00\x00\x00\x00\x00\x00", 11)), 0u);
}

TEST(Otlp, OnlyWhatIsKnownIsAPoint) {
  Picture picture;
  picture.memory.total = Quantity::of(1);
  PictureAccelerator device{.name = "nvidia:0"};
  device.total = Quantity::of(80);
  device.used = Quantity::absent("why");
  device.free = Quantity::absent("why");
  device.utilization_percent = Known<uint64_t>::absent("why");
  picture.accelerators.devices.push_back(device);
  uint64_t points = 0;
  const std::string message = otlp_metrics(picture, "1", &points);
  // hw.gpu.memory.limit, host.memory.total, recordings, two alerts.
  EXPECT_EQ(points, 5u);
  EXPECT_NE(message.find("hw.gpu.memory.limit"), std::string::npos);
  EXPECT_EQ(message.find("hw.gpu.memory.usage"), std::string::npos);
}

/// Answers each connection with one of `answers`, then is gone.
class AnsweringServer {
 public:
  explicit AnsweringServer(std::vector<std::string> answers) {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET, at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    bind(fd_, reinterpret_cast<sockaddr*>(&at), size);
    listen(fd_, 16);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this, answers] {
      for (const std::string& answer : answers) {
        const int client = accept(fd_, nullptr, nullptr);
        char buffer[65536];
        std::string got;
        while (!got.ends_with("the end")) {
          const ssize_t n = read(client, buffer, sizeof buffer);
          if (n <= 0) break;
          got.append(buffer, static_cast<size_t>(n));
        }
        bodies_.push_back(got);
        [[maybe_unused]] const ssize_t n = write(client, answer.data(), answer.size());
        // An answer that does not say where it ends stays open, until who asked has closed.
        if (answer.find("Content-Length") == answer.npos) {
          while (read(client, buffer, sizeof buffer) > 0) {
          }
        }
        close(client);
      }
      close(fd_);
    });
  }
  ~AnsweringServer() { join(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  OtlpOptions options() const {
    OtlpOptions out;
    out.target = *parse_otlp_url("http://127.0.0.1:" + std::to_string(port_));
    out.first_pause_ns = 1'000'000;
    return out;
  }
  const std::vector<std::string>& bodies() const { return bodies_; }

 private:
  int fd_ = -1;
  uint16_t port_ = 0;
  std::vector<std::string> bodies_;
  std::thread thread_;
};

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x0a\x02\x08\x03";
constexpr const char* kBusy = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
constexpr const char* kWrong = "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n";

TEST(OtlpPush, TriesAgainWhatMayBeTriedAgainAndCountsWhatIsLost) {
  AnsweringServer server({kBusy, kBusy, kOk, kWrong, kOk});
  OtlpPush push(server.options());
  push.send("first, the end", 7), push.send("second, the end", 11), push.send("third, the end", 13);
  server.join();
  push.stop();
  const OtlpCounts counts = push.counts();
  EXPECT_EQ(counts.sent, 2u);
  EXPECT_EQ(counts.retries, 2u);
  EXPECT_EQ(counts.lost, 1u);
  EXPECT_EQ(counts.lost_points, 11u);
  EXPECT_EQ(counts.rejected_points, 6u);
  EXPECT_EQ(counts.waiting, 0u);
  EXPECT_TRUE(server.bodies()[2].ends_with("\r\n\r\nfirst, the end"));
  EXPECT_TRUE(server.bodies()[4].ends_with("\r\n\r\nthird, the end"));
}

TEST(OtlpPush, AnAnswerThatDoesNotEndIsOneAllTheSame) {
  AnsweringServer server({"HTTP/1.1 200 OK\r\n\r\n"});
  OtlpOptions options = server.options();
  options.timeout_ns = 300'000'000;
  OtlpPush push(options);
  push.send("the only one, the end", 7);
  server.join();  // as the push closes, and not before
  push.stop();
  EXPECT_EQ(push.counts().sent, 1u);
  EXPECT_EQ(push.counts().retries, 0u);
  EXPECT_EQ(push.counts().lost, 0u);
}

TEST(OtlpPush, ANameThatIsNotFoundInTimeHoldsNobodyUp) {
  std::promise<void> never;
  std::shared_future<void> released = never.get_future().share();
  const auto found = resolve_host(
      "a.name", "1", 1'000'000, [released](const char*, const char*, const addrinfo*, addrinfo**) {
        released.wait();
        return EAI_AGAIN;
      });
  ASSERT_FALSE(found);  // though the look-up has not returned
  EXPECT_EQ(found.error().message, "looking up its name took too long");
  never.set_value();
  const auto refused =
      resolve_host("a.name", "1", 60'000'000'000, [](auto...) { return EAI_NONAME; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, gai_strerror(EAI_NONAME));
  EXPECT_TRUE(resolve_host("127.0.0.1", "80", 0, [](auto...) { return EAI_FAIL; }));
}

TEST(OtlpPush, WithoutACollectorTheOldestAreLostAndAllAreCounted) {
  OtlpOptions options;
  options.target = *parse_otlp_url("http://127.0.0.1:1");  // nobody listens there
  options.most_waiting = 3;
  options.first_pause_ns = 3'600'000'000'000;
  OtlpPush push(options);
  for (uint64_t i = 0; i < 10; ++i) push.send("x", 2);
  EXPECT_LE(push.counts().waiting, 3u);
  push.stop();
  const OtlpCounts counts = push.counts();
  EXPECT_EQ(counts.sent, 0u);
  EXPECT_EQ(counts.lost, 10u);
  EXPECT_EQ(counts.lost_points, 20u);
  EXPECT_NE(counts.last_error.find("127.0.0.1:1: "), std::string::npos);
}

}  // namespace
}  // namespace gpumemprof
