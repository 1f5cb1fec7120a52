#include "allocator/replay.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "readers/torch_snapshot/read.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::json;
const std::string kFixtures = GPUMEMPROF_SOURCE_DIR "/tests/fixtures/allocator/";
const std::string kShared = GPUMEMPROF_SOURCE_DIR "/../shared/snapshots/";

AllocatorSnapshot read(const std::string& path) {
  auto snapshot = read_torch_snapshot(path);
  EXPECT_TRUE(snapshot.has_value()) << path << ": " << (snapshot ? "" : snapshot.error().message);
  return snapshot ? *std::move(snapshot) : AllocatorSnapshot();
}

/// What the real allocator recorded of itself, and what it answers; tests/reference_allocator.
Json fixtures() {
  std::ifstream file(kFixtures + "answers.json");
  return Json::parse(file);
}

AllocatorTrace with_events(const AllocatorTrace& trace, const std::vector<AllocatorEvent>& events) {
  AllocatorTrace copy = trace;
  copy.events = {};
  for (const AllocatorEvent& event : events) copy.events.append(event);
  return copy;
}

std::vector<AllocatorEvent> events_of(const AllocatorTrace& trace) {
  std::vector<AllocatorEvent> events;
  for (size_t i = 0; i < trace.events.size(); ++i) events.push_back(trace.events[i]);
  return events;
}

void expect_exact(const ReplayResult& result, const std::string& name) {
  EXPECT_EQ(result.matched, result.alloc_addresses) << name << ": " << result.mismatch_reason;
  EXPECT_FALSE(result.first_mismatch_event.has_value()) << name << ": " << result.mismatch_reason;
  EXPECT_EQ(result.segment_events_matched, result.segment_events) << name;
  EXPECT_EQ(result.end_blocks_matched, result.end_blocks) << name;
  EXPECT_EQ(result.impossible_events, 0u) << name;
}

TEST(Replay, GivesEveryAddressThatTheRealAllocatorChose) {
  const Json all = fixtures();
  ASSERT_EQ(all.size(), 15u);
  for (const Json& fixture : all) {
    const std::string name = fixture["file"];
    const AllocatorSnapshot snapshot = read(kFixtures + name);
    ASSERT_EQ(snapshot.traces.size(), 1u) << name;
    const Release release = *find_release(fixture["release"].get<std::string>());
    const ReplayResult result = replay_recorded(snapshot.traces[0], snapshot.settings, release);
    expect_exact(result, name);
    EXPECT_GT(result.alloc_addresses, 100u) << name;
    const Json& recorded = fixture["recorded"];
    EXPECT_EQ(result.peak_reserved.bytes, recorded["peak_reserved"]) << name;
    EXPECT_EQ(result.peak_allocated.bytes, recorded["peak_allocated"]) << name;
    EXPECT_EQ(result.peak_active.bytes, recorded["peak_active"]) << name;
    EXPECT_EQ(result.peak_requested.bytes, recorded["peak_requested"]) << name;
    EXPECT_EQ(result.end.reserved_bytes, recorded["reserved"]) << name;
    EXPECT_EQ(result.end.allocated_bytes, recorded["allocated"]) << name;
    EXPECT_EQ(result.end.active_bytes, recorded["active"]) << name;
    EXPECT_EQ(result.end_segments, recorded["segments"]) << name;
  }
}

TEST(Replay, FindsTheReleaseWhoseTiesItFollows) {
  // Later segments lie at lower addresses, so blocks of one size tell the rules apart.
  for (const auto& [name, least, most] :
       {std::tuple("2.11", 1, 11), {"2.12", 12, 12}, {"2.13", 13, 15}}) {
    const AllocatorSnapshot snapshot = read(kFixtures + "falling_" + name + ".pickle");
    const ReplayResult found = replay_unknown_release(snapshot.traces[0], snapshot.settings, "");
    expect_exact(found, name);
    EXPECT_TRUE(found.release_was_searched);
    EXPECT_GE(found.release.minor, least);
    EXPECT_LE(found.release.minor, most);
    const char* other = least == 13 ? "2.11" : "2.13";
    const ReplayResult wrong =
        replay_recorded(snapshot.traces[0], snapshot.settings, *find_release(other));
    EXPECT_LT(wrong.matched, wrong.alloc_addresses) << name << " under " << other;
  }
}

