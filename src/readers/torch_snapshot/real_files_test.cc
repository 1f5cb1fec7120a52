// Real snapshots against figures that Python's own pickle gives of them, added up in Python.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "readers/torch_snapshot/read.h"

namespace gpumemprof {
namespace {

struct Figures {
  const char* file;
  uint64_t events, event_bytes, times_us;  // sums, wrapping at 2^64
  uint64_t segments, segment_bytes;
  uint64_t blocks, live_bytes, live_requested_bytes;
  uint64_t stacks;  // distinct and not empty, of events, segments and blocks
  uint64_t annotations;
};

class RealSnapshot : public ::testing::TestWithParam<Figures> {};

TEST_P(RealSnapshot, AddsUpToWhatPythonLoads) {
  const std::filesystem::path folder =
      std::filesystem::path(GPUMEMPROF_SOURCE_DIR) / ".." / "shared" / "snapshots";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no real snapshots in ../shared/snapshots";
  const Figures& expected = GetParam();
  auto snapshot = read_torch_snapshot((folder / expected.file).string());
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  Figures sums{};
  std::set<uint32_t> stacks;
  for (const AllocatorTrace& trace : snapshot->traces) {
    sums.events += trace.events.size();
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const AllocatorEvent event = trace.events[i];
      sums.event_bytes += event.size_bytes;
      sums.times_us += static_cast<uint64_t>(event.time_us);
      stacks.insert(event.stack);
    }
    sums.segments += trace.segments.size();
    for (const AllocatorSegment& segment : trace.segments) {
      sums.segment_bytes += segment.size_bytes;
      sums.blocks += segment.blocks.size();
      stacks.insert(segment.stack);
      for (const AllocatorBlock& block : segment.blocks) {
        stacks.insert(block.stack);
        if (block.state == BlockState::kFree) continue;
        sums.live_bytes += block.size_bytes;
        sums.live_requested_bytes += block.requested_bytes;
      }
    }
  }
  stacks.erase(0);
  EXPECT_EQ(sums.events, expected.events);
  EXPECT_EQ(sums.event_bytes, expected.event_bytes);
  EXPECT_EQ(sums.times_us, expected.times_us);
  EXPECT_EQ(sums.segments, expected.segments);
  EXPECT_EQ(sums.segment_bytes, expected.segment_bytes);
  EXPECT_EQ(sums.blocks, expected.blocks);
  EXPECT_EQ(sums.live_bytes, expected.live_bytes);
  EXPECT_EQ(sums.live_requested_bytes, expected.live_requested_bytes);
  EXPECT_EQ(stacks.size(), expected.stacks);
  EXPECT_EQ(snapshot->annotations.size(), expected.annotations);
}

INSTANTIATE_TEST_SUITE_P(
    TorchSnapshot, RealSnapshot,
    ::testing::Values(
        Figures{"bare_segment_list.pkl", 0, 0u, 0u, 255, 3649044480u, 2140, 3353639424u,
                3308174782u, 11, 0},
        Figures{"empty.pickle", 0, 0u, 0u, 0, 0u, 0, 0u, 0u, 0, 0},
        Figures{"empty_cache_loop_torch26.pickle", 9576, 2167537283072u, 16741206787534285323u, 4,
                230686720u, 10, 215105536u, 215105536u, 149, 0},
        Figures{"expandable_oom_4gpu.pickle", 7923, 700468490370u, 13922717551302470851u, 12,
                114628231168u, 790, 28728827904u, 28728795288u, 266, 4},
        Figures{"forward_2_7b_torch26.pickle", 8694, 33034794136u, 15201236185738966392u, 961,
                34898706432u, 2077, 34094880256u, 33622159876u, 1170, 1802},
        Figures{"fullstep_ctx256_torch26.pickle", 20128, 400974568758u, 16751745602415086805u, 1021,
                61025026048u, 1711, 54756295168u, 54619652100u, 179, 4},
        Figures{"history_blocks_torch20.pickle", 1, 8896512u, 0u, 257, 7608467456u, 948,
                5683450880u, 5683449864u, 21, 0},
        Figures{"history_blocks_torch20_oom.pickle", 1, 11840159744u, 0u, 176, 11844714496u, 463,
                11840159744u, 11840159744u, 3, 0},
        Figures{"inconsistent_synthetic.pickle", 1040, 50703933040u, 1829622823006321020u, 5,
                262144000u, 17, 8704u, 466u, 1040, 6},
        Figures{"lora_finetune_torch21.pickle", 10307, 86812744380u, 0u, 215, 6471811072u, 1079,
                2297283072u, 2285408452u, 152, 0},
        Figures{"no_history.pickle", 1, 8u, 1729931410850299u, 259, 17133731840u, 868, 16397578240u,
                16380108168u, 17, 0},
        Figures{"python_stacks_only.pickle", 23105, 45862170864u, 3848118121774741489u, 61,
                1897922560u, 468, 1014430208u, 1011485828u, 205, 8},
        Figures{"snapshot_events_torch22.pickle", 5803, 5018594170u, 10090142721464165341u, 10,
                134217728u, 54, 48760832u, 48748928u, 81, 0},
        Figures{"ten_streams_torch21.pickle", 10327, 2963573977208u, 0u, 136, 18566086656u, 204,
                16199101440u, 16199097344u, 115, 0},
        Figures{"training_ctx256_torch210.pickle", 19430, 133596583091u, 16213937007518060951u, 495,
                9265217536u, 1023, 6837944832u, 6829096964u, 172, 2},
        Figures{"training_ctx512_torch210.pickle", 22332, 214511125395u, 2944000933466672887u, 400,
                12660506624u, 1041, 6838108672u, 6829260804u, 188, 2},
        Figures{"training_torch26.pickle", 19464, 134488820295u, 15705594743676730906u, 999,
                23842521088u, 1987, 16019091968u, 15568596996u, 180, 4}));

}  // namespace
}  // namespace gpumemprof
