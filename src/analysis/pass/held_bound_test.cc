#include "analysis/pass/held_bound.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace gpumemprof {
namespace {

struct Row {
  uint32_t thread;
  int64_t bytes;  // below 0: freed
  uint64_t time_ns = 0;
};

struct Bounds {
  uint64_t least = 0, most = 0;
  bool operator==(const Bounds&) const = default;
};

Bounds bounds_of(const std::vector<Row>& rows, uint32_t* threads = nullptr) {
  HeldBound held;
  uint64_t live = 0, peak = 0;
  for (const Row& row : rows) {
    live += static_cast<uint64_t>(row.bytes);
    peak = std::max(peak, live);
    const auto bytes = static_cast<uint64_t>(std::abs(row.bytes));
    held.add({row.time_ns, row.thread, row.bytes > 0 ? bytes : 0, row.bytes < 0 ? bytes : 0, live,
              peak});
  }
  if (threads) *threads = held.threads();
  return {peak, held.most_bytes()};
}

/// By the definition, for every stretch between two events: what is live, and of each thread the
/// larger of what its event before freed, unless that free is over, and what its event after
/// allocates.
Bounds by_definition(const std::vector<Row>& rows) {
  Bounds out;
  for (size_t before = 0; before <= rows.size(); ++before) {
    uint64_t live = 0;
    std::map<uint32_t, uint64_t> in_flight;
    for (size_t i = 0; i < before; ++i) {
      live += static_cast<uint64_t>(rows[i].bytes);
      const bool is_over = rows[before - 1].time_ns > rows[i].time_ns + kLongestFreeNs;
      const bool is_free = rows[i].bytes < 0 && !is_over;
      in_flight[rows[i].thread] = is_free ? static_cast<uint64_t>(-rows[i].bytes) : 0;
    }
    std::map<uint32_t, bool> seen;
    for (size_t i = before; i < rows.size(); ++i) {
      if (seen[rows[i].thread]) continue;
      seen[rows[i].thread] = true;
      uint64_t& bytes = in_flight[rows[i].thread];
      if (rows[i].bytes > 0) bytes = std::max(bytes, static_cast<uint64_t>(rows[i].bytes));
    }
    out.least = std::max(out.least, live);
    uint64_t most = live;
    for (const auto& [thread, bytes] : in_flight) most += bytes;
    out.most = std::max(out.most, most);
  }
  return out;
}

TEST(HeldBound, OfOneThreadIsThePeak) {
  const Bounds bounds = bounds_of({{7, 100}, {7, 50}, {7, -100}, {7, 90}, {7, -50}, {7, -90}});
  EXPECT_EQ(bounds, (Bounds{150, 150}));
}

TEST(HeldBound, CountsABlockOfAnotherThreadFromThatThreadsEventBefore) {
  // Thread 1 may have had its 40 while thread 2 held 100, though 10 were recorded in between.
  const Bounds bounds = bounds_of({{1, 5}, {2, 100}, {2, -100}, {2, 10}, {1, 40}});
  EXPECT_EQ(bounds, (Bounds{105, 145}));
}

TEST(HeldBound, CountsAFreedBlockUntilTheNextEventOfTheThreadThatFreedIt) {
  const Bounds bounds = bounds_of({{1, 100}, {2, 1}, {1, -100}, {2, 30}, {1, 2}});
  EXPECT_EQ(bounds, (Bounds{101, 131}));
}

TEST(HeldBound, DoesNotAddWhatOneThreadFreesAndThenAllocates) {
  // Between its two events thread 1 holds its 100 or its 90.
  const Bounds bounds = bounds_of({{1, 100}, {2, 7}, {1, -100}, {2, -7}, {2, 7}, {1, 90}});
  EXPECT_EQ(bounds, (Bounds{107, 107}));
}

TEST(HeldBound, TakesAFreeForOverAfterAWhile) {
  const auto second = [](uint64_t ns) {
    return bounds_of({{1, 100}, {2, 1}, {2, -1}, {1, -100}, {2, 30, ns}});
  };
  EXPECT_EQ(second(kLongestFreeNs), (Bounds{101, 130}));
  EXPECT_EQ(second(kLongestFreeNs + 1), (Bounds{101, 130})) << "it may have had its 30 before";
  const auto third = [](uint64_t ns) {
    return bounds_of({{1, 100}, {2, 1}, {1, -100}, {2, 5, ns}, {2, 30, ns}, {1, 7, ns}});
  };
  EXPECT_EQ(third(kLongestFreeNs), (Bounds{101, 136}));
  EXPECT_EQ(third(kLongestFreeNs + 1), (Bounds{101, 106}));
}

TEST(HeldBound, IsThatOfTheDefinitionForAnyOrderOfEvents) {
  std::mt19937 random(5);
  for (int round = 0; round < 800; ++round) {
    const uint64_t pause_ns = round % 2 ? kLongestFreeNs / 4 : 0;
    uint64_t now_ns = 0;
    std::vector<Row> rows;
    std::vector<int64_t> live;
    const uint32_t threads = 1 + random() % 6;
    const size_t count = 1 + random() % 60;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t thread = 10 + random() % threads;
      now_ns += pause_ns == 0 ? 0 : random() % pause_ns;
      if (live.empty() || random() % 2) {
        live.push_back(1 + random() % 1000);
        rows.push_back({thread, live.back(), now_ns});
      } else {
        const size_t which = random() % live.size();
        rows.push_back({thread, -live[which], now_ns});
        live.erase(live.begin() + static_cast<ptrdiff_t>(which));
      }
    }
    ASSERT_EQ(bounds_of(rows), by_definition(rows)) << "round " << round;
  }
}

TEST(HeldBound, OfVeryManyThreadsIsStillABound) {
  std::mt19937 random(6);
  std::vector<Row> rows;
  for (size_t i = 0; i < 600; ++i) {
    const auto bytes = static_cast<int64_t>(1 + random() % 1000);
    const uint32_t thread = random() % 200;
    rows.push_back({thread, bytes});
    rows.push_back({thread, -bytes});
  }
  const Bounds known = by_definition(rows);
  uint32_t threads = 0;
  const Bounds bounds = bounds_of(rows, &threads);
  EXPECT_EQ(bounds.least, known.least);
  EXPECT_GE(bounds.most, known.most);
  EXPECT_GE(threads, 150u);
  EXPECT_LE(threads, 200u);
}

}  // namespace
}  // namespace gpumemprof
