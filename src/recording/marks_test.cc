// What is said between events: read where it was said, sealed or not, merged, dropped, damaged.
#include <gtest/gtest.h>

#include <random>

#include "format/format.h"
#include "recording/fake_probe.h"
#include "recording/file_sealer.h"
#include "recording/seal.h"
#include "recording/sealed_marks.h"
#include "recording/standing_marks.h"
#include "recording/test_reading.h"
#include "trace/event.h"

namespace gpumemprof {
namespace {

using namespace for_tests;
using namespace format;

/// The frames of the one allocation of a stack, the innermost first.
std::vector<std::string> stack_of(const std::string& path, size_t event) {
  auto source = std::move(*open_recording({path}));
  EventBatch batch;
  EXPECT_TRUE(*source->next(&batch));
  return stack_lines(source->tables(), batch.stack[event]);
}

EventBatch random_batch(std::mt19937_64* random, size_t events, size_t marks) {
  EventBatch batch;
  for (size_t i = 0; i < events; ++i) {
    batch.time_ns.push_back(1000 + 50 * i);
    batch.action.push_back((*random)() % 2 ? Action::kAlloc : Action::kFreeCompleted);
    batch.address.push_back(64 * ((*random)() % 40 + 1));
  }
  for (size_t i = 0; i < marks; ++i) {
    Mark mark;
    mark.before_event = static_cast<uint32_t>((*random)() % (events + 1));
    mark.kind = static_cast<MarkKind>((*random)() % 7 + 1);
    mark.thread = (*random)() % 3;
    mark.text = static_cast<uint32_t>((*random)() % 50);
    mark.address = (*random)() % 4 ? 64 * ((*random)() % 60) : (*random)() >> 8;
    mark.value = (*random)() % 3 ? (*random)() % 4 : (*random)();
    batch.marks.push_back(mark);
  }
  std::stable_sort(batch.marks.begin(), batch.marks.end(),
                   [](const Mark& a, const Mark& b) { return a.before_event < b.before_event; });
  for (Mark& mark : batch.marks) {
    const uint64_t before = mark.before_event == 0 || events == 0
                                ? (events == 0 ? 0 : 1000)
                                : 1000 + 50 * (mark.before_event - 1);
    mark.time_ns = mark.kind == MarkKind::kSaved ? before : before + (*random)() % 50;
  }
  return batch;
}

TEST(Marks, OfAnyKindComeBackAsTheyWere) {
  std::mt19937_64 random(1);
  for (size_t events : {0, 1, 7, 500}) {
    EventBatch batch = random_batch(&random, events, 300);
    const std::string payload = encode_marks(batch);
    const std::vector<Mark> expected = std::exchange(batch.marks, {});
    ASSERT_TRUE(parse_marks(payload, &batch));
    EXPECT_EQ(batch.marks, expected);
    auto modules = parse_marks_alone(payload, MarkKind::kModule);
    ASSERT_TRUE(modules);
    size_t next = 0;
    for (const Mark& mark : expected) {
      if (mark.kind != MarkKind::kModule) continue;
      EXPECT_EQ((*modules)[next].text, mark.text);
      EXPECT_EQ((*modules)[next++].time_ns, mark.time_ns);
    }
    EXPECT_EQ(next, modules->size());
  }
}

TEST(Marks, CutAtAnyByteOrWithAnyFlippedOneAreRefusedOrWithinTheirEvents) {
  std::mt19937_64 random(2);
  EventBatch batch = random_batch(&random, 40, 60);
  const std::string payload = encode_marks(batch);
  batch.marks.clear();
  const auto try_one = [&](const std::string& text) {
    EventBatch read = batch;
    const bool done = parse_marks(text, &read).has_value();
    uint32_t last = 0;
    for (const Mark& mark : read.marks) {
      ASSERT_LE(mark.before_event, batch.size());
      ASSERT_GE(mark.before_event, last);
      last = mark.before_event;
    }
    ASSERT_TRUE(done || read.marks.empty());
  };
  for (size_t size = 0; size < payload.size(); ++size) {
    EventBatch read = batch;
    EXPECT_FALSE(parse_marks(payload.substr(0, size), &read)) << size;
  }
  for (size_t at = 0; at < payload.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = payload;
      text[at] = static_cast<char>(text[at] ^ 1 << bit);
      try_one(text);
    }
  }
}

/// 200 steps of four layers, as a training loop says them: 8 allocations, 5 saved tensors and a
/// step.
TEST(Marks, OfATrainingLoopCostLessThanAByteForEachOfItsEvents) {
  EventBatch batch;
  for (uint64_t step = 0; step < 200; ++step) {
    for (uint64_t i = 0; i < 16; ++i) {
      batch.time_ns.push_back(1000 * step + 50 * i);
      batch.action.push_back(i < 8 ? Action::kAlloc : Action::kFreeCompleted);
      batch.address.push_back(64 * (i % 8) + 4096 * (step % 3 + 1));
      if (i >= 5) continue;
      batch.marks.push_back({static_cast<uint32_t>(batch.size()), MarkKind::kSaved, 0, 0,
                             batch.time_ns.back(), i == 4 ? 0x90000 : batch.address.back(), i % 3});
    }
    batch.marks.push_back(
        {static_cast<uint32_t>(batch.size()), MarkKind::kStep, 0, 0, 1000 * step + 900, 0, step});
  }
  EXPECT_LT(encode_marks(batch).size(), batch.size());
}

class MarksInFile : public ::testing::Test {
 protected:
  EverythingRead raw() {
    EXPECT_EQ(probe.save(path), 0);
    return read_all({path});
  }
  EverythingRead sealed() {
    EXPECT_EQ(probe.save(path), 0);
    EXPECT_TRUE(FolderSealer(folder.path(), {}).finish());
    return read_all({path});
  }
  void SetUp() override { probe.write_as_dead_process(); }

