// What every block is, at the peak, over time and at the moments that the program told.
#include "analysis/categories/categories.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "analysis/analysis.h"
#include "analysis/categories/category_sums.h"
#include "analysis/categories/snapshot_rules.h"
#include "analysis/pass/followed_pass.h"
#include "trace/event.h"
#include "trace/label_frames.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

/// Writes what a program does, one call an event or a mark.
class Program {
 public:
  Program() {
    tables.processes.emplace_back();
    tables.threads.push_back({0, 11, "t"});
    tables.devices.push_back(Device{.size_is_requested = true});
  }
  uint32_t stack(const std::vector<std::pair<std::string_view, std::string_view>>& labels) {
    Frame line{tables.strings.intern("/me/train.py"), tables.strings.intern("f"), 7};
    uint32_t stack = tables.stacks.push(0, tables.stacks.intern_frame(line));
    for (const auto& [file, function] : labels) {
      const Frame frame{tables.strings.intern(file), tables.strings.intern(function), 0};
      stack = tables.stacks.push(stack, tables.stacks.intern_frame(frame));
    }
    return stack;
  }
  void alloc(uint64_t address, uint64_t bytes, uint32_t stack) {
    append(&events, {.time_ns = ++time, .address = address, .size_bytes = bytes, .stack = stack});
  }
  void free(uint64_t address) {
    append(&events, {.time_ns = ++time, .action = Action::kFreeCompleted, .address = address});
  }
  void mark(MarkKind kind, uint64_t address = 0, uint64_t value = 0, std::string_view text = {}) {
    events.marks.push_back({static_cast<uint32_t>(events.size()), kind, 0,
                            tables.strings.intern(text), ++time, address, value});
  }
  Analysis analyze(size_t batch_size = 4096) {
    MemorySource source(events, batch_size);
    source.mutable_tables() = tables;
    Analysis analysis = *analyze_source(source, {});
    tables_after = source.tables();
    return analysis;
  }

  Tables tables, tables_after;
  EventBatch events;
  uint64_t time = 1000;
};

std::map<std::string, int64_t> named(const CategoryBytes& bytes) {
  std::map<std::string, int64_t> out;
  for (size_t c = 0; c < kCategories; ++c) {
    if (bytes[c] != 0) out[category_name(static_cast<Category>(c))] = bytes[c];
  }
  return out;
}

/// A parameter, then steps of: data, forward, backward, optimizer.
void train(Program* p, int steps) {
  const uint32_t plain = p->stack({}), linear = p->stack({{kModuleFile, "head"}});
  const uint32_t backward =
      p->stack({{kModeFile, kNoGrad}, {kModuleFile, "head"}, {kBackwardFile, "AddmmBackward0"}});
  p->alloc(1, 100, plain);
  for (int step = 0; step < steps; ++step) {
    p->alloc(2, 10, plain);
    p->mark(MarkKind::kPhaseBegin, 9, 0, "forward");
    p->alloc(3, 40, linear);
    p->mark(MarkKind::kSaved, 3, kSavedIsOutput);
    p->mark(MarkKind::kSaved, 2);
    if (step == 0) {
      p->mark(MarkKind::kRole, 1, static_cast<uint64_t>(StorageRole::kParameter), "head.weight");
    }
    p->mark(MarkKind::kPhaseEnd, 9);
    p->alloc(4, 7, backward);
    p->alloc(5, 100, backward);
    p->free(4), p->free(3);
    p->mark(MarkKind::kStep, 0, static_cast<uint64_t>(step));
    p->free(5), p->free(2);
  }
}

TEST(Categories, AtThePeakAreKnownAlthoughTheyAreToldLater) {
  Program p;
  train(&p, 3);
  const Analysis analysis = p.analyze();
  const DeviceCategories& known = analysis.devices[0].categories;
  ASSERT_TRUE(known.is_known) << known.why_not;
  EXPECT_EQ(analysis.devices[0].figures.peak_bytes, 257u);
  EXPECT_EQ(named(known.bytes_at_peak()), (std::map<std::string, int64_t>{{"parameter", 100},
                                                                          {"input", 10},
                                                                          {"activation", 40},
                                                                          {"gradient", 100},
                                                                          {"temporary", 7}}));
  const CategorySums sums = category_sums(known.at_peak, p.tables_after);
  ASSERT_EQ(sums.modules.size(), 2u);
  EXPECT_EQ(sums.modules[0].name, "head");
  EXPECT_EQ(sums.modules[0].bytes, 247u) << "the parameter by its name";
  EXPECT_EQ(sums.attributed_bytes, 257u) << "data is of a phase";
}

