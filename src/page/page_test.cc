// The parts of the page's data, each against arithmetic or a plain model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "page/address_space.h"
#include "page/columns.h"
#include "page/filter.h"
#include "page/held_tree.h"
#include "page/keeper_for_tests.h"
#include "page/key_levels.h"
#include "page/level_forest.h"
#include "page/packed_column.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

TEST(Columns, AnswerIsHeaderAndAlignedArrays) {
  Columns columns;
  columns.add("a", std::vector<uint8_t>{1, 2, 3});
  columns.add("b", std::vector<uint32_t>{7});
  columns.add("c", std::vector<uint64_t>{(uint64_t{1} << 53) + 2, 5});
  const std::string answer = columns.finish({{"name", "<b>\xff"}});
  ASSERT_EQ(answer.substr(0, 4), "GMPC");
  uint32_t length = 0;
  std::memcpy(&length, answer.data() + 4, 4);
  const auto header = nlohmann::json::parse(answer.substr(8, length));
  EXPECT_EQ(header["name"], "<b>\uFFFD");
  EXPECT_EQ(header["clamped"], 1);
  const auto& told = header["columns"];
  EXPECT_EQ(told["b"]["offset"], told["a"]["offset"].get<size_t>() + 8);
  uint32_t seven = 0;
  std::memcpy(&seven, answer.data() + told["b"]["offset"].get<size_t>(), 4);
  EXPECT_EQ(seven, 7u);
  double clamped[2];
  std::memcpy(clamped, answer.data() + told["c"]["offset"].get<size_t>(), 16);
  EXPECT_EQ(clamped[0], 9007199254740992.0);
  EXPECT_EQ(clamped[1], 5.0);
  EXPECT_EQ(answer.size() % 8, 0u);
}

TEST(PackedColumn, KeepsAnyNumbers) {
  std::mt19937_64 dice(1);
  PackedColumn<uint64_t> column;
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < 200'500; ++i) {
    // Each chunk has a width and a number of zero bits of its own, up to all 64 bits.
    const size_t chunk = i / 1024;
    const uint64_t least = chunk * 0x123456789, range = dice() >> (chunk % 64);
    numbers.push_back(chunk % 3 == 0 ? least : least + (range << (chunk % 13)));
    column.push_back(numbers.back());
  }
  ASSERT_EQ(column.size(), numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(column[i], numbers[i]) << i;
}

TEST(PackedColumn, FindsItsPlaceAmongNumbersThatAscend) {
  std::mt19937_64 dice(1);
  PackedColumn<uint32_t> column;
  std::vector<uint32_t> numbers;
  for (size_t i = 0; i < 5000; ++i) {
    numbers.push_back((numbers.empty() ? 0 : numbers.back()) + static_cast<uint32_t>(dice() % 3));
    column.push_back(numbers.back());
  }
  for (uint32_t n = 0; n < numbers.back() + 2; ++n) {
    ASSERT_EQ(column.lower_bound(n), static_cast<size_t>(std::ranges::lower_bound(numbers, n) - numbers.begin()));
    ASSERT_EQ(column.upper_bound(n), static_cast<size_t>(std::ranges::upper_bound(numbers, n) - numbers.begin()));
  }
}

TEST(LevelForest, RangesAreThoseOfAWalk) {
  std::mt19937_64 dice(2);
  for (const uint32_t size : {1u, 31u, 32u, 33u, 64u, 1000u, 4097u}) {
    std::vector<uint64_t> levels;
    LevelForest forest;
    for (uint32_t i = 0; i < size; ++i) {
      levels.push_back(dice() % 50);
      forest.add(levels.back());
    }
    forest.finish();
    const auto step = [&](uint32_t m) { return levels[m] - (m == 0 ? 0 : levels[m - 1]); };
    for (uint64_t level = 0; level <= 50; ++level) {
      const auto first = std::ranges::find(levels, level);
      EXPECT_EQ(forest.first_with(level, step), first - levels.begin());
    }
    for (int n = 0; n < 200; ++n) {
      const auto from = static_cast<uint32_t>(dice() % size);
      const auto to = static_cast<uint32_t>(from + 1 + dice() % (size - from));
      const LevelForest::Range range = forest.range(from, to, step);
      const auto begin = levels.begin() + from, end = levels.begin() + to;
      EXPECT_EQ(range.least, *std::min_element(begin, end));
      EXPECT_EQ(range.most, *std::max_element(begin, end));
      EXPECT_EQ(range.most_at, std::max_element(begin, end) - levels.begin());
      EXPECT_EQ(forest.at(to - 1, step), levels[to - 1]);
    }
  }
}