  FakeProbe probe{0x1234, 100, 16};
  TempFolder folder;
  std::string path = folder.file("a.gmp");
};

TEST_F(MarksInFile, StandBetweenTheEventsWhereTheyWereSaidRawAndSealed) {
  auto& thread = probe.start_thread(11, "t");
  std::vector<ReadMark> expected;
  const uint32_t name = probe.define_text(&thread, "encoder.0.weight");
  for (uint64_t i = 0; i < 30; ++i) {
    probe.alloc(&thread, 5000 + 10 * i, 64 * (i + 1), 8, 0);
    if (i % 3 == 0) {
      probe.mark(&thread, 5001 + 10 * i, kMarkSaved, 64 * (i + 1), 1);
      expected.push_back({i + 1, MarkKind::kSaved, 11, "", 64 * (i + 1), 1});
    }
    if (i % 10 == 0) {
      probe.mark(&thread, 5002 + 10 * i, kMarkRole, 64 * (i + 1), kRoleParameter, name);
      expected.push_back({i + 1, MarkKind::kRole, 11, "encoder.0.weight", 64 * (i + 1), 1});
    }
  }
  probe.mark(&thread, 9000, kMarkStep, 0, 7);
  expected.push_back({30, MarkKind::kStep, 11, "", 0, 7});
  const EverythingRead before = raw();
  EXPECT_EQ(before.marks, expected);
  EXPECT_EQ(before.events.size(), 30u);
  const EverythingRead after = sealed();
  EXPECT_EQ(after.marks, expected);
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(after.loss.events, 0u);
}

TEST_F(MarksInFile, OfOneThreadComeBeforeTheEventsOfAnotherThatWereLater) {
  auto& a = probe.start_thread(11, "a");
  auto& b = probe.start_thread(12, "b");
  probe.alloc(&a, 5000, 64, 8, 0);
  probe.mark(&a, 5001, kMarkSaved, 64, 0);
  probe.free(&b, 5002, 64);
  probe.alloc(&b, 5003, 64, 16, 0);
  probe.mark(&a, 5004, kMarkSaved, 64, 2);
  probe.alloc(&a, 5010, 128, 8, 0);
  const std::vector<ReadMark> expected{{1, MarkKind::kSaved, 11, "", 64, 0},
                                       {3, MarkKind::kSaved, 11, "", 64, 2}};
  EXPECT_EQ(raw().marks, expected);
  EXPECT_EQ(sealed().marks, expected);
}

TEST_F(MarksInFile, OfAFileWithoutEventsAreRead) {
  auto& thread = probe.start_thread(11, "t");
  probe.mark(&thread, 5000, kMarkStep, 0, 1);
  EXPECT_EQ(raw().marks, (std::vector<ReadMark>{{0, MarkKind::kStep, 11, "", 0, 1}}));
  EXPECT_EQ(sealed().marks, (std::vector<ReadMark>{{0, MarkKind::kStep, 11, "", 0, 1}}));
}

TEST_F(MarksInFile, OfACopyTellBothStoragesWhole) {
  auto& thread = probe.start_thread(11, "t");
  const uint64_t source = 0x7f1234567840;
  probe.alloc(&thread, 5000, 64, 8, 0);
  probe.mark(&thread, 5001, kMarkCopied, 64, source, static_cast<uint32_t>(source >> 37));
  const std::vector<ReadMark> expected{{1, MarkKind::kCopied, 11, "", 64, source}};
  EXPECT_EQ(raw().marks, expected);
  EXPECT_EQ(sealed().marks, expected);
}

/// Of one block that is freed and another one at its address: what a checkpoint says after them.
std::vector<Mark> standing_after(bool roles_hold) {
  EventBatch batch;
  for (uint64_t i = 0; i < 3; ++i) {
    batch.time_ns.push_back(i);
    batch.address.push_back(64);
    batch.action.push_back(i == 1 ? Action::kFreeCompleted : Action::kAlloc);
  }
  batch.marks.push_back({.before_event = 1, .kind = MarkKind::kRole, .address = 64, .value = 3});
  if (roles_hold) batch.marks.push_back({.before_event = 1, .kind = MarkKind::kRole});
  StandingMarks standing;
  standing.apply(batch);
  EventBatch after;
  after.marks.push_back({.kind = MarkKind::kCopied, .address = 64, .value = 128});
  standing.apply(after);
  return standing.now();
}

TEST(Marks, OfRolesThatHoldStandForTheNextBlockToo) {
  EXPECT_TRUE(standing_after(false).empty());
  const std::vector<Mark> standing = standing_after(true);
  ASSERT_EQ(standing.size(), 2u);
  EXPECT_EQ(standing[0].address, 64u);
  EXPECT_EQ(standing[0].value, 3u);
  EXPECT_EQ(standing[1].address, 0u) << "the word that they hold";
}

TEST_F(MarksInFile, ThatADamagedRecordHoldsAreCountedAsLost) {
  auto& thread = probe.start_thread(11, "t");
  probe.alloc(&thread, 5000, 64, 8, 0);
  probe.mark(&thread, 5001, kMarkSaved, 64, 0);
  probe.alloc(&thread, 5002, 128, 8, 0);
  thread.events[1].address_device ^= 2;
  const EverythingRead read = raw();
  EXPECT_TRUE(read.marks.empty());
  EXPECT_EQ(read.events.size(), 2u);
  EXPECT_EQ(read.loss.events, 1u);
}

TEST_F(MarksInFile, GiveStacksThePathOfTheirModuleAlsoWhereItIsSaidLater) {
  auto& thread = probe.start_thread(11, "t");
  const uint32_t named = probe.define_labelled_stack(
      &thread,
      {{"train.py", "step"}, {"<torch module>", "Linear@7f00"}, {"<torch mode>", "no grad"}});
  const uint32_t nameless = probe.define_labelled_stack(
      &thread, {{"train.py", "step"}, {"<torch module>", "Linear@7f40"}});
  probe.alloc(&thread, 5000, 64, 8, named);
  probe.alloc(&thread, 5001, 128, 8, nameless);
  probe.mark(&thread, 5002, kMarkModule, 0x7f00, 0, probe.define_text(&thread, "encoder.0"));
  const std::vector<std::string> expected{"<torch mode> no grad", "<torch module> encoder.0",
                                          "train.py:1 step"};
  raw();
  EXPECT_EQ(stack_of(path, 0), expected);
  sealed();
  EXPECT_EQ(stack_of(path, 0), expected);
  EXPECT_EQ(stack_of(path, 1)[0], "<torch module> Linear");
}

TEST_F(MarksInFile, OfTwoModulesAtOneAddressNameWhatEachCertainlyAllocated) {
  auto& thread = probe.start_thread(11, "t");
  const uint32_t stack = probe.define_labelled_stack(&thread, {{"<torch module>", "Linear@7f00"}});
  const uint32_t first = probe.define_text(&thread, "a"), second = probe.define_text(&thread, "b");
  const auto alloc = [&](uint64_t time) { probe.alloc(&thread, time, 64 * time, 8, stack); };
  alloc(5000);  // before "a" was said: a's
  probe.mark(&thread, 5001, kMarkModule, 0x7f00, 0, first);
  alloc(5002);  // a's or already b's
  probe.mark(&thread, 5003, kMarkModule, 0x7f00, 0, second);
  alloc(5004);                                           // b's
  probe.mark(&thread, 5005, kMarkModule, 0x7f00, 0, 0);  // b is gone
  alloc(5006);                                           // the next one's
  probe.mark(&thread, 5007, kMarkModule, 0x7f00, 0, first);
  for (const bool is_sealed : {false, true}) {
    is_sealed ? sealed() : raw();
    std::string names;
    for (size_t i = 0; i < 4; ++i) names += stack_of(path, i)[0].substr(15) + " ";
    EXPECT_EQ(names, "a Linear b a ");
  }
}

TEST_F(MarksInFile, OfAnotherProcessNameNothing) {
  auto& thread = probe.start_thread(11, "t");
  probe.alloc(&thread, 5000, 64, 8,
              probe.define_labelled_stack(&thread, {{"<torch module>", "Linear@7f00"}}));
  FakeProbe other(0x99, 101);
  other.write_as_dead_process();
  auto& another = other.start_thread(12, "t");
  other.alloc(&another, 6000, 64, 8,
              other.define_labelled_stack(&another, {{"<torch module>", "Linear@7f00"}}));
  other.mark(&another, 6001, kMarkModule, 0x7f00, 0, other.define_text(&another, "head"));
  ASSERT_EQ(probe.save(path), 0);
  ASSERT_EQ(other.save(folder.file("b.gmp")), 0);
  EXPECT_EQ(stack_of(folder.path(), 0)[0], "<torch module> Linear");
  EXPECT_EQ(stack_of(folder.path(), 1)[0], "<torch module> head");
}

TEST_F(MarksInFile, ThatStillHoldSurviveTheDroppingOfTheOldestEvents) {
  auto& thread = probe.start_thread(11, "t");
  const uint32_t stack = probe.define_labelled_stack(&thread, {{"<torch module>", "Linear@7f00"}});
  const uint32_t name = probe.define_text(&thread, "w");
  probe.mark(&thread, 5000, kMarkModule, 0x7f00, 0, probe.define_text(&thread, "head"));
  probe.alloc(&thread, 5001, 64, 100, stack);
  probe.mark(&thread, 5002, kMarkRole, 64, kRoleParameter, name);
  probe.alloc(&thread, 5003, 128, 50, 0);
  probe.mark(&thread, 5004, kMarkSaved, 128, 0);
  probe.free(&thread, 5005, 128);
  probe.mark(&thread, 5006, kMarkStep, 0, 4);
  probe.mark(&thread, 5007, kMarkPhaseBegin, 1, 0, name);
  probe.mark(&thread, 5008, kMarkPhaseEnd, 1);
  ASSERT_EQ(probe.save(path), 0);
  {
    // One batch, then a checkpoint; what comes after is a second batch.
    auto file = std::move(*open_file(path, FileMode::kReadWrite));
    FileSealOptions options;
    options.checkpoint_bytes = 1;
    auto sealer = std::move(*FileSealer::open(file.get(), options));
    ASSERT_TRUE(sealer->finish());
    ASSERT_GT(*sealer->drop_oldest(1), 0u);
  }
  const EverythingRead read = read_all({path});
  EXPECT_TRUE(read.events.empty());
  // Neither the tensor that is freed by now nor the phase that has ended.
  EXPECT_EQ(read.marks, (std::vector<ReadMark>{{0, MarkKind::kModule, 11, "head", 0x7f00, 0},
                                               {0, MarkKind::kRole, 11, "w", 64, 1},
                                               {0, MarkKind::kStep, 11, "", 0, 4}}));
  auto source = std::move(*open_recording({path}));
  const LiveState* before = source->state_before_first_event();
  ASSERT_NE(before, nullptr);
  const LiveBlock* block = before->devices()[0].blocks.find(64);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(stack_lines(source->tables(), block->stack),
            (std::vector<std::string>{"<torch module> head"}));
}

}  // namespace
}  // namespace gpumemprof