TEST(Categories, ATensorAtTheStartOfADriversSegmentIsTheOneThatIsMeant) {
  Program p;
  p.tables.devices[0] = {.type = 1, .layer = Layer::kDriver, .name = "driver memory"};
  p.tables.devices.push_back({.type = 1, .layer = Layer::kFramework, .size_is_requested = true});
  const uint32_t plain = p.stack({}), linear = p.stack({{kModuleFile, "head"}});
  append(&p.events,
         {.time_ns = ++p.time, .address = 4096, .size_bytes = 2 << 20, .stack = plain});
  append(&p.events, {.time_ns = ++p.time,
                     .address = 4096,
                     .size_bytes = 100,
                     .stack = plain,
                     .device = 1});
  p.mark(MarkKind::kPhaseBegin, 9, 0, "forward");
  append(&p.events, {.time_ns = ++p.time,
                     .address = 8192,
                     .size_bytes = 40,
                     .stack = linear,
                     .device = 1});
  p.mark(MarkKind::kRole, 4096, static_cast<uint64_t>(StorageRole::kParameter), "head.weight");
  p.mark(MarkKind::kSaved, 8192, kSavedIsOutput);
  p.mark(MarkKind::kPhaseEnd, 9);
  const Analysis analysis = p.analyze();
  ASSERT_EQ(analysis.devices.size(), 1u);
  EXPECT_EQ(named(analysis.devices[0].categories.bytes_at_peak()),
            (std::map<std::string, int64_t>{{"parameter", 100}, {"activation", 40}}));
}

/// What was live of a followed device at its peak: bytes by category, and by whom it is known.
std::map<std::string, uint64_t> by_evidence(Program& p, std::vector<RuledBlock> rules) {
  p.tables.devices[0] = {.type = 1, .index = 0, .layer = Layer::kAllocator};
  p.tables.allocators = {{.type = 1, .index = 0, .is_followed = true}};
  auto memory = std::make_unique<MemorySource>(p.events);
  memory->mutable_tables() = p.tables;
  FollowedSource source(std::move(memory), FollowedSource::Sizes::kRequested);
  const FollowedPass pass{.source = &source, .rules = {{0, std::move(rules)}}};
  const Analysis analysis = *analyze_source(source, {}, &pass);
  std::map<std::string, uint64_t> out;
  for (const CategoryHolder& holder : analysis.devices[0].categories.at_peak) {
    const bool is_by_rules = holder.rule != CategoryHolder::kNotByRules;
    out[std::string(category_name(holder.category)) + (is_by_rules ? " by rule" : "")] +=
        holder.bytes;
  }
  return out;
}

TEST(Categories, WhatTheProgramToldGoesBeforeWhatRulesConclude) {
  Program p;
  const uint32_t plain = p.stack({});
  append(&p.events, {.time_ns = ++p.time,
                     .action = Action::kSegmentAlloc,
                     .address = 0,
                     .size_bytes = 1 << 20});
  p.alloc(512, 100, plain);
  p.mark(MarkKind::kRole, 512, static_cast<uint64_t>(StorageRole::kParameter), "head.weight");
  p.alloc(1024, 40, plain);
  p.mark(MarkKind::kStep, 0, 0);
  p.alloc(1536, 7, plain);
  p.mark(MarkKind::kStep, 0, 1);
  p.mark(MarkKind::kStep, 0, 2);
  const auto rule = [](uint64_t address, SnapshotRule rule) {
    return RuledBlock{RuledBlock::place_of(address), static_cast<uint8_t>(rule)};
  };
  using Bytes = std::map<std::string, uint64_t>;
  EXPECT_EQ(by_evidence(p, {}), (Bytes{{"parameter", 100}, {"unknown", 47}}));
  EXPECT_EQ(by_evidence(p, {rule(512, SnapshotRule::kCache),
                            rule(1024, SnapshotRule::kOptimizerKept),
                            rule(1536, SnapshotRule::kNoRule)}),
            (Bytes{{"parameter", 100}, {"optimizer state by rule", 40}, {"unknown", 7}}));
  EXPECT_EQ(by_evidence(p, {rule(512, SnapshotRule::kCache), rule(2048, SnapshotRule::kCache)}),
            (Bytes{{"parameter", 100}, {"unknown", 47}}))
      << "a rule about another block";
}

