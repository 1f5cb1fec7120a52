// The archive's manifest and its TAR, against the formats' own descriptions.
#include "report/export/perfetto_archive.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

MemorySource source_of(const Process& process) {
  MemorySource source{EventBatch()};
  source.mutable_tables().processes.push_back(process);
  return source;
}

TEST(PerfettoArchive, RanksOfOneHostAreOnOneMachine) {
  PerfettoArchive archive;
  EXPECT_EQ(archive.add(source_of({.pid = 7, .host = "a", .rank = 0}), ""), "rank-0.a.7.pftrace");
  EXPECT_EQ(archive.add(source_of({.pid = 8, .host = "a", .rank = 1}), ""), "rank-1.a.8.pftrace");
  const auto said = nlohmann::json::parse(archive.manifest("1.2"))["perfetto_manifest"];
  EXPECT_EQ(said["version"], 1);
  EXPECT_EQ(said["trace_time"]["clock"], "MONOTONIC");
  EXPECT_EQ(said["attributes"]["gpumemprof.version"], "1.2");
  EXPECT_EQ(said["files"][0]["machine"]["name"], "a");
  EXPECT_EQ(said["files"][1]["machine"]["name"], "a");
  EXPECT_TRUE(archive.manifest("1").starts_with("{\n \"perfetto_manifest\"")) << "its mark";
}

TEST(PerfettoArchive, OtherHostsBootsAndContainersAreMachinesOfTheirOwn) {
  PerfettoArchive archive;
  archive.add(source_of({.pid = 7, .host = "a", .realtime_offset_ns = 0}), "");
  archive.add(source_of({.pid = 7, .host = "b", .realtime_offset_ns = 0}), "");
  archive.add(source_of({.pid = 8, .host = "a", .realtime_offset_ns = 3'600'000'000'000}), "");
  archive.add(source_of({.pid = 7, .host = "a", .realtime_offset_ns = 5}), "");
  const auto said = nlohmann::json::parse(archive.manifest("1"))["perfetto_manifest"];
  EXPECT_EQ(said["trace_time"]["clock"], "REALTIME");
  EXPECT_EQ(said["files"][0]["machine"]["name"], "a");
  EXPECT_EQ(said["files"][1]["machine"]["name"], "b");
  EXPECT_EQ(said["files"][2]["machine"]["name"], "a (2)");
  EXPECT_EQ(said["files"][3]["machine"]["name"], "a (3)");
  EXPECT_EQ(said["files"][3]["path"], "a.7-2.pftrace");
}

TEST(PerfettoArchive, ASnapshotHasNoMachineAndAHostileNameIsAFile) {
  PerfettoArchive archive;
  const MemorySource snapshot{EventBatch()};
  EXPECT_EQ(archive.add(snapshot, "/x/step 3;\n.pickle"), "step_3__.pickle.pftrace");
  EXPECT_EQ(archive.add(source_of({.pid = 1, .host = "../../etc"}), ""), ".._.._etc.1.pftrace");
  const auto said = nlohmann::json::parse(archive.manifest("1"))["perfetto_manifest"];
  EXPECT_FALSE(said["files"][0].contains("machine"));
  EXPECT_EQ(said["trace_time"]["clock"], "REALTIME");
}

TEST(PerfettoArchive, WithoutMembersIsStillAManifest) {
  const auto said = nlohmann::json::parse(PerfettoArchive().manifest("1"))["perfetto_manifest"];
  EXPECT_EQ(said["files"].size(), 0u);
}

TEST(Tar, HasBlocksOf512Bytes) {
  EXPECT_EQ(tar_header("a", 3).size(), 512u);
  EXPECT_EQ(tar_padding(0).size(), 0u);
  EXPECT_EQ(tar_padding(1).size(), 511u);
  EXPECT_EQ(tar_padding(512).size(), 0u);
  EXPECT_EQ(tar_end(), std::string(1024, '\0'));
  EXPECT_EQ(tar_header("a", kMostTarBytes).substr(124, 11), "77777777777");
}

}  // namespace
}  // namespace gpumemprof
