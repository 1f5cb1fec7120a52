// Requests, hostile ones among them, and what is answered.
#include <gtest/gtest.h>

#include "base/query.h"
#include "serve/metrics_text.h"
#include "serve/service.h"

namespace gpumemprof {
namespace {

constexpr const char* kGet = "GET /metrics?a=1 HTTP/1.1\r\nHost: x:1\r\nAccept: text/plain\r\n\r\n";

TEST(ParseRequest, TakesAWholeOne) {
  const ParsedRequest parsed = parse_request(kGet);
  EXPECT_EQ(parsed.status, 200);
  EXPECT_EQ(parsed.request.method, "GET");
  EXPECT_EQ(parsed.request.path, "/metrics");
  EXPECT_EQ(parsed.request.query, "a=1");
  EXPECT_EQ(parsed.request.host, "x:1");
  EXPECT_EQ(parsed.request.accept, "text/plain");
}

TEST(ParseRequest, WaitsForTheRestAtEveryByte) {
  const std::string_view whole = kGet;
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(parse_request(whole.substr(0, size)).status, 0) << size;
}

TEST(ParseRequest, RefusesWhatIsNone) {
  const auto status = [](const std::string& text) { return parse_request(text).status; };
  const std::string host = "Host: a\r\n";
  EXPECT_EQ(status("GET / HTTP/1.1\r\n\r\n"), 400) << "no Host";
  EXPECT_EQ(status("GET / HTTP/1.0\r\n\r\n"), 200);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n" + host + host + "\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n" + host + " folded: b\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\n" + host + "\r\n"), 400) << "a line end alone";
  EXPECT_EQ(status("GET / HTTP/1.1\r\n" + host + "a: \x01\r\n\r\n"), 400);
  EXPECT_EQ(status(std::string("GET /\0 HTTP/1.1\r\n", 17)), 400);
  EXPECT_EQ(status("GET http://a/ HTTP/1.1\r\n" + host + "\r\n"), 400);
  EXPECT_EQ(status("GET /a b HTTP/1.1\r\n" + host + "\r\n"), 400);
  EXPECT_EQ(status("POST / HTTP/1.1\r\n" + host + "\r\n"), 405);
  EXPECT_EQ(status("GET / HTTP/2.0\r\n" + host + "\r\n"), 505);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n" + host + "Content-Length: 1\r\n\r\n"), 413);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n"), 413);
  EXPECT_EQ(status("GET /" + std::string(kMostTargetBytes, 'a') + " HTTP/1.1\r\n\r\n"), 414);
  EXPECT_EQ(status("GET / HTTP/1.1\r\na: " + std::string(kMostHeadBytes, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\n" + host;
  for (size_t i = 0; i < kMostHeaders; ++i) many += "a: b\r\n";
  EXPECT_EQ(status(many + "\r\n"), 431);
}

TEST(ParseRequest, KnowsTheLengthOfWhatIsPut) {
  const auto parsed = [](const std::string& fields) {
    return parse_request("PUT /file HTTP/1.1\r\nHost: a\r\n" + fields + "\r\nbody");
  };
  const ParsedRequest put = parsed("Content-Length: 18446744073709551615\r\n");
  EXPECT_EQ(put.status, 200);
  EXPECT_EQ(put.request.body_bytes, UINT64_MAX);
  EXPECT_EQ(put.head_bytes, std::string("PUT /file HTTP/1.1\r\nHost: a\r\n"
                                        "Content-Length: 18446744073709551615\r\n\r\n").size());
  EXPECT_EQ(parsed("").status, 411);
  EXPECT_EQ(parsed("Content-Length: 18446744073709551616\r\n").status, 400);
  for (const char* length : {"-1", "1x", "", "0x10", "1, 1"})
    EXPECT_EQ(parsed("Content-Length: " + std::string(length) + "\r\n").status, 400) << length;
  EXPECT_EQ(parsed("Content-Length: 1\r\nContent-Length: 1\r\n").status, 400);
  EXPECT_EQ(parsed("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n").status, 413);
}

TEST(QueryValue, IsDecodedAndTheFirst) {
  EXPECT_EQ(query_value("a=1&token=a%2Bb&token=c", "token"), "a+b");
  EXPECT_EQ(query_value("token", "token"), "");
  EXPECT_EQ(query_value("token=%4", "token"), std::nullopt);
  EXPECT_EQ(query_value("token=%zz", "token"), std::nullopt);
  EXPECT_EQ(query_value("mytoken=1", "token"), std::nullopt);
}

TEST(ListenAddress, IsAnAddressAndNeverAName) {
  const auto text = [](const char* said) {
    const auto address = parse_listen_address(said);
    return address ? address_text(*address) + (address->is_loopback ? " loopback" : "") : "none";
  };
  EXPECT_EQ(text("127.0.0.1:9810"), "127.0.0.1:9810 loopback");
  EXPECT_EQ(text("localhost:1"), "127.0.0.1:1 loopback");
  EXPECT_EQ(text("9810"), "127.0.0.1:9810 loopback");
  EXPECT_EQ(text("[::1]:0"), "[::1]:0 loopback");
  EXPECT_EQ(text("[::]:80"), "[::]:80");
  EXPECT_EQ(text(":80"), "0.0.0.0:80");
  EXPECT_EQ(text("10.0.0.1:80"), "10.0.0.1:80");
  for (const char* wrong : {"", "example.org:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000",
                            "::1:80", "[::1]", "[::1", "1.2.3:4", "-1", "127.0.0.1:80 "}) {
    EXPECT_EQ(text(wrong), "none") << wrong;
  }
}

HttpRequest get(const std::string& path, const std::string& query = "") {
  return {.method = "GET", .path = path, .query = query, .host = "127.0.0.1:9810"};
}

Picture small_picture() {
  Picture picture;
  picture.host = "h";
  picture.memory.total = Quantity::of(1000);
  picture.memory.available = Quantity::of(400);
  picture.memory.limit = picture.memory.limit_used = Quantity::absent("none");
  picture.accelerators.absent_because = "none";
  PictureRecording recording;
  recording.pid = 12, recording.command = "python we\"ird.py --secret", recording.events = 7;
  recording.rank = 1, recording.resident = Quantity::of(5000);
  PictureDevice device;
  device.name = "cuda:0", device.allocated = 300, device.peak = 900;
  device.reserved = Quantity::of(512);
  device.alloc_count = 4, device.free_count = 2, device.live_blocks = 2;
  recording.devices.push_back(device);
  device.name = "cpu", device.reserved = Quantity::absent("not told");
  recording.devices.push_back(device);
  picture.recordings.push_back(recording);
  return picture;
}

TEST(Service, AsksForTheTokenEverywhereButWhereNothingIsTold) {
  Service service({.token = "0123456789abcdef"}, small_picture);
  EXPECT_EQ(service.answer(get("/healthz")).status, 200);
  for (const char* path : {"/", "/metrics", "/events", "/anything"})
    EXPECT_EQ(service.answer(get(path)).status, 401) << path;
  EXPECT_EQ(service.answer(get("/metrics", "token=0123456789abcdee")).status, 401);
  EXPECT_EQ(service.answer(get("/metrics", "token=")).status, 401);
  EXPECT_EQ(service.answer(get("/metrics", "token=0123456789abcdef")).status, 200);
  HttpRequest request = get("/");
  request.authorization = "Bearer 0123456789abcdef";
  EXPECT_EQ(service.answer(request).status, 200);
  request.authorization = "Bearer 0123456789abcdef0";
  EXPECT_EQ(service.answer(request).status, 401);
}

TEST(Service, ProfilesAreForThoseWhoMaySeeAndNotTakenTwiceInASecond) {
  int taken = 0;
  Service service({.token = "0123456789abcdef"}, small_picture, [&]() -> Result<std::string> {
    ++taken;
    return "profile";
  });
  EXPECT_EQ(service.answer(get("/debug/pprof/gpu")).status, 401);
  EXPECT_EQ(taken, 0);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(service.answer(get("/debug/pprof/gpu", "token=0123456789abcdef")).body, "profile");
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(Service({}, small_picture).answer(get("/debug/pprof/gpu")).status, 404);
  Service failing({}, small_picture,
                  []() -> Result<std::string> { return fail(ErrorCode::kSystem, "no memory"); });
  EXPECT_EQ(failing.answer(get("/debug/pprof/gpu")).status, 503);
}

TEST(Service, WithoutATokenKnowsNoOtherName) {
  Service service({}, small_picture);
  HttpRequest request = get("/metrics");
  for (const char* host : {"127.0.0.1:9810", "localhost", "[::1]:1", "10.1.2.3", ""}) {
    request.host = host;
    EXPECT_EQ(service.answer(request).status, 200) << host;
  }
  for (const char* host : {"evil.example", "127.0.0.1.evil.example:9810", "localhost:99999",
                           "[::1]evil.example", "[::1]x:9810", "[127.0.0.1]", "[localhost]:1"}) {
    request.host = host;
    EXPECT_EQ(service.answer(request).status, 421) << host;
  }
}

TEST(Service, ComparesPathsAndNothingElse) {
  Service service({}, small_picture);
  for (const char* path : {"/../../etc/passwd", "/%2e%2e/etc/passwd", "//metrics", "/metrics/"})
    EXPECT_EQ(service.answer(get(path)).status, 404) << path;
}

TEST(Metrics, HaveTheFiguresAndLeaveOutWhatIsUnknown) {
  const std::string text =
      metrics_text(metric_families(small_picture(), "1.2"), MetricsFormat::kPrometheus);
  const auto has = [&](const std::string& line) {
    return ("\n" + text).find('\n' + line + '\n') != std::string::npos;
  };
  const std::string labels = "pid=\"12\",program=\"we\\\"ird.py\",rank=\"1\"";
  EXPECT_TRUE(has("gpumemprof_build_info{version=\"1.2\"} 1"));
  EXPECT_TRUE(has("gpumemprof_host_memory_total_bytes 1000"));
  EXPECT_TRUE(has("gpumemprof_recording_allocated_bytes{" + labels + ",device=\"cuda:0\"} 300"));
  EXPECT_TRUE(has("gpumemprof_recording_reserved_bytes{" + labels + ",device=\"cuda:0\"} 512"));
  EXPECT_TRUE(has("gpumemprof_recording_allocations_total{" + labels + ",device=\"cpu\"} 4"));
  EXPECT_TRUE(has("# TYPE gpumemprof_recording_allocations_total counter"));
  EXPECT_FALSE(has("gpumemprof_recording_reserved_bytes{" + labels + ",device=\"cpu\"} 0"));
  EXPECT_EQ(text.find("leak_bytes"), text.npos);
  EXPECT_EQ(text.find("secret"), text.npos);
  EXPECT_EQ(text.find("EOF"), text.npos);
}

TEST(Metrics, InOpenMetricsNameCountersWithoutTheirSuffixAndEnd) {
  const std::string text =
      metrics_text(metric_families(small_picture(), "1"), MetricsFormat::kOpenMetrics);
  EXPECT_NE(text.find("# TYPE gpumemprof_recording_frees counter\n"), text.npos);
  EXPECT_NE(text.find("\ngpumemprof_recording_frees_total{"), text.npos);
  EXPECT_NE(text.find("# UNIT gpumemprof_recording_peak_bytes bytes\n"), text.npos);
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
  EXPECT_EQ(metrics_format("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"),
            MetricsFormat::kOpenMetrics);
  EXPECT_EQ(metrics_format("*/*"), MetricsFormat::kPrometheus);
}

}  // namespace
}  // namespace gpumemprof
