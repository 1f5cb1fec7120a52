#include "probe/scopes.h"

#include <algorithm>
#include <random>
#include <vector>

#include "probe/scopes_for_tests.h"

namespace gpumemprof::probe {
namespace {

TEST_F(Scopes, MadeAndDroppedBytesAreInThePeakAndKeptOnesInTheEnd) {
  make(5000);
  uint64_t id = begin();
  drop(make(64 << 20));
  make(1024);
  Result r = end(id);
  EXPECT_EQ(r.start_live_bytes, 5000u);
  EXPECT_EQ(r.peak_live_bytes - r.start_live_bytes, 64u << 20);
  EXPECT_EQ(r.end_live_bytes, 6024u);
  EXPECT_EQ(r.own_peak_bytes, 64 << 20);
  EXPECT_EQ(r.own_alloc_count, 2u);
  EXPECT_EQ(r.own_free_count, 1u);
  EXPECT_EQ(r.own_alloc_bytes, (64u << 20) + 1024);
  EXPECT_EQ(r.own_free_bytes, 64u << 20);
}

TEST_F(Scopes, AnInnerScopeChangesNothingOfTheOuterOne) {
  uint64_t outer = begin();
  uint64_t a = make(1000);
  uint64_t inner = begin();
  drop(make(10));
  drop(a);
  Result in = end(inner);
  make(50);
  Result out = end(outer);
  EXPECT_EQ(in.start_live_bytes, 1000u);
  EXPECT_EQ(in.peak_live_bytes, 1010u);
  EXPECT_EQ(in.own_peak_bytes, 10);
  EXPECT_EQ(in.own_free_bytes, 10u);  // not the 1000: the outer one made them
  EXPECT_EQ(out.peak_live_bytes, 1010u);
  EXPECT_EQ(out.own_peak_bytes, 1010);
  EXPECT_EQ(out.own_alloc_count, 3u);
  EXPECT_EQ(out.own_free_count, 2u);
  EXPECT_EQ(out.end_live_bytes, 50u);
}

TEST_F(Scopes, BlocksOfAnEndedInnerScopeAreStillTheOuterOnesWhenTheyAreFreed) {
  uint64_t outer = begin(), inner = begin();
  uint64_t a = make(700);
  EXPECT_EQ(end(inner).own_free_count, 0u);
  uint64_t other = begin();  // may have the record of `inner`
  drop(a);
  EXPECT_EQ(end(other).own_free_count, 0u);
  Result r = end(outer);
  EXPECT_EQ(r.own_free_count, 1u);
  EXPECT_EQ(r.own_free_bytes, 700u);
}

TEST_F(Scopes, TheyMayEndInAnyOrder) {
  uint64_t a = begin();
  drop(make(100));
  uint64_t b = begin();
  drop(make(10));
  uint64_t c = begin();
  drop(make(20));
  EXPECT_EQ(end(b).own_peak_bytes, 20);
  drop(make(30));
  Result first = end(a), last = end(c);
  EXPECT_EQ(first.peak_live_bytes, 100u);
  EXPECT_EQ(first.own_alloc_count, 4u);
  EXPECT_EQ(last.peak_live_bytes, 30u);
  EXPECT_EQ(last.own_alloc_count, 2u);
}

TEST_F(Scopes, WhatASuspendedScopesThreadDoesIsNotItsOwn) {
  uint64_t id = begin();
  make(1);
  switch_scope_out(id);
  uint64_t between = make(10);
  switch_scope_out(id);  // once more: nothing
  switch_scope_in(id);
  switch_scope_in(id);
  make(100);
  drop(between);
  Result r = end(id);
  EXPECT_EQ(r.own_alloc_bytes, 101u);
  EXPECT_EQ(r.own_free_count, 0u);
  EXPECT_EQ(r.peak_live_bytes, 111u);
}

TEST_F(Scopes, AGeneratorsScopeGoesOnInsideWhoeverResumesIt) {
  uint64_t generator = begin();
  make(1);
  switch_scope_out(generator);
  uint64_t caller = begin();
  switch_scope_in(generator);
  uint64_t a = make(10);
  switch_scope_out(generator);
  make(100);
  drop(a);
  Result outer = end(caller), inner = end(generator);
  EXPECT_EQ(outer.own_alloc_bytes, 110u);
  EXPECT_EQ(outer.own_free_bytes, 10u);
  EXPECT_EQ(inner.own_alloc_bytes, 11u);
  EXPECT_EQ(inner.own_free_bytes, 10u);
}

TEST_F(Scopes, AThousandDeepRecursionCountsInEveryScope) {
  std::vector<uint64_t> ids, blocks;
  for (int i = 0; i < 1000; ++i) {
    ids.push_back(begin());
    blocks.push_back(make(1));
  }
  for (uint64_t b : blocks) drop(b);
  for (int i = 999; i >= 0; --i) {
    Result r = end(ids[i]);
    ASSERT_EQ(r.own_alloc_count, 1000u - i);
    ASSERT_EQ(r.own_free_count, 1000u - i);
    ASSERT_EQ(r.own_peak_bytes, 1000 - i);
    ASSERT_EQ(r.peak_live_bytes, 1000u);
  }
}

TEST_F(Scopes, TheLastScopesPeakIsTheHighestOfAllThatWereOpenMeanwhile) {
  // One thread; scopes begin and end in random order. A model keeps every scope's own maximum.
  struct Open {
    uint64_t id;
    uint64_t peak;
    int64_t own, own_peak;
  };
  std::mt19937_64 random(7);
  std::vector<Open> open;
  std::vector<std::pair<uint64_t, uint64_t>> blocks;  // address, size; all since the first scope
  uint64_t live = 0;
  for (int i = 0; i < 100000; ++i) {
    uint64_t what = random() % 10;
    if (what == 0 && open.size() < 50) {
      open.push_back({begin(), live, 0, 0});
    } else if (what == 1 && !open.empty()) {
      auto it = open.begin() + random() % open.size();
      Result r = end(it->id);
      ASSERT_EQ(r.peak_live_bytes, it->peak);
      ASSERT_EQ(r.end_live_bytes, live);
      open.erase(it);
    } else if (what < 6 || blocks.empty()) {
      uint64_t size = random() % 100000 + 1;
      blocks.push_back({make(size), size});
      live += size;
      for (Open& o : open) o.peak = std::max(o.peak, live);
    } else {
      auto it = blocks.begin() + random() % blocks.size();
      drop(it->first);
      live -= it->second;
      *it = blocks.back();
      blocks.pop_back();
    }
  }
}

TEST_F(Scopes, WrongIdsAreRefused) {
  Result r;
  uint64_t id = begin();
  EXPECT_EQ(end_scope(0, &r), 0);
  EXPECT_EQ(end_scope(id + 1, &r), 0);
  EXPECT_EQ(end_scope(id + (uint64_t{1} << 32), &r), 0);
  EXPECT_EQ(end_scope(~uint64_t{0}, &r), 0);
  switch_scope_in(~uint64_t{0});
  switch_scope_out(12345);
  end(id);
  r.own_alloc_count = 77;
  EXPECT_EQ(end_scope(id, &r), 0);
  EXPECT_EQ(r.own_alloc_count, 0u);
  switch_scope_in(id);
}

TEST_F(Scopes, ScopesOfOtherDevicesCountTheirOwnDeviceAlone) {
  Device other{51, device_.index};
  uint64_t a = begin(), b = begin_scope(other, nullptr);
  make(10);
  count_alloc(0x31000000000 + uint64_t(device_.index) * 64, 500, other);
  Result second;
  EXPECT_EQ(end_scope(b, &second), GPUMEMPROF_SCOPE_OK);
  Result first = end(a);
  EXPECT_EQ(first.own_alloc_bytes, 10u);
  EXPECT_EQ(second.own_alloc_bytes, 500u);
  EXPECT_EQ(second.peak_live_bytes, 500u);
}

TEST_F(Scopes, WithoutAnInterpreterAContextFallsBackToTheThreadAndSaysSo) {
  uint64_t id = begin_scope(device_, GPUMEMPROF_CURRENT_CONTEXT);
  make(10);
  Result r;
  EXPECT_EQ(end_scope(id, &r), GPUMEMPROF_SCOPE_OK | GPUMEMPROF_SCOPE_THREAD_ONLY);
  EXPECT_EQ(r.own_alloc_bytes, 10u);
}

TEST_F(Scopes, AMillionCallsUseTheSameRecords) {
  uint64_t outer = begin();
  auto count = [] { return g_control->scope_pool.fresh + g_control->holder_pool.fresh; };
  uint64_t id = begin();
  drop(make(1));
  end(id);
  uint32_t before = count();
  for (int i = 0; i < 1000000; ++i) {
    id = begin();
    if (i % 2) drop(make(1));
    end(id);
  }
  EXPECT_EQ(count(), before);
  Result r = end(outer);
  EXPECT_EQ(r.own_alloc_count, 500001u);
  EXPECT_EQ(r.own_free_count, 500001u);
  EXPECT_EQ(r.own_peak_bytes, 1);
}

}  // namespace
}  // namespace gpumemprof::probe
