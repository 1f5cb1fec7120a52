#include "report/export/event_export.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/sample_for_tests.h"

namespace gpumemprof {
namespace {

using nlohmann::json;

std::vector<std::string> export_of(MemorySource& source, ExportFormat format) {
  std::string text;
  const Status done = export_events(source, format, [&](std::string_view piece) {
    text += piece;
    return Status{};
  });
  EXPECT_TRUE(done);
  std::vector<std::string> lines;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(text.substr(at, end - at));
  }
  return lines;
}

TEST(EventExport, EveryEventIsALineWithWhatIsKnown) {
  MemorySource source = sample_source();
  const std::vector<std::string> lines = export_of(source, ExportFormat::kJsonLines);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(json::parse(lines[1]),
            json::parse(R"({"time_ns": 1500000000, "action": "alloc", "address": 32,
    "size_bytes": 300, "requested_bytes": 300, "device": "cpu", "layer": "framework", "thread": 11, "process": 11,
    "stack": ["/opt/job/model.py:7 Model.__init__", "/opt/job/train.py:90 <module>"]})"));
  EXPECT_EQ(json::parse(lines[3])["size_bytes"], 200) << "a free carries the size of its block";
  EXPECT_FALSE(json::parse(lines[5]).contains("size_bytes")) << "a block that was never seen";
  EXPECT_FALSE(json::parse(lines[4]).contains("stack"));
}

TEST(EventExport, CsvHasTheSameColumnsInOrder) {
  MemorySource source = sample_source();
  const std::vector<std::string> lines = export_of(source, ExportFormat::kCsv);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0],
            "time_ns,action,address,size_bytes,requested_bytes,device,layer,stream,thread,process,"
            "category,module,"
            "phase,step,stack");
  EXPECT_EQ(lines[2],
            "1500000000,alloc,32,300,300,cpu,framework,,11,11,,,,,"
            "/opt/job/model.py:7 Model.__init__;/opt/job/train.py:90 <module>");
  EXPECT_EQ(lines[6], "5000000000,free_completed,153,,,cpu,framework,,11,11,,,,,");
}

TEST(EventExport, FramesOfDeepStacksThatSeveralShareAreThoseOfEach) {
  constexpr uint32_t kShared = 100;
  EventBatch events;
  MemorySource names{EventBatch()};
  Tables& tables = names.mutable_tables();
  uint32_t base = 0;
  std::vector<std::string> shared;
  const auto push = [&](uint32_t on, const std::string& function) {
    const Frame frame{.function = tables.strings.intern(function)};
    return tables.stacks.push(on, tables.stacks.intern_frame(frame));
  };
  for (uint32_t i = 0; i < kShared; ++i) {
    shared.insert(shared.begin(), "f" + std::to_string(i));
    base = push(base, shared.front());
  }
  std::vector<std::vector<std::string>> expected;
  for (uint32_t more = 0; more < 70; ++more) {
    uint32_t stack = base;
    expected.push_back(shared);
    for (uint32_t i = 0; i < more; ++i) {
      expected.back().insert(expected.back().begin(), "own" + std::to_string(more));
      stack = push(stack, expected.back().front());
    }
    append(&events, {more, Action::kAlloc, 64 + more, 5, stack});
  }
  MemorySource source(events);
  source.mutable_tables() = std::move(tables);
  const std::vector<std::string> lines = export_of(source, ExportFormat::kJsonLines);
  ASSERT_EQ(lines.size(), expected.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(json::parse(lines[i])["stack"].get<std::vector<std::string>>(), expected[i]);
  }
}

TEST(EventExport, AStepIsANumberOfTheFrameworksOwn) {
  EventBatch events;
  append(&events, {1, Action::kAlloc, 0x1, 5});
  append(&events, {2, Action::kAlloc, 0x2, 5});
  events.step = {-7, kNoStep};
  MemorySource source(events), again(events);
  const std::vector<std::string> lines = export_of(source, ExportFormat::kJsonLines);
  EXPECT_EQ(json::parse(lines[0])["step"], -7);
  EXPECT_FALSE(json::parse(lines[1]).contains("step"));
  const std::vector<std::string> csv = export_of(again, ExportFormat::kCsv);
  EXPECT_TRUE(csv[1].ends_with(",,,,-7,")) << csv[1];
  EXPECT_TRUE(csv[2].ends_with(",,,,,")) << csv[2];
}

TEST(EventExport, HostileNamesStayInTheirField) {
  MemorySource source = sample_source();
  Tables& tables = source.mutable_tables();
  const std::string name = "a,\"b\"\n\xff";
  const uint32_t frame =
      tables.stacks.intern_frame({tables.strings.intern(name), tables.strings.intern("f"), 1});
  EventBatch events;
  append(&events, {1, Action::kAlloc, 0x1, 5, tables.stacks.push(0, frame), 9,
                   7});  // no such thread, device
  MemorySource hostile(events);
  hostile.mutable_tables() = std::move(tables);
  EXPECT_EQ(json::parse(export_of(hostile, ExportFormat::kJsonLines)[0])["stack"][0],
            "a,\"b\"\n\xef\xbf\xbd:1 f");
  MemorySource again(events);
  again.mutable_tables() = std::move(hostile.mutable_tables());
  EXPECT_EQ(
      export_of(again, ExportFormat::kCsv)[1],
      "1,alloc,1,5,,device type -1,framework,,,,,,,,\"a,\"\"b\"\"\xef\xbf\xbd\xef\xbf\xbd:1 f\"");
}

TEST(EventExport, ATextThatASpreadsheetWouldTakeForAFormulaIsMarkedInCsvAlone) {
  for (const char* name : {"=1+1", "+a", "-a", "@a"}) {
    EventBatch events;
    append(&events, {1, Action::kAlloc, 0x1, 5, 1});
    MemorySource source(events), again(events);
    for (MemorySource* each : {&source, &again}) {
      Tables& tables = each->mutable_tables();
      tables.stacks.push(0, tables.stacks.intern_frame(
                                {tables.strings.intern(name), tables.strings.intern("f"), 1}));
    }
    EXPECT_EQ(json::parse(export_of(source, ExportFormat::kJsonLines)[0])["stack"][0],
              std::string(name) + ":1 f");
    const std::string line = export_of(again, ExportFormat::kCsv)[1];
    EXPECT_TRUE(line.starts_with("1,alloc,1,5,")) << line;
    EXPECT_TRUE(line.ends_with(",'" + std::string(name) + ":1 f")) << line;
  }
}

TEST(EventExport, AnErrorOfTheSinkEndsTheExport) {
  MemorySource source = sample_source();
  const Status done = export_events(source, ExportFormat::kCsv, [](std::string_view) {
    return fail(ErrorCode::kSystem, "disk full");
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "disk full");
}

}  // namespace
}  // namespace gpumemprof
