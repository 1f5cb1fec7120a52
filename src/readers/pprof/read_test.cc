// What a profile says is what is read: sums and numbers by stack, device and kind.
#include "readers/pprof/read.h"

#include <gtest/gtest.h>

#include "readers/memory_file.h"
#include "readers/pprof/pprof_for_tests.h"
#include "trace/live_state.h"

namespace gpumemprof {
namespace {

using for_tests::gzip;
using for_tests::PprofWriter;
using for_tests::small_pprof;

std::unique_ptr<EventSource> read_profile(const std::string& bytes) {
  MemoryFile file(bytes);
  auto source = read_pprof(file);
  EXPECT_TRUE(source) << source.error().message;
  return source ? std::move(*source) : nullptr;
}

/// "device: count x bytes" of everything that is live.
std::vector<std::string> live(const EventSource& source) {
  std::vector<std::string> out;
  const LiveState& state = *source.state_before_first_event();
  for (size_t i = 0; i < state.devices().size(); ++i) {
    const DeviceState& device = state.devices()[i];
    out.push_back(device_name(source.tables().devices[i]) + ": " +
                  std::to_string(device.live_count) + " x " + std::to_string(device.live_bytes));
  }
  return out;
}

TEST(Pprof, WhatIsLiveIsToldByDeviceAndKind) {
  const auto source = read_profile(small_pprof());
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(live(*source), (std::vector<std::string>{"jax:cpu:0: 2 x 8193",
                                                     "jax:TPU_0?process?0??0?0?0?0??: 1 x 512",
                                                     "jax:executable: 1 x 0"}));
  EXPECT_TRUE(is_host_memory(source->tables().devices[0]));
  EXPECT_FALSE(is_host_memory(source->tables().devices[1]));
}

TEST(Pprof, AStackBeginsWithTheLineThatAllocated) {
  const auto source = read_profile(small_pprof());
  const auto holders = source->state_before_first_event()->holders_now(0);
  ASSERT_EQ(holders.size(), 1u);
  EXPECT_EQ(stack_lines(source->tables(), holders[0].stack),
            (std::vector<std::string>{"/srv/x/train.py full", "/srv/x/train.py:1 load_params",
                                      "/srv/x/train.py:2 <module>"}));
}

TEST(Pprof, CompressedOrNotItIsTheSame) {
  EXPECT_EQ(live(*read_profile(gzip(small_pprof()))), live(*read_profile(small_pprof())));
}

TEST(Pprof, ItIsAMomentAndSaysSo) {
  const auto source = read_profile(small_pprof());
  EXPECT_FALSE(source->info().can.complete_history);
  EXPECT_FALSE(source->info().can.times);
  EXPECT_EQ(source->info().kind, SourceKind::kJaxMemoryProfile);
  ASSERT_EQ(source->loss().reasons.size(), 1u);
  EXPECT_NE(source->loss().reasons[0].reason.find("one moment"), std::string::npos);
  EventBatch batch;
  ASSERT_TRUE(*source->next(&batch));
  EXPECT_EQ(batch.action, std::vector<Action>(3, Action::kSnapshot));
  EXPECT_FALSE(*source->next(&batch));
}

TEST(Pprof, SamplesOfOneStackAddUp) {
  const auto source = read_profile(PprofWriter().write({{3, 10, "buffer", "cpu:0", {"a"}},
                                                {1, 5, "buffer", "cpu:0", {}},
                                                {2, 7, "buffer", "cpu:0", {}}}));
  const auto holders = source->state_before_first_event()->holders_now(0);
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].bytes, 12u);
  EXPECT_EQ(holders[0].count, 3u);
  EXPECT_EQ(holders[1].bytes, 10u);
  EXPECT_EQ(holders[1].count, 3u);
}

TEST(Pprof, NegativeSamplesAreCountedAndLeftOut) {
  const auto source = read_profile(PprofWriter().write({{1, 8}, {-1, -8}}));
  EXPECT_EQ(live(*source), std::vector<std::string>{"jax:cpu:0: 1 x 8"});
  ASSERT_EQ(source->loss().reasons.size(), 2u);
  EXPECT_EQ(source->loss().reasons[1].reason,
            "1 samples with negative buffers or bytes are left out");
}

TEST(Pprof, AProfileOfSomethingElseIsRefused) {
  MemoryFile file(PprofWriter().write({{1, 8}}, "nanoseconds"));
  const auto source = read_pprof(file);
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().message,
            "a profile, but not a JAX memory profile: no samples of \"space\" in bytes");
  EXPECT_EQ(source.error().offset, 0u);
}

TEST(Pprof, ItIsKnownByItsContent) {
  EXPECT_TRUE(looks_like_pprof(small_pprof()));
  EXPECT_TRUE(looks_like_pprof(gzip(small_pprof())));
  EXPECT_FALSE(looks_like_pprof(gzip("time,bytes\n1,2\n")));
  EXPECT_FALSE(looks_like_pprof("\x0a\x20\x08\x01\x12\x09/host:CPU"));  // TensorFlow's
  EXPECT_FALSE(looks_like_pprof(""));
  EXPECT_FALSE(looks_like_pprof("\x1f\x8b"));
}

}  // namespace
}  // namespace gpumemprof