/// Random allocations and frees, a free that was missed now and then.
EventBatch random_events(size_t count, std::mt19937_64* dice) {
  EventBatch events;
  std::vector<uint64_t> live;
  for (size_t i = 0; i < count; ++i) {
    const bool frees = !live.empty() && (*dice)() % 100 < 49;
    if (frees) {
      const size_t which = (*dice)() % live.size();
      append(&events, {.time_ns = i, .action = Action::kFreeCompleted, .address = live[which]});
      live.erase(live.begin() + static_cast<ptrdiff_t>(which));
      continue;
    }
    const uint64_t address = (*dice)() % 50 == 0 && !live.empty() ? live[0] : 4096 * (i + 1);
    append(&events, {.time_ns = i,
                     .address = address,
                     .size_bytes = 1 + (*dice)() % 1000,
                     .stack = static_cast<uint32_t>((*dice)() % 40)});
    if (std::ranges::find(live, address) == live.end()) live.push_back(address);
  }
  return events;
}

void compare_with_a_plain_model(uint32_t stacks) {
  std::mt19937_64 dice(3);
  EventBatch events = random_events(3000, &dice);
  for (uint32_t& stack : events.stack) stack %= stacks;
  MemorySource source(events, 100);
  for (int s = 1; s < 40; ++s) {
    Tables& tables = source.mutable_tables();
    const uint32_t file = tables.strings.intern("/job/a.py");
    tables.stacks.push(0, tables.stacks.intern_frame({file, file, static_cast<uint32_t>(s)}));
  }
  Keeper keeper;
  take_all(&source, &keeper);
  const auto kept = keeper.finish();
  ASSERT_EQ(kept.size(), 1u);
  const BlockTable& table = *kept[0];
  ASSERT_EQ(table.moments(), 3001u);

  // By address: size and stack.
  std::map<uint64_t, std::pair<uint64_t, uint32_t>> live;
  std::vector<std::map<uint32_t, uint64_t>> held{{}};
  for (size_t i = 0; i < events.size(); ++i) {
    if (events.action[i] == Action::kAlloc)
      live[events.address[i]] = {events.size_bytes[i], events.stack[i]};
    else
      live.erase(events.address[i]);
    held.emplace_back();
    for (const auto& [address, block] : live) held.back()[block.second] += block.first;
  }
  const KeyLevels levels(table, BlockKeys(table, source.tables(), 0, Dimension::kStack), nullptr);
  ASSERT_EQ(levels.keys().size(), std::min(stacks, KeyLevels::kMostKeys + 1));
  ASSERT_EQ(levels.has_other(), stacks > KeyLevels::kMostKeys);
  EXPECT_EQ(levels.others(), levels.has_other() ? stacks - KeyLevels::kMostKeys : 0);
  const size_t shown = levels.keys().size() - levels.has_other();
  for (size_t k = 0; k < shown; ++k) {
    uint64_t most = 0;
    for (const auto& at : held) {
      const auto of = at.find(static_cast<uint32_t>(std::stoul(levels.keys()[k].id)));
      if (of != at.end()) most = std::max(most, of->second);
    }
    EXPECT_EQ(levels.keys()[k].most_bytes, most);
    if (k > 0) { EXPECT_LE(most, levels.keys()[k - 1].most_bytes); }
  }
  std::vector<uint32_t> moments(table.moments());
  for (uint32_t m = 0; m < moments.size(); ++m) moments[m] = m;
  const auto rows = levels.values(moments);
  for (const uint32_t m : moments) {
    uint64_t total = 0, named = 0;
    for (const auto& [stack, bytes] : held[m]) total += bytes;
    for (size_t k = 0; k < shown; ++k) {
      const auto at = held[m].find(static_cast<uint32_t>(std::stoul(levels.keys()[k].id)));
      ASSERT_EQ(rows[k][m], at == held[m].end() ? 0 : at->second) << m;
      named += rows[k][m];
    }
    ASSERT_EQ(levels.has_other() ? rows.back()[m] : 0, total - named);
    ASSERT_EQ(levels.at(m), total);
    ASSERT_EQ(table.level_at(m), total);
    uint64_t walked = 0;
    table.each_live(m, [&](uint32_t block) { walked += table.size_bytes[block]; });
    ASSERT_EQ(walked, total);
  }
  // Single moments, each from its own nearest kept one.
  for (const uint32_t m : {0u, 1u, 255u, 256u, 777u, 3000u}) {
    const uint32_t one[] = {m};
    const auto alone = levels.values(one);
    for (size_t k = 0; k < rows.size(); ++k) EXPECT_EQ(alone[k][0], rows[k][m]);
  }
}