TEST(Categories, AtMomentsThatTheProgramTellsAreExact) {
  Program p;
  train(&p, 2);
  const Analysis analysis = p.analyze(3);
  ASSERT_EQ(analysis.moments.size(), 6u);
  const auto& at = analysis.devices[0].categories.at_moments;
  ASSERT_EQ(at.size(), 6u);
  EXPECT_EQ(analysis.moments[1].kind, CategoryMoment::kPhaseEnd);
  EXPECT_EQ(p.tables_after.strings.get(analysis.moments[1].text), "forward");
  EXPECT_EQ(named(at[1]), (std::map<std::string, int64_t>{
                              {"parameter", 100}, {"input", 10}, {"activation", 40}}));
  EXPECT_EQ(named(at[5]),
            (std::map<std::string, int64_t>{{"parameter", 100}, {"input", 10}, {"gradient", 100}}));
}

TEST(Categories, OfAProgramThatSaysNothingAreNotKnown) {
  Program p;
  p.alloc(1, 100, p.stack({}));
  const Analysis analysis = p.analyze();
  EXPECT_FALSE(analysis.devices[0].categories.is_known);
  EXPECT_NE(analysis.devices[0].categories.why_not, "");
}

constexpr uint64_t kGradient = static_cast<uint64_t>(StorageRole::kGradient);
constexpr uint64_t kWeight = static_cast<uint64_t>(StorageRole::kParameter);

using Named = std::map<std::string, int64_t>;

/// What is there at each end of a step.
std::vector<Named> at_steps(const Program& p, const Analysis& analysis) {
  std::vector<Named> out;
  for (size_t m = 0; m < analysis.moments.size(); ++m) {
    if (analysis.moments[m].kind != CategoryMoment::kStepEnd) continue;
    out.push_back(named(analysis.devices[0].categories.at_moments[m]));
  }
  EXPECT_TRUE(analysis.devices[0].categories.is_known) << p.time;
  return out;
}

TEST(Categories, OfAnotherBlockAtAnAddressThatALookFindsToHoldAreWhatWasTold) {
  Program p;
  const uint32_t plain = p.stack({});
  for (int step = 0; step < 3; ++step) {
    p.alloc(5, 100, plain);
    if (step == 0) p.mark(MarkKind::kRole, 5, kGradient, "w");
    p.mark(MarkKind::kRole, 0, kRolesHold);
    p.mark(MarkKind::kStep, 0, static_cast<uint64_t>(step));
    p.free(5);
  }
  p.alloc(5, 100, plain);  // no look has seen it
  p.mark(MarkKind::kStep, 0, 3);
  const Named gradient{{"gradient", 100}};
  EXPECT_EQ(at_steps(p, p.analyze(3)),
            (std::vector<Named>{gradient, gradient, gradient, {{"unknown", 100}}}));
}

TEST(Categories, OfABlockThatBecomesSomethingElseChangeThere) {
  Program p;
  const uint32_t plain = p.stack({});
  p.alloc(5, 100, plain);
  p.alloc(6, 7, plain);
  p.mark(MarkKind::kRole, 5, kGradient, "w");
  p.mark(MarkKind::kRole, 0, kRolesHold);
  p.mark(MarkKind::kStep, 0, 0);
  p.alloc(7, 1, plain);
  p.mark(MarkKind::kRole, 5, kNoRole);
  p.mark(MarkKind::kRole, 6, kWeight, "w");
  p.mark(MarkKind::kRole, 0, kRolesHold);
  p.mark(MarkKind::kStep, 0, 1);
  p.alloc(8, 1000, plain);
  const Analysis analysis = p.analyze();
  const std::vector<Named> expected{{{"gradient", 100}, {"unknown", 7}},
                                    {{"parameter", 7}, {"unknown", 101}}};
  EXPECT_EQ(at_steps(p, analysis), expected);
  EXPECT_EQ(named(analysis.devices[0].categories.bytes_at_peak()),
            (Named{{"parameter", 7}, {"unknown", 1101}}));
}

