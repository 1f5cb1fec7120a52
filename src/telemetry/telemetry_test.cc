// Telemetry there and back, in every format, whole and damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "telemetry/flight_bundle.h"
#include "telemetry/reader.h"
#include "telemetry/writer.h"

namespace gpumemprof {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TelemetryFile : public ::testing::Test {
 protected:
  TelemetryFile() {
    char folder[] = "/tmp/telemetry-test-XXXXXX";
    folder_ = mkdtemp(folder);
  }
  ~TelemetryFile() override { (void)!system(("rm -rf " + folder_).c_str()); }
  std::string file(const std::string& name) const { return folder_ + '/' + name; }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string folder_;
};

TelemetryEvent sample(int64_t n) {
  TelemetryEvent event;
  event.timestamp_ns = 1'700'000'000'000'000'000 + n;
  event.collector = "gpumemprof.cpu_tracker";
  event.sampling_interval_ms = 100;
  event.pid = 42, event.host = "node \"1\", rack\n2";
  event.job_id = "job,7";
  event.rank = 1, event.local_rank = 1, event.world_size = 2;
  event.device_id = 3;
  event.allocated_bytes = 1000 + static_cast<uint64_t>(n), event.reserved_bytes = UINT32_MAX;
  event.change_bytes = -5;
  event.used_bytes = uint64_t{1} << 40;
  event.context = "a\"b,c";
  event.metadata = R"({"note":"x, \"y\"","peak_bytes":12})";
  return event;
}

void expect_same(const TelemetryEvent& a, const TelemetryEvent& b) {
  EXPECT_EQ(telemetry_json(a), telemetry_json(b));
}

TEST_F(TelemetryFile, EveryFormatGivesBackWhatWasWritten) {
  for (const auto& [name, format, kind] :
       {std::tuple{"a.json", TelemetryFormat::kJson, TelemetryKind::kJsonArray},
        std::tuple{"a.jsonl", TelemetryFormat::kJsonLines, TelemetryKind::kJsonLines},
        std::tuple{"a.csv", TelemetryFormat::kCsv, TelemetryKind::kCsv}}) {
    EXPECT_EQ(telemetry_format_of(name), format);
    auto writer = TelemetryWriter::create(file(name), format);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->append(std::vector{sample(0)}));
    ASSERT_TRUE(writer->append(std::vector{sample(1), sample(2)}));
    ASSERT_TRUE(writer->close());
    auto read = read_telemetry(file(name));
    ASSERT_TRUE(read) << name << ": " << read.error().message;
    EXPECT_EQ(read->kind, kind);
    EXPECT_THAT(read->losses, IsEmpty());
    ASSERT_EQ(read->events.size(), 3u);
    for (int64_t n = 0; n < 3; ++n) expect_same(read->events[static_cast<size_t>(n)], sample(n));
  }
}

TEST_F(TelemetryFile, IsWholeAfterEveryAppend) {
  auto writer = TelemetryWriter::create(file("a.json"), TelemetryFormat::kJson);
  ASSERT_TRUE(writer);
  for (int64_t n = 0; n < 5; ++n) {
    const std::string text = text_of(file("a.json"));
    auto read = parse_telemetry(text);
    ASSERT_TRUE(read) << read.error().message << text;
    EXPECT_THAT(read->losses, IsEmpty());
    EXPECT_EQ(read->events.size(), static_cast<size_t>(n));
    ASSERT_TRUE(writer->append(std::vector{sample(n)}));
  }
}

TEST_F(TelemetryFile, CutAnywhereLosesTheLastRecordAloneAndSaysSo) {
  for (TelemetryFormat format :
       {TelemetryFormat::kJson, TelemetryFormat::kJsonLines, TelemetryFormat::kCsv}) {
    auto writer = TelemetryWriter::create(file("a"), format);
    ASSERT_TRUE(writer->append(std::vector{sample(0), sample(1)}));
    ASSERT_TRUE(writer->close());
    const std::string text = text_of(file("a"));
    const size_t tail = format == TelemetryFormat::kJson ? 3 : 1;  // "\n]\n", "\n"
    for (size_t size = text.size() - tail - 1; size > text.size() - 60; --size) {
      auto read = parse_telemetry(text.substr(0, size));
      ASSERT_TRUE(read) << size << ' ' << read.error().message;
      ASSERT_EQ(read->events.size(), 1u) << size;
      EXPECT_EQ(read->losses.size(), 1u);
      EXPECT_GT(read->lost_bytes, 0u);
      expect_same(read->events[0], sample(0));
    }
  }
}

TEST_F(TelemetryFile, AnyDamageIsAnAnswerAndNeverACrash) {
  auto writer = TelemetryWriter::create(file("a"), TelemetryFormat::kJson);
  ASSERT_TRUE(writer->append(std::vector{sample(0), sample(1)}));
  ASSERT_TRUE(writer->close());
  const std::string text = text_of(file("a"));
  for (size_t i = 0; i < text.size(); ++i) {
    for (char with : {'\0', '{', '"', ']', '9', '\xff'}) {
      std::string damaged = text;
      damaged[i] = with;
      (void)parse_telemetry(damaged);
    }
    (void)parse_telemetry(text.substr(0, i));
  }
}

TEST_F(TelemetryFile, TwoTrackersDoNotShareAFile) {
  auto first = TelemetryWriter::create(file("a.json"), TelemetryFormat::kJson);
  ASSERT_TRUE(first);
  ASSERT_TRUE(first->append(std::vector{sample(0)}));
  auto second = TelemetryWriter::create(file("a.json"), TelemetryFormat::kJson);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUsage);
  EXPECT_EQ(parse_telemetry(text_of(file("a.json")))->events.size(), 1u) << "not emptied";
}

