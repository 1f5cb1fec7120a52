#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "allocator/config.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

Release release(const char* name) { return *find_release(name); }

AllocatorConfig parsed(const char* text, const char* name) {
  auto config = parse_settings(text, release(name));
  EXPECT_TRUE(config.has_value()) << text << ": " << (config ? "" : config.error().message);
  return config ? *config : AllocatorConfig();
}

// What each release's own parser said to each text; tests/reference_allocator made the table.
TEST(AllocatorSettings, AreAcceptedAndRefusedAsEachReleaseDoes) {
  std::ifstream file(GPUMEMPROF_SOURCE_DIR "/tests/fixtures/allocator/settings.json");
  const auto table = nlohmann::json::parse(file);
  int compared = 0;
  for (const auto& [text, by_release] : table.items()) {
    for (const auto& [name, accepted] : by_release.items()) {
      const auto config = parse_settings(text, release(name.c_str()));
      EXPECT_EQ(config.has_value(), accepted.get<bool>()) << text << " in " << name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 610);
}

TEST(AllocatorSettings, ValuesAreInBytesAndShares) {
  const AllocatorConfig config = parsed(
      " max_split_size_mb : 128 , garbage_collection_threshold:0.75,expandable_segments:True,"
      "max_non_split_rounding_mb:40,large_segment_size_mb:32,per_process_memory_fraction:0.5",
      "2.13");
  EXPECT_EQ(config.max_split_size_bytes, 128 * kMiB);
  EXPECT_EQ(config.max_non_split_rounding_bytes, 40 * kMiB);
  EXPECT_EQ(config.large_segment_bytes, 32 * kMiB);
  EXPECT_EQ(config.garbage_collection_threshold, 0.75);
  EXPECT_EQ(config.memory_fraction, 0.5);
  EXPECT_TRUE(config.expandable_segments);
  EXPECT_TRUE(config.keys_without_effect.empty());
}

TEST(AllocatorSettings, TheLastOfTwoEqualKeysCounts) {
  EXPECT_EQ(parsed("max_split_size_mb:64,max_split_size_mb:32", "2.6").max_split_size_bytes,
            32 * kMiB);
}

TEST(AllocatorSettings, KeysThatChangeNoAddressAreListed) {
  const AllocatorConfig config = parsed("release_lock_on_cudamalloc:True,backend:native", "2.13");
  EXPECT_EQ(config.keys_without_effect,
            (std::vector<std::string>{"release_lock_on_cudamalloc", "backend"}));
}

TEST(AllocatorSettings, TheAsynchronousBackendCannotBeSimulated) {
  const auto config = parse_settings("backend:cudaMallocAsync", release("2.13"));
  ASSERT_FALSE(config.has_value());
  EXPECT_EQ(config.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(config.error().message,
            "backend:cudaMallocAsync cannot be simulated: the driver places the blocks");
}

TEST(AllocatorSettings, AnErrorSaysWhatTheReleaseWants) {
  EXPECT_EQ(parse_settings("max_split_size_mb:20", release("2.9")).error().message,
            "max_split_size_mb needs more than 20 (MB), not 20 in PyTorch 2.9");
  EXPECT_EQ(parse_settings("large_segment_size_mb:64", release("2.10")).error().message,
            "PyTorch 2.10 has no allocator setting large_segment_size_mb: it was added in 2.11");
  EXPECT_EQ(parse_settings("expandable_segments", release("2.10")).error().message,
            "\":\" expected after expandable_segments, the settings end there");
  EXPECT_EQ(parse_settings("expandable:True", release("2.1")).error().message,
            "PyTorch has no allocator setting expandable; known are max_split_size_mb, "
            "garbage_collection_threshold, roundup_power2_divisions, expandable_segments, "
            "backend, pinned_use_cuda_host_register, pinned_num_register_threads");
}

TEST(AllocatorSettings, RoundupListsFillTheEndAsTheReleaseDoes) {
  const auto old = parsed("roundup_power2_divisions:[4:8,16:2,>:4]", "2.9").roundup_divisions;
  const auto now = parsed("roundup_power2_divisions:[4:8,16:2,>:4]", "2.10").roundup_divisions;
  EXPECT_EQ(old, (std::array<uint64_t, 16>{8, 8, 8, 0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}));
  EXPECT_EQ(now, (std::array<uint64_t, 16>{8, 8, 8, 0, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}));
}

TEST(AllocatorSettings, SizesAreRoundedToBlocksAndDivisions) {
  const AllocatorConfig plain;
  EXPECT_EQ(round_size(0, plain, release("2.13")), 512u);
  EXPECT_EQ(round_size(513, plain, release("2.13")), 1024u);
  AllocatorConfig divided;
  divided.roundup_divisions.fill(4);
  // Between 1024 and 2048 the steps of four divisions are smaller than a block: blocks decide.
  EXPECT_EQ(round_size(1200, divided, release("2.13")), 1536u);
  EXPECT_EQ(round_size(5 * kMiB + 1, divided, release("2.13")), 6 * kMiB);
  EXPECT_EQ(round_size(8 * kMiB, divided, release("2.13")), 8 * kMiB);
  AllocatorConfig one;
  one.roundup_divisions.fill(1);
  EXPECT_EQ(round_size(1000, one, release("2.3")), 1000u);
  EXPECT_EQ(round_size(1000, one, release("2.4")), 1024u);
}

TEST(AllocatorSettings, RecordedTextBeatsRecordedFields) {
  RecordedSettings recorded;
  recorded.max_split_size_bytes = 64 << 20;
  EXPECT_EQ(recorded_config(recorded, release("2.13")).max_split_size_bytes, 64 * kMiB);
  recorded.conf = "max_split_size_mb:32";
  EXPECT_EQ(recorded_config(recorded, release("2.13")).max_split_size_bytes, 32 * kMiB);
  recorded.conf = "no_such_key:1";
  EXPECT_EQ(recorded_config(recorded, release("2.13")).max_split_size_bytes, 64 * kMiB);
}

TEST(AllocatorReleases, AreFoundByNameAndByHint) {
  EXPECT_EQ(release("2.13.1").minor, 13);
  EXPECT_EQ(release("torch==2.6.0+cu124").minor, 6);
  EXPECT_EQ(release("latest"), newest_release());
  EXPECT_FALSE(find_release("1.13").has_value());
  EXPECT_FALSE(find_release("2.99").has_value());
  EXPECT_FALSE(find_release("2.1x").has_value());
  std::vector<int> minors;
  for (const Release& r : releases_for_hint("torch 2.2 to 2.4")) minors.push_back(r.minor);
  EXPECT_EQ(minors, (std::vector<int>{2, 3, 4}));
  minors.clear();
  for (const Release& r : releases_for_hint("torch 2.14 or later")) minors.push_back(r.minor);
  EXPECT_EQ(minors, (std::vector<int>{14, 15}));
  EXPECT_EQ(releases_for_hint("").size(), known_releases().size());
  EXPECT_EQ(releases_for_hint("torch 2.0").front().minor, 1);
}

}  // namespace
}  // namespace gpumemprof