TEST(KeyLevels, EachMomentIsThatOfAPlainModel) { compare_with_a_plain_model(40); }
TEST(KeyLevels, SoItIsWhereAllKeysAreShown) { compare_with_a_plain_model(11); }

TEST(Keeper, WhatAFilterTakesAndLeavesIsAll) {
  std::mt19937_64 dice(4);
  MemorySource source(random_events(2000, &dice), 64);
  Keeper keeper;
  take_all(&source, &keeper);
  const auto kept = keeper.finish();
  const BlockTable& table = *kept[0];
  const auto some = Filter::parse("bytes>500")->taken(table, source.tables(), 0);
  const auto others = Filter::parse("not bytes>500")->taken(table, source.tables(), 0);
  const auto keys = [&] { return BlockKeys(table, source.tables(), 0, Dimension::kNone); };
  const KeyLevels all(table, keys(), nullptr), a(table, keys(), &some), b(table, keys(), &others);
  for (uint32_t m = 0; m < table.moments(); ++m) ASSERT_EQ(a.at(m) + b.at(m), all.at(m));
}

TEST(AddressSpace, MappedNeighboursAreOneAndMayBeCut) {
  AddressSpace space;
  space.apply({.action = Action::kSegmentMap, .address = 100, .size_bytes = 50});
  space.apply({.action = Action::kSegmentMap, .address = 150, .size_bytes = 50});
  space.apply({.action = Action::kSegmentAlloc, .address = 200, .size_bytes = 10});
  ASSERT_EQ(space.ranges().size(), 2u);
  EXPECT_EQ(space.ranges().at(100).size_bytes, 100u);
  const SegmentChange cut{.action = Action::kSegmentUnmap, .address = 120, .size_bytes = 10};
  space.apply(cut);
  ASSERT_EQ(space.ranges().size(), 3u);
  EXPECT_EQ(space.ranges().at(100).size_bytes, 20u);
  EXPECT_EQ(space.ranges().at(130).size_bytes, 70u);
  space.undo(cut);
  EXPECT_EQ(space.ranges().at(100).size_bytes, 100u);
  space.add(UINT64_MAX - 5, {.size_bytes = 10});  // beyond the last address
  EXPECT_EQ(space.ranges().size(), 2u);
}

TEST(FrameKind, WhatIsNoLineIsNoCodeOfYours) {
  EXPECT_STREQ(frame_kind("/job/train.py", 3), "user");
  EXPECT_STREQ(frame_kind("<stdin>", 1), "user");
  EXPECT_STREQ(frame_kind("/usr/lib/python3/dist-packages/torch/nn/functional.py", 7), "library");
  EXPECT_STREQ(frame_kind("??", 0), "native");
  for (const char* label : {"<torch module>", "<torch mode>", "<torch backward>", "<phase>",
                            "<layer>", "<tensorflow>", "<tensorflow internal>", "<tensorflow layer>",
                            "<tensorflow variable>", "<tensorflow XLA cluster>",
                            "<tensorflow tensor>", "<file map>", "<driver>"})
    EXPECT_STREQ(frame_kind(label, 0), "label") << label;
}