TEST(Telemetry, ErrorsNameTheirByte) {
  const std::string good = telemetry_json(sample(0));
  auto no_comma = parse_telemetry("[" + good + good + "]");
  ASSERT_FALSE(no_comma);
  EXPECT_EQ(no_comma.error().offset, 1 + good.size());
  auto negative = parse_telemetry(R"([{"timestamp": 1, "memory_allocated": -5}])");
  ASSERT_FALSE(negative);
  EXPECT_EQ(negative.error().offset, 1u);
  EXPECT_THAT(negative.error().message, HasSubstr("'memory_allocated' is negative"));
  auto row = parse_telemetry("timestamp_ns,x\n1,2\n1\n");
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().offset, 15u) << "the row without figures comes first";
  for (const char* text : {"", "   ", "hello", "{}", "[1]", "null", "{\"a\":", "[[]]"}) {
    auto read = parse_telemetry(text);
    EXPECT_TRUE(!read || !read->losses.empty()) << text;
  }
}

TEST(Telemetry, DeepNestingIsRefused) {
  const std::string deep = "[{\"metadata\":" + std::string(100'000, '[') + "}]";
  EXPECT_THAT(parse_telemetry(deep).error().message, HasSubstr("nested too deep"));
}

TEST(Telemetry, OlderShapesAreRead) {
  auto old = parse_telemetry(
      R"([{"timestamp": 1.5, "type": "allocation", "memory_mb": 2, "device": "cuda:1"},
          {"timestamp": 2, "operation": "step", "allocated_memory": 7, "reserved_memory": 9,
           "active_memory": 7, "inactive_memory": 2, "device_id": 0}])");
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(old->events[0].timestamp_ns, 1'500'000'000);
  EXPECT_EQ(old->events[0].allocated_bytes, 2u << 20);
  EXPECT_EQ(old->events[0].device_id, 1);
  EXPECT_EQ(old->events[0].event_type, "allocation");
  EXPECT_EQ(old->events[1].context, "step");
  EXPECT_EQ(old->events[1].inactive_bytes, 2u);
  EXPECT_EQ(old->events[1].pid, -1);
}

TEST(Telemetry, OneReaderForEveryTrackersNames) {
  const auto one = [](const std::string& fields) {
    return parse_telemetry("[{\"timestamp\": 1, " + fields + "}]")->events.at(0);
  };
  for (const char* name : {"rss", "rss_bytes", "allocated_bytes", "memory_allocated"})
    EXPECT_EQ(one('"' + std::string(name) + "\": 1003").allocated_bytes, 1003u) << name;
  for (const char* name : {"memory_mb", "gpu_memory_mb", "allocated_mb"})
    EXPECT_EQ(one('"' + std::string(name) + "\": 1.5").allocated_bytes, 3u << 19) << name;
  EXPECT_EQ(one(R"("reserved_mb": 2)").reserved_bytes, 2u << 20);
  EXPECT_EQ(one(R"("rss": 5, "backend": "rocm")").collector, "gpumemprof.rocm_tracker");
  const TelemetryEvent ranked = one(R"("rss": 5, "rank": 3, "color": "red")");
  EXPECT_EQ(ranked.world_size, 4) << "at least";
  EXPECT_EQ(ranked.metadata,
            R"({"color":"red","unknown":{"allocator_change_bytes":"the record does not say",)"
            R"("allocator_reserved_bytes":"the record does not say",)"
            R"("device_used_bytes":"the record does not say",)"
            R"("world_size":"the record does not say"}})");
}

TEST(Telemetry, ARankOutsideOfItsWorldIsRefused) {
  auto read = parse_telemetry(R"([{"timestamp": 1, "rss": 5, "rank": 2, "world_size": 2}])");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("'rank' is not within world_size"));
}

TEST(Telemetry, ATimelineOfParallelArraysIsRead) {
  auto read =
      parse_telemetry(R"({"timestamps": [1, 2], "allocated": [10, null], "reserved": [20, 30]})");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->events.size(), 2u);
  EXPECT_EQ(read->events[0].allocated_bytes, 10u);
  EXPECT_FALSE(read->events[1].allocated_bytes);
  EXPECT_EQ(read->events[1].reserved_bytes, 30u);
  EXPECT_FALSE(parse_telemetry(R"({"timestamps": [1, 2], "allocated": [10]})"));
}

TEST(Telemetry, EventsInsideAnObjectAreRead) {
  auto read = parse_telemetry("{\"events\": [" + telemetry_json(sample(4)) + "], \"more\": 1}");
  ASSERT_TRUE(read);
  expect_same(read->events.at(0), sample(4));
}

TEST(Telemetry, AVersionFromTheFutureIsNotGuessedAt) {
  auto read = parse_telemetry(R"([{"schema_version": 9, "timestamp_ns": 1}])");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnsupported);
}

TEST_F(TelemetryFile, BundlesKeepToTheirLimitsAndTheNewestStays) {
  FlightBundles bundles({.folder = file("dumps"), .buffer_size = 3, .max_dumps = 2});
  for (int64_t n = 0; n < 5; ++n) bundles.record(sample(n));
  std::string last;
  for (int i = 0; i < 4; ++i) last = *bundles.dump("test", "why");
  auto read = read_telemetry(last + "/events.json");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->events.size(), 3u);
  expect_same(read->events[0], sample(2));
  EXPECT_EQ(system(("test $(ls -A " + file("dumps") + " | wc -l) = 2").c_str()), 0);
}

}  // namespace
}  // namespace gpumemprof