TEST(WhatIf, AnswersWhatRunsOnAGpuReserved) {
  // tests/gpu/test_cuda_replay.py on an H200, driver 580, PyTorch 2.11. Blocks of one size are taken
  // by address, and the driver's do not rise: 1,077,936,128 would be the last answer.
  const AllocatorSnapshot snapshot = read(kFixtures + "h200_random_2.11.pickle");
  const Release release = *find_release("2.11");
  expect_exact(replay_recorded(snapshot.traces[0], snapshot.settings, release), "h200");
  for (const auto& [settings, reserved_bytes] :
       {std::pair("", 1'092'616'192u),
        {"expandable_segments:True", 945'815'552u},
        {"max_split_size_mb:32", 2'071'986'176u},
        {"roundup_power2_divisions:4", 1'145'044'992u}}) {
    const auto config = parse_settings(settings, release);
    EXPECT_EQ(what_if(snapshot.traces[0], *config, release).peak_reserved_bytes, reserved_bytes)
        << settings;
  }
}

TEST(WhatIf, AnswersWhatTheRealAllocatorAnswers) {
  int asked = 0;
  for (const Json& fixture : fixtures()) {
    const std::string name = fixture["file"];
    const AllocatorSnapshot snapshot = read(kFixtures + name);
    const Release release = *find_release(fixture["release"].get<std::string>());
    for (const Json& answer : fixture["answers"]) {
      const std::string settings = answer["settings"];
      auto config = parse_settings(settings, release);
      ASSERT_TRUE(config.has_value()) << settings;
      config->capacity_bytes = answer["capacity"].get<uint64_t>();
      if (!answer["fraction"].is_null()) config->memory_fraction = answer["fraction"].get<double>();
      const WhatIfResult result = what_if(snapshot.traces[0], *config, release);
      const std::string what = name + " under " + settings + " " + answer["capacity"].dump();
      EXPECT_EQ(result.peak_reserved_bytes, answer["peak_reserved"]) << what;
      EXPECT_EQ(result.peak_allocated_bytes, answer["peak_allocated"]) << what;
      EXPECT_EQ(result.end_reserved_bytes, answer["reserved"]) << what;
      EXPECT_EQ(result.segments, answer["segments"]) << what;
      EXPECT_EQ(result.num_alloc_retries, answer["num_alloc_retries"]) << what;
      EXPECT_EQ(result.num_ooms, answer["num_ooms"]) << what;
      EXPECT_EQ(result.first_oom_event_index.has_value() || result.oom_before_first_event,
                answer["num_ooms"] != 0)
          << what;
      ++asked;
    }
  }
  EXPECT_EQ(asked, 274);
}

/// Exchanges the addresses of two allocations; with their frees, or in the allocations alone.
std::vector<AllocatorEvent> exchanged(std::vector<AllocatorEvent> events, size_t first,
                                      size_t second, bool with_frees) {
  const uint64_t a = events[first].address, b = events[second].address;
  events[first].address = b;
  events[second].address = a;
  bool free_a = with_frees, free_b = with_frees;
  for (size_t i = first + 1; i < events.size() && (free_a || free_b); ++i) {
    AllocatorEvent& event = events[i];
    if (event.action == Action::kAlloc || !is_free(event.action)) continue;
    const bool ends = event.action == Action::kFreeCompleted;
    if (event.address == a && free_a) {
      event.address = b;
      free_a = !ends;
    } else if (event.address == b && free_b && i > second) {
      event.address = a;
      free_b = !ends;
    }
  }
  return events;
}

TEST(Replay, NamesTheFirstOfTwoAllocationsWhoseAddressesWereExchanged) {
  int tried = 0;
  for (const char* name :
       {"training_2.5.pickle", "training_suffix_2.10.pickle", "roundup_2.9.pickle",
        "max_split_2.13.pickle", "training_expandable_2.6.pickle"}) {
    const AllocatorSnapshot snapshot = read(kFixtures + name);
    const Release release = releases_for_hint(std::string("2.") + (strchr(name, '.') + 1)).front();
    const AllocatorTrace& trace = snapshot.traces[0];
    const std::vector<AllocatorEvent> events = events_of(trace);
    std::mt19937 random(1);
    for (int i = 0; i < 60; ++i) {
      size_t first = random() % events.size(), second = random() % events.size();
      if (first > second) std::swap(first, second);
      if (events[first].action != Action::kAlloc || events[second].action != Action::kAlloc)
        continue;
      if (events[first].address == events[second].address) continue;
      for (const bool with_frees : {false, true}) {
        const AllocatorTrace copy =
            with_events(trace, exchanged(events, first, second, with_frees));
        const ReplayResult result = replay_recorded(copy, snapshot.settings, release);
        EXPECT_EQ(result.first_mismatch_event, first)
            << name << ": events " << first << " and " << second
            << (with_frees ? ", frees too" : "");
        EXPECT_LT(result.matched, result.alloc_addresses);
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 40);
}

TEST(Replay, OneWrongAddressDoesNotSpoilWhatFollows) {
  const AllocatorSnapshot snapshot = read(kFixtures + "training_2.5.pickle");
  std::vector<AllocatorEvent> events = events_of(snapshot.traces[0]);
  // Two blocks of one size that are live at the same time, exchanged with their frees: the history
  // is one that another allocator could have had.
  size_t first = 0;
  while (events[first].action != Action::kAlloc) ++first;
  size_t second = first + 1;
  while (events[second].action != Action::kAlloc ||
         events[second].size_bytes != events[first].size_bytes) {
    ++second;
  }
  events = exchanged(events, first, second, true);
  const ReplayResult result = replay_recorded(with_events(snapshot.traces[0], events),
                                              snapshot.settings, *find_release("2.5"));
  EXPECT_EQ(result.first_mismatch_event, first);
  EXPECT_GE(result.matched + 4, result.alloc_addresses);
}

/// What 2.15.0 recorded of itself on a device of 60 MiB, expandable, with blocks of 21 MiB and more
/// not to be split: the last request gives memory back before it is served.
AllocatorTrace retry_between_the_ends(uint32_t stack_of_release) {
  constexpr uint64_t kBase = 0x400000000000, kMib = 1 << 20;
  AllocatorTrace trace{.has_history = true, .streams = {0}, .pools = {{0, 0}}};
  const auto add = [&](Action action, uint64_t at, uint64_t size, uint32_t stack) {
    trace.events.append({.address = kBase + at * kMib,
                         .size_bytes = size * kMib,
                         .stack = stack,
                         .action = action});
  };
  add(Action::kSegmentMap, 0, 20, 1);
  add(Action::kAlloc, 0, 10, 1);
  add(Action::kSegmentMap, 20, 40, 2);
  add(Action::kAlloc, 10, 40, 2);
  add(Action::kAlloc, 50, 10, 3);
  add(Action::kFreeRequested, 10, 40, 4);
  add(Action::kFreeCompleted, 10, 40, 4);
  add(Action::kSegmentUnmap, 20, 20, stack_of_release);
  add(Action::kAlloc, 10, 5, 5);
  AllocatorSegment low{.address = kBase, .size_bytes = 20 * kMib, .is_large = true};
  low.is_expandable = true;
  AllocatorSegment high = low;
  high.address = kBase + 40 * kMib;
  low.blocks = {{kBase, 10 * kMib, 10 * kMib, 1, BlockState::kAllocated},
                {kBase + 10 * kMib, 5 * kMib, 5 * kMib, 5, BlockState::kAllocated},
                {kBase + 15 * kMib, 5 * kMib, 0, 0, BlockState::kFree}};
  high.blocks = {{kBase + 40 * kMib, 10 * kMib, 0, 0, BlockState::kFree},
                 {kBase + 50 * kMib, 10 * kMib, 10 * kMib, 3, BlockState::kAllocated}};
  trace.segments = {low, high};
  return trace;
}

TEST(Replay, ARequestThatTriesAgainDoesNotLookThroughTheFreeBlocksAgain) {
  RecordedSettings settings{.known = true, .conf = "expandable_segments:True,max_split_size_mb:21"};
  settings.expandable_segments = true;
  settings.max_split_size_bytes = 21 << 20;
  const Release release = *find_release("2.15");
  for (uint32_t stack : {0, 5}) {
    expect_exact(replay_recorded(retry_between_the_ends(stack), settings, release), "a retry");
  }
  // Another stack gave back: the cache was emptied, and then the best fit lies elsewhere.
  const ReplayResult emptied = replay_recorded(retry_between_the_ends(9), settings, release);
  EXPECT_EQ(emptied.first_mismatch_event, 8u);
  EXPECT_EQ(emptied.matched, 3u);
}

TEST(Replay, ShowsFiguresAfterEveryEventAndStopsWhenTold) {
  const AllocatorSnapshot snapshot = read(kFixtures + "training_2.5.pickle");
  const AllocatorTrace& trace = snapshot.traces[0];
  uint64_t calls = 0, most = 0;
  const auto all = replay_recorded(trace, snapshot.settings, *find_release("2.5"),
                                   [&](uint64_t event, const Simulator& simulator) {
                                     EXPECT_EQ(event, calls == 0 ? kBeforeFirstEvent : calls - 1);
                                     ++calls;
                                     most =
                                         std::max(most, simulator.statistics().allocated.current);
                                     return true;
                                   });
  EXPECT_EQ(calls, trace.events.size() + 1);
  EXPECT_EQ(most, all.peak_allocated.bytes);
  const auto part = replay_recorded(trace, snapshot.settings, *find_release("2.5"),
                                    [&](uint64_t event, const Simulator& simulator) {
                                      if (event != *all.peak_allocated.event) return true;
                                      EXPECT_EQ(simulator.statistics().allocated.current, most);
                                      return false;
                                    });
  EXPECT_TRUE(part.stopped);
}

TEST(Replay, SurvivesTracesThatAreNoHistory) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    AllocatorTrace trace;
    const bool wild = round % 2 == 0;
    const auto number = [&] { return wild ? random() >> random() % 64 : random() % 64 * kMiB; };
    for (int i = 0; i < 200; ++i) {
      trace.events.append({.address = number(),
                           .size_bytes = number(),
                           .stream = static_cast<uint16_t>(random() % 3),
                           .pool = static_cast<uint16_t>(random() % 3),
                           .action = static_cast<Action>(1 + random() % 9)});
    }
    for (int i = 0; i < 5; ++i) {
      AllocatorSegment segment;
      segment.address = number();
      segment.size_bytes = number();
      segment.is_large = random() % 2 == 0;
      segment.is_expandable = random() % 2 == 0;
      for (int b = 0; b < 5; ++b) {
        segment.blocks.push_back({.address = number(),
                                  .size_bytes = number(),
                                  .requested_bytes = number(),
                                  .state = static_cast<BlockState>(random() % 3)});
      }
      trace.segments.push_back(segment);
    }
    RecordedSettings settings;
    settings.expandable_segments = random() % 2 == 0;
    const ReplayResult result = replay_unknown_release(trace, settings, "");
    EXPECT_LE(result.matched, result.alloc_addresses);
    AllocatorConfig config;
    config.expandable_segments = random() % 2 == 0;
    if (random() % 2 == 0) config.capacity_bytes = number();
    what_if(trace, config, newest_release());
  }
}

/// Device traces of other people's runs that hold allocations: 13, and every address is known.
TEST(Replay, GivesEveryAddressOfEveryRealTrace) {
  if (!std::filesystem::exists(kShared)) GTEST_SKIP() << "no recorded snapshots in " << kShared;
  int traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kShared)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("README") || name.starts_with("inconsistent")) continue;
    const AllocatorSnapshot snapshot = read(entry.path());
    for (const AllocatorTrace& trace : snapshot.traces) {
      const ReplayResult result =
          replay_unknown_release(trace, snapshot.settings, snapshot.info.writer_version_hint);
      if (result.alloc_addresses == 0) continue;
      expect_exact(result, name);
      ++traces;
    }
  }
  EXPECT_EQ(traces, 13);
}

TEST(Replay, ShowsThatAnInventedTraceIsNone) {
  if (!std::filesystem::exists(kShared)) GTEST_SKIP() << "no recorded snapshots in " << kShared;
  const AllocatorSnapshot snapshot = read(kShared + "inconsistent_synthetic.pickle");
  const ReplayResult result = replay_unknown_release(snapshot.traces[0], snapshot.settings,
                                                     snapshot.info.writer_version_hint);
  EXPECT_EQ(result.alloc_addresses, 520u);
  EXPECT_EQ(result.matched, 0u);
  EXPECT_EQ(result.first_mismatch_event, 0u);
}

}  // namespace
}  // namespace gpumemprof