TEST(Categories, OfAPeakBeforeABlockBecameSomethingElseAreThoseOfBefore) {
  Program p;
  const uint32_t plain = p.stack({});
  p.alloc(5, 100, plain);
  p.mark(MarkKind::kRole, 5, kGradient, "w");
  p.mark(MarkKind::kRole, 0, kRolesHold);
  p.mark(MarkKind::kStep, 0, 0);
  p.alloc(8, 1000, plain);
  p.free(8);
  p.mark(MarkKind::kRole, 5, kNoRole);
  p.mark(MarkKind::kRole, 0, kRolesHold);
  p.mark(MarkKind::kStep, 0, 1);
  p.alloc(7, 1, plain);
  const Analysis analysis = p.analyze(2);
  EXPECT_EQ(named(analysis.devices[0].categories.bytes_at_peak()),
            (Named{{"gradient", 100}, {"temporary", 1000}}));
  EXPECT_EQ(at_steps(p, analysis), (std::vector<Named>{{{"gradient", 100}}, {{"unknown", 100}}}));
}

TEST(Categories, WhatTheProgramKeepsToItsEndIsNotTemporary) {
  for (const bool is_told : {true, false}) {
    Program p;
    p.alloc(5, 100, p.stack({}));
    p.mark(MarkKind::kPhaseBegin, 9, 0, "here");
    if (is_told) p.mark(MarkKind::kRole, 0, kProgramEnds);
    p.free(5);
    const Named found = named(p.analyze().devices[0].categories.at_moments[0]);
    EXPECT_EQ(found, (Named{{is_told ? "unknown" : "temporary", 100}}));
  }
}

/// In batches of two events, of which the first has the peak.
TEST(Categories, WhereThePeakHasNoneTheReasonIsWhatWasToldLater) {
  for (const bool is_told_later : {true, false}) {
    Program p;
    for (uint64_t address = 1; address < 4; ++address) {
      p.alloc(address, 100 / address, p.stack({}));
      p.free(address);
    }
    if (is_told_later) p.mark(MarkKind::kPhaseBegin, 9, 0, "here");
    p.alloc(5, 1, p.stack({}));
    p.mark(MarkKind::kRole, 0, kProgramEnds);
    EXPECT_EQ(p.analyze(2).devices[0].categories.why_not,
              is_told_later ? "it was before the first module, phase or tensor role was told"
                            : "the recording has no modules, phases or tensor roles");
  }
}

/// Copies of a weight that is told before or after them, and lives or not when they end.
TEST(Categories, OfCopiesOfAWeightAreTheirOwn) {
  for (const bool is_told_first : {true, false}) {
    for (const bool weight_dies_first : {true, false}) {
      Program p;
      const uint32_t plain = p.stack({}), call = p.stack({{kModuleFile, "head"}});
      p.alloc(1, 64, plain);
      const auto tell = [&] { p.mark(MarkKind::kRole, 1, kWeight, "w"); };
      if (is_told_first) tell();
      p.alloc(2, 64, plain);
      p.mark(MarkKind::kCopied, 2, 1);  // a copy
      p.alloc(3, 128, plain);
      p.mark(MarkKind::kCopied, 3, 2);  // a copy of it, in a wider type
      p.alloc(4, 64, plain);
      p.mark(MarkKind::kCopied, 1, 4);  // what was loaded
      p.alloc(5, 64, call);
      p.mark(MarkKind::kCopied, 5, 1);  // of the call
      p.alloc(6, 50, plain);
      p.mark(MarkKind::kCopied, 6, 1);  // a part, or something else
      p.free(5);
      if (!is_told_first) tell();
      p.mark(MarkKind::kStep, 0, 0);
      if (weight_dies_first) p.free(1);
      for (uint64_t address : {2, 3, 4, 6}) p.free(address);
      p.alloc(7, 1, plain);
      const Named expected{{"parameter", 64}, {"weight copy", 64 + 128 + 64}, {"unknown", 50}};
      EXPECT_EQ(at_steps(p, p.analyze(4)), std::vector<Named>{expected})
          << is_told_first << weight_dies_first;
    }
  }
}