TEST(Filter, ABadOneSaysWhere) {
  const auto at = [](std::string_view text) {
    const auto filter = Filter::parse(text);
    return filter ? SIZE_MAX : filter.error().at;
  };
  EXPECT_EQ(at("conv bytes>many"), 11u);
  EXPECT_EQ(at("a \"open"), 2u);
  EXPECT_EQ(at("a not"), 5u);
  EXPECT_EQ(at("not not a"), 4u);
  EXPECT_EQ(at("category:nothing"), 9u);
  EXPECT_EQ(at("/(/"), 0u);
  EXPECT_EQ(at("/a/b.py /x/"), SIZE_MAX);
  EXPECT_TRUE(Filter::parse("  ")->takes_all());
}

TEST(Filter, WhatLivedTakesIsSaid) {
  const auto refused = Filter::parse("conv lived>2hours");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().at, 11u);
  EXPECT_EQ(refused.error().message,
            "\"lived>2hours\": lived takes a number of events or of steps, as in \"lived>100\" and "
            "\"lived>2steps\"; it knows no times");
  EXPECT_EQ(Filter::parse("lived>steps").error().at, 6u);
  EXPECT_EQ(Filter::parse("lived>2")->steps_at(), std::nullopt);
  EXPECT_EQ(Filter::parse("conv lived>=1step lived<9steps")->steps_at(), 5u);
}

TEST(Filter, ALifetimeInStepsIsTheEndsOfStepsAtWhichABlockLives) {
  constexpr std::pair<uint32_t, uint32_t> kLives[] = {{0, kNone}, {1, 4}, {3, 5},
                                                      {4, 5},     {5, 7}, {7, 10}};
  BlockTable table;
  for (const auto& [start, end] : kLives) {
    table.size_bytes.push_back(1), table.stack.push_back(0);
    table.start.push_back(start), table.end.push_back(end);
  }
  for (uint32_t moment = 0; moment <= 10; ++moment) table.changes.push_back(0);
  // Between two ends nothing may happen: 6 twice. 0, with four, lives on after the last one.
  const std::vector<uint32_t> step_ends = {3, 6, 6, 10};
  const auto taken = [&](std::string_view text) {
    std::vector<uint32_t> out;
    const auto all = Filter::parse(text)->taken(table, Tables(), 0, step_ends);
    for (uint32_t b = 0; b < all.size(); ++b) {
      if (all[b]) out.push_back(b);
    }
    return out;
  };
  using Blocks = std::vector<uint32_t>;
  EXPECT_EQ(taken("lived>2steps"), Blocks({0}));
  EXPECT_EQ(taken("lived=4steps"), Blocks({0}));
  EXPECT_EQ(taken("lived>=1step"), Blocks({0, 1, 2, 4}));
  EXPECT_EQ(taken("lived=2steps"), Blocks({4}));
  EXPECT_EQ(taken("not lived>0steps"), Blocks({3, 5}));
  EXPECT_EQ(taken("lived>2"), Blocks({0, 1, 5}));
}

TEST(Filter, AMistypedFieldIsNamed) {
  const auto said = [](std::string_view text) {
    const auto filter = Filter::parse(text);
    return filter ? std::string() : filter.error().message;
  };
  EXPECT_EQ(said("conv catgory:activation"),
            "\"catgory:\" is no field of a filter; did you mean \"category:\"? In quotes the word is "
            "searched as text");
  EXPECT_EQ(Filter::parse("conv catgory:activation").error().at, 5u);
  const auto is_meant = [&](std::string_view text, const std::string& field) {
    return said(text).contains("did you mean \"" + field + "\"?");
  };
  EXPECT_TRUE(is_meant("byte>10MiB", "bytes>"));
  EXPECT_TRUE(is_meant("bytes:10MiB", "bytes>"));
  EXPECT_TRUE(is_meant("size>=1MiB", "bytes>"));
  EXPECT_TRUE(is_meant("live<3", "lived>"));
  EXPECT_TRUE(is_meant("Category=activation", "category:"));
  EXPECT_TRUE(is_meant("catgory:\"optimizer state\"", "category:"));
  // Of frames: scopes of C++, places of files, operators.
  for (const char* text : {"torch::nn", "Module::call", "train.py:12", "a=b", "ctx->saved", "lines",
                           "\"catgory:activation\"", "/catgory:a/"})
    EXPECT_EQ(said(text), "") << text;
}

}  // namespace
}  // namespace gpumemprof
