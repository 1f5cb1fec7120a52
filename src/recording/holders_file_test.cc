#include "recording/holders_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace gpumemprof {
namespace {

constexpr std::string_view kText =
    R"~({"schema": "gpumemprof.holders/1", "pid": 12, "start_ticks": 99, "looks": [)~"
    R"~({"time_ns": 7, "why_incomplete": "", "holders": [{"path": "losses in train (train.py)", )~"
    R"~("name": "losses", "owner": "variable", "through": ["list"], "tensors": 3, "with_graph": 2, )~"
    R"~("scalars": 1, "in_pairs": 0, "operations": ["AddBackward0"]}], "storages": [[4096, 0]]}]})~";

TEST(HoldersFile, SaysWhoHoldsWhichStorage) {
  const auto told = parse_holders(kText);
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->pid, 12);
  EXPECT_EQ(told->start_ticks, 99);
  ASSERT_EQ(told->looks.size(), 1);
  const HoldersLook& look = told->looks[0];
  EXPECT_EQ(look.time_ns, 7);
  ASSERT_EQ(look.holders.size(), 1);
  EXPECT_EQ(look.holders[0].name, "losses");
  EXPECT_EQ(look.holders[0].owner, "variable");
  EXPECT_EQ(look.holders[0].through, std::vector<std::string>{"list"});
  EXPECT_EQ(look.holders[0].with_graph, 2);
  EXPECT_EQ(look.holders[0].storages, 1);
  EXPECT_EQ(look.holders[0].most_entries, 0) << "nothing limits it";
  ASSERT_TRUE(look.by_address.contains(4096));
  EXPECT_EQ(look.by_address.at(4096), 0);
}

TEST(HoldersFile, HasTheEntriesOfADequeWithAMaxlen) {
  std::string text(kText);
  text.insert(text.find(R"("operations")"), R"~("entries": 60, "most_entries": 100, "limit": "B.capacity", )~");
  const auto told = parse_holders(text);
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->looks[0].holders[0].entries, 60);
  EXPECT_EQ(told->looks[0].holders[0].most_entries, 100);
  EXPECT_EQ(told->looks[0].holders[0].limit, "B.capacity");
}

TEST(HoldersFile, OneObjectHasOnePathInAllLooks) {
  const auto paths = [](int second_object) {
    const std::string text = fmt::format(
        R"~({{"schema": "gpumemprof.holders/1", "pid": 12, "start_ticks": 9, "looks": [)~"
        R"~({{"time_ns": 7, "holders": [{{"path": "A.log, by self in f", "name": "A.log", "object_id": 5}}], )~"
        R"~("storages": []}}, {{"time_ns": 8, "holders": [{{"path": "A.log, by a in <module>", )~"
        R"~("name": "A.log", "object_id": {}}}], "storages": []}}]}})~",
        second_object);
    const auto told = parse_holders(text);
    std::vector<std::string> out;
    for (const HoldersLook& look : told->looks) out.push_back(look.holders.at(0).path);
    return out;
  };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(paths(5), (Paths{"A.log, by a in <module>", "A.log, by a in <module>"}));
  EXPECT_EQ(paths(6), (Paths{"A.log, by self in f", "A.log, by a in <module>"})) << "two objects";
}

TEST(HoldersFile, HasWhetherPythonsCollectorWasDisabled) {
  EXPECT_FALSE(parse_holders(kText)->looks[0].is_gc_disabled) << "nobody says";
  std::string text(kText);
  text.insert(text.find(R"("holders": [)"), R"("gc_enabled": false, )");
  EXPECT_TRUE(parse_holders(text)->looks[0].is_gc_disabled);
}

TEST(HoldersFile, HasTheMemoryThatWasTold) {
  std::string text(kText);
  text.insert(text.find(R"("holders": [)"),
              R"~("memory": {"resident_bytes": 9, "anonymous_bytes": 8, "file_bytes": 1, )~"
              R"~("malloc_live_bytes": null, "malloc_kept_bytes": -1, "python_arenas_bytes": null, )~"
              R"~("why_no_python_arenas": "mimalloc", "pinned_used_bytes": 3}, )~");
  const auto told = parse_holders(text);
  ASSERT_TRUE(told) << told.error().message;
  const auto& memory = told->looks.at(0).memory;
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->resident_bytes, 9u);
  EXPECT_EQ(memory->file_bytes, 1u);
  EXPECT_FALSE(memory->shared_bytes || memory->malloc_live_bytes || memory->malloc_kept_bytes);
  EXPECT_FALSE(memory->python_arenas_bytes);
  EXPECT_EQ(memory->why_no_python_arenas, "mimalloc");
  EXPECT_EQ(memory->pinned_used_bytes, 3u);
  EXPECT_FALSE(memory->pinned_cache_bytes);
}

TEST(HoldersFile, OneCutAtAnyByteIsRefusedWithTheByte) {
  for (size_t length = 0; length < kText.size(); ++length) {
    const auto told = parse_holders(kText.substr(0, length));
    ASSERT_FALSE(told) << length;
    EXPECT_EQ(told.error().code, ErrorCode::kBadInput);
    ASSERT_TRUE(told.error().offset) << length;
    EXPECT_LE(*told.error().offset, length + 1);
  }
}

TEST(HoldersFile, AFlippedByteIsRefusedOrStaysWithinBounds) {
  std::string text(kText);
  for (size_t at = 0; at < text.size(); ++at) {
    for (uint8_t mask : {0x01, 0x10, 0x80}) {
      text[at] = static_cast<char>(text[at] ^ mask);
      if (const auto told = parse_holders(text)) {
        for (const HoldersLook& look : told->looks) {
          for (const auto& [address, holder] : look.by_address) {
            EXPECT_LT(holder, look.holders.size());
          }
        }
      }
      text[at] = static_cast<char>(text[at] ^ mask);
    }
  }
}

TEST(HoldersFile, AHolderThatIsNotThereIsRefused) {
  std::string text(kText);
  text.replace(text.find("[4096, 0]"), 9, "[4096, 1]");
  EXPECT_FALSE(parse_holders(text));
}

TEST(HoldersFile, ALaterVersionIsUnsupported) {
  std::string text(kText);
  text.replace(text.find("holders/1"), 9, "holders/2");
  const auto told = parse_holders(text);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, ErrorCode::kUnsupported);
}

TEST(HoldersFile, AFolderThatIsNamedAsAFileOfARecordingIsAFolder) {
  char folder[] = "/tmp/gpumemprof-holders-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string run = std::string(folder) + "/run.gmp";
  ASSERT_TRUE(std::filesystem::create_directory(run));
  std::ofstream(run + "/holders.1.2.json") << kText;
  std::vector<std::string> problems;
  EXPECT_EQ(read_holders({run}, &problems).size(), 1u);
  EXPECT_EQ(read_holders({run + "/vm.1.2.gmp"}, &problems).size(), 1u) << "beside one of its files";
  EXPECT_TRUE(problems.empty());
  std::filesystem::remove_all(folder);
}

TEST(HoldersFile, AThousandBracketsAreNoCrash) {
  EXPECT_FALSE(parse_holders(std::string(1'000'000, '[')));
}

}  // namespace
}  // namespace gpumemprof