/// Of two blocks of one line, each call of a model makes greater ones; the two of before live until
/// then, or all of them stay.
TEST(Categories, OfWhatGrowsWithEachCallAreACacheUnlessAllOfItIsKept) {
  for (const bool is_kept : {false, true}) {
    Program p;
    const uint32_t plain = p.stack({});
    const uint32_t call = p.stack({{kModeFile, kNoGrad}, {kModuleFile, "head"}});
    for (uint64_t i = 1; i <= 4; ++i) {
      p.alloc(100, 1, plain), p.free(100);
      if (i == 4) p.mark(MarkKind::kStep, 0, 0);
      p.alloc(2 * i, 10 * i, call);
      if (i > 1 && !is_kept) p.free(2 * i - 2);
      p.alloc(2 * i + 1, 10 * i, call);
      if (i > 1 && !is_kept) p.free(2 * i - 1);
    }
    const Named expected =
        is_kept ? Named{{"unknown", 2 * (10 + 20 + 30)}} : Named{{"KV cache", 60}};
    EXPECT_EQ(at_steps(p, p.analyze(3)), std::vector<Named>{expected});
  }
}

/// One line makes three blocks in a call, smaller each time, as the layers of a discriminator do; they
/// live until the next call has made its own.
TEST(Categories, OfCallsThatMakeTheSameBlocksNoneIsACache) {
  Program p;
  const uint32_t plain = p.stack({});
  const uint32_t call = p.stack({{kModeFile, kNoGrad}, {kModuleFile, "ds.0"}});
  for (uint64_t i = 1; i <= 4; ++i) {
    p.alloc(100, 1, plain), p.free(100);
    for (uint64_t layer = 1; layer <= 3; ++layer) p.alloc(10 * i + layer, 40 - 10 * layer, call);
    for (uint64_t layer = 1; layer <= 3 && i > 1; ++layer) p.free(10 * (i - 1) + layer);
  }
  const Analysis analysis = p.analyze();
  EXPECT_EQ(named(analysis.devices[0].categories.bytes_at_peak()), (Named{{"temporary", 2 * 60}}));
}

/// Each call leaves a block of every layer until the next call is over: what the next one reads where
/// they are several, else a result in a variable, as that of the head.
TEST(Categories, WhatSeveralModulesLeaveForTheNextCallIsNotTemporary) {
  for (const uint64_t layers : {2, 3}) {
    Program p;
    const uint32_t plain = p.stack({});
    for (uint64_t i = 1; i <= 4; ++i) {
      p.alloc(100, 1, plain), p.free(100);
      for (uint64_t layer = 0; layer < layers; ++layer) {
        const std::string module = "blocks." + std::to_string(layer);
        p.alloc(10 * i + layer, 80, p.stack({{kModeFile, kNoGrad}, {kModuleFile, module}}));
      }
      p.alloc(10 * i + 9, 40, p.stack({{kModeFile, kNoGrad}, {kModuleFile, "head"}}));
      for (uint64_t layer = 0; layer < layers && i > 1; ++layer) p.free(10 * (i - 1) + layer);
      if (i > 1) p.free(10 * (i - 1) + 9);
    }
    const Named expected = layers == 3 ? Named{{"unknown", 2 * 3 * 80}, {"temporary", 2 * 40}}
                                       : Named{{"temporary", 2 * (2 * 80 + 40)}};
    EXPECT_EQ(named(p.analyze().devices[0].categories.bytes_at_peak()), expected);
  }
}

/// Each call replaces the one block of its line by a larger one; the last is freed when no call follows.
TEST(Categories, TheLastBlockOfACacheIsOneThoughNoCallReplacedIt) {
  Program p;
  const uint32_t plain = p.stack({});
  const uint32_t call = p.stack({{kModeFile, kNoGrad}, {kModuleFile, "head"}});
  for (uint64_t i = 1; i <= 6; ++i) {
    p.alloc(100, 1, plain), p.free(100);
    p.alloc(i, 10 * i, call);
    if (i > 1) p.free(i - 1);
  }
  p.alloc(100, 1, plain), p.free(100);
  p.free(6);
  const Analysis analysis = p.analyze();
  EXPECT_EQ(named(analysis.devices[0].categories.bytes_at_peak()), (Named{{"KV cache", 50 + 60}}));
}

/// Each call replaces the one block of its line by a larger one. The last is freed right after its
/// call's last allocation, or in the call, which allocates again.
TEST(Categories, TheLastBlockOfARequestsCacheIsOneThoughItsCallAllocatedLast) {
  for (const bool call_goes_on : {false, true}) {
    Program p;
    const uint32_t plain = p.stack({});
    const uint32_t cache = p.stack({{kModeFile, kNoGrad}, {kModuleFile, "attention"}});
    const uint32_t head = p.stack({{kModeFile, kNoGrad}, {kModuleFile, "head"}});
    for (uint64_t i = 1; i <= 6; ++i) {
      p.alloc(100, 1, plain), p.free(100);
      p.alloc(i, 10 * i, cache);
      if (i > 1) p.free(i - 1);
      p.alloc(50, 1, head), p.free(50);
    }
    p.free(6);
    p.alloc(100, 1, call_goes_on ? head : plain), p.free(100);
    const Named expected = call_goes_on ? Named{{"KV cache", 50}, {"temporary", 60}}
                                        : Named{{"KV cache", 50 + 60}};
    EXPECT_EQ(named(p.analyze(4).devices[0].categories.bytes_at_peak()), expected);
  }
}

/// Three take turns; each call makes a larger block than its one before. It frees that one itself,
/// as a cache does, or the program does after it, as with the last results.
TEST(Categories, CachesOfSessionsThatTakeTurnsAreCaches) {
  for (const bool frees_in_call : {true, false}) {
    Program p;
    const uint32_t plain = p.stack({});
    const uint32_t cache = p.stack({{kModeFile, kNoGrad}, {kModuleFile, "attention"}});
    const uint32_t head = p.stack({{kModeFile, kNoGrad}, {kModuleFile, "head"}});
    for (uint64_t call = 0; call < 18; ++call) {
      p.alloc(100, 1, plain), p.free(100);
      p.alloc(200 + call, 10 * (1 + call / 3), cache);
      if (call >= 3 && frees_in_call) p.free(200 + call - 3);
      p.alloc(50, 1, head), p.free(50);
      if (call >= 3 && !frees_in_call) p.free(200 + call - 3);
    }
    p.alloc(100, 1, plain), p.free(100);
    p.mark(MarkKind::kStep, 0, 0);
    const Named expected{{frees_in_call ? "KV cache" : "unknown", 3 * 60}};
    EXPECT_EQ(at_steps(p, p.analyze(5)), std::vector<Named>{expected});
  }
}

/// Sums over all categories are what is live, whatever a program does.
TEST(Categories, AddUpToWhatIsLiveAtThePeakAtEachSampleAndAtEachMoment) {
  std::mt19937_64 random(3);
  Program p;
  std::vector<uint32_t> stacks;
  for (const char* mode : {"", "no grad"}) {
    for (const char* node : {"", "AddmmBackward0"}) {
      for (const char* module : {"", "a", "b"}) {
        std::vector<std::pair<std::string_view, std::string_view>> labels;
        if (*mode) labels.push_back({kModeFile, mode});
        if (*module) labels.push_back({kModuleFile, module});
        if (*node) labels.push_back({kBackwardFile, node});
        stacks.push_back(p.stack(labels));
      }
    }
  }
  std::vector<uint64_t> live, unused, sums_at_moments;
  std::map<uint64_t, uint64_t> sizes;
  std::vector<std::pair<uint64_t, uint64_t>> levels;  // time, live bytes from then on
  uint64_t now = 0, next = 1;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t dice = random() % 100;
    p.time += random() % 5000;
    if (dice < 45 || live.empty()) {
      const uint64_t bytes = random() % 1000;
      const bool is_again = !unused.empty() && random() % 2 == 0;
      const uint64_t address = is_again ? unused.back() : next++;
      if (is_again) unused.pop_back();
      p.alloc(address, bytes, stacks[random() % stacks.size()]);
      live.push_back(address), sizes[address] = bytes, now += bytes;
    } else if (dice < 90) {
      std::swap(live[random() % live.size()], live.back());
      p.free(live.back());
      now -= sizes[live.back()];
      unused.push_back(live.back());
      live.pop_back();
    } else if (dice < 97) {
      const uint64_t address = live[random() % live.size()], kind = random() % 8;
      if (kind == 0) {
        p.mark(MarkKind::kRole, 0, kRolesHold);
      } else if (kind == 1) {
        p.mark(MarkKind::kCopied, address, live[random() % live.size()]);
      } else {
        p.mark(kind < 4 ? MarkKind::kRole : MarkKind::kSaved, address, random() % 6, "w");
      }
    } else {
      p.mark(MarkKind::kStep, 0, 1);
      sums_at_moments.push_back(now);
    }
    if (dice < 90) levels.emplace_back(p.time, now);
  }
  for (const size_t batch_size : {size_t{77}, size_t{100'000}}) {
    const Analysis analysis = p.analyze(batch_size);
    const DeviceCategories& known = analysis.devices[0].categories;
    EXPECT_TRUE(known.is_known) << known.why_not;
    const auto sum = [](const CategoryBytes& bytes) {
      return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
    };
    EXPECT_EQ(sum(known.bytes_at_peak()),
              static_cast<int64_t>(analysis.devices[0].figures.peak_bytes));
    ASSERT_EQ(known.at_moments.size(), sums_at_moments.size());
    for (size_t m = 0; m < sums_at_moments.size(); ++m) {
      EXPECT_EQ(sum(known.at_moments[m]), static_cast<int64_t>(sums_at_moments[m])) << m;
    }
    size_t at = 0;
    uint64_t level = 0;
    for (size_t k = 0; k < known.timeline.size(); ++k) {
      const uint64_t time = known.start_ns + k * known.sample_ns;
      for (; at < levels.size() && levels[at].first <= time; ++at) level = levels[at].second;
      EXPECT_EQ(sum(known.timeline[k]), static_cast<int64_t>(level)) << "sample " << k;
    }
  }
}

/// Looks at threads and devices, of marks that come after `p`'s events.
uint64_t looks_of(const Program& p) {
  Categories categories(p.tables);
  categories.begin_batch(p.events, LiveState());
  for (size_t i = 0; i < p.events.size(); ++i) {
    categories.on_alloc(i, p.events.device[i], DeviceState());
  }
  categories.end_batch();
  return categories.look_count();
}

TEST(Categories, AStepsEndLooksAtTheThreadsThatHaveWorkedSinceTheLastOne) {
  constexpr uint32_t kThreads = 3000, kSteps = 3000;
  Program p;
  p.tables.threads.resize(kThreads, {0, 11, "t"});
  const uint32_t stack = p.stack({{kModuleFile, "head"}});
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    p.alloc(1 + thread, 8, stack);
    p.events.thread.back() = thread;
  }
  for (uint32_t step = 0; step < kSteps; ++step) p.mark(MarkKind::kStep, 0, step);
  EXPECT_EQ(looks_of(p), kThreads) << "once for each, not in every step";
}

TEST(Categories, WhatIsToldOfAStorageLooksAtTheDevicesOfItsProcess) {
  constexpr uint32_t kProcesses = 1000, kMarks = 5000;
  Program p;
  p.tables.processes.resize(kProcesses);
  p.tables.devices.assign(kProcesses, {});
  for (uint32_t i = 0; i < kProcesses; ++i) p.tables.devices[i].process = i;
  const uint32_t stack = p.stack({{kModuleFile, "head"}});
  for (uint32_t i = 0; i < kProcesses; ++i) {
    p.alloc(1 + i, 8, stack);
    p.events.device.back() = static_cast<uint16_t>(i);
  }
  for (uint32_t i = 0; i < kMarks; ++i) p.mark(MarkKind::kSaved, 1, 0);
  EXPECT_EQ(looks_of(p), kMarks) << "the thread's process has one device";
}

}  // namespace
}  // namespace gpumemprof
