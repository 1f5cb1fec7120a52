#include "analysis/held_attempt.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

/// main() calls step() at line 5, which is refused memory at line 2; then main() calls it again at
/// line 7.
struct RefusedTwice {
  RefusedTwice() {
    tables.devices.resize(1);
    first = stack(5, 2), made = stack(5, 1), last = stack(7, 2);
    // 100 are the model's; the second attempt has made another 100.
    device.refusals = {{.size_bytes = 400,
                        .event = 20,
                        .stack = first,
                        .number = 0,
                        .live_bytes = 1000,
                        .thread = 0,
                        .holders = {{made, 900, 3}, {weights, 100, 1}}},
                       {.size_bytes = 200,
                        .event = 30,
                        .stack = last,
                        .number = 1,
                        .live_bytes = 1100,
                        .thread = 0,
                        .holders = {{made, 900, 3}, {weights, 100, 1}, {stack(7, 1), 100, 1}}}};
  }
  uint32_t line(uint32_t parent, const char* function, uint32_t number) {
    const Frame frame{tables.strings.intern("/me/fit.py"), tables.strings.intern(function), number};
    return tables.stacks.push(parent, tables.stacks.intern_frame(frame));
  }
  uint32_t stack(uint32_t caller, uint32_t number) {
    return line(line(0, "main", caller), "step", number);
  }
  std::optional<HeldAttempt> held() const { return held_attempt(device, tables); }

  Tables tables;
  DeviceAnalysis device;
  uint32_t weights = line(0, "main", 3), first = 0, made = 0, last = 0;
};

TEST(HeldAttempt, IsWhatTheCallMadeThatIsOverAndOfWhichNothingWasFreed) {
  RefusedTwice run;
  const auto held = run.held();
  ASSERT_TRUE(held);
  EXPECT_EQ(std::tuple(held->bytes, held->stack, held->again),
            std::tuple(900u, run.first, run.line(0, "main", 7)));
  run.device.refusals[1].size_bytes = 800;  // with the 900 freed there were 800 and no more
  EXPECT_TRUE(run.held());
  run.device.refusals[1].size_bytes = 801;
  EXPECT_FALSE(run.held()) << "it would not have fitted either";
}

TEST(HeldAttempt, IsNoneWhereAnythingOfTheCallWasFreed) {
  RefusedTwice run;
  run.device.refusals[1].holders[0] = {run.made, 600, 2};
  EXPECT_FALSE(run.held()) << "a loop's blocks of earlier rounds stay, that of the last is freed";
}

TEST(HeldAttempt, IsNoneOfACallThatMayGoOn) {
  RefusedTwice run;
  run.device.refusals[1].stack = run.stack(5, 4);
  EXPECT_FALSE(run.held()) << "the same call at another line";
  run.device.refusals[1].stack = run.last;
  run.device.refusals[1].thread = 1;
  EXPECT_FALSE(run.held()) << "another thread";
}

TEST(HeldAttempt, IsNoneWhereNobodySawWhatWasLive) {
  RefusedTwice run;
  run.device.refusals[1].holders.clear();
  EXPECT_FALSE(run.held());
  EXPECT_FALSE(held_attempt(DeviceAnalysis(), run.tables));
}

TEST(LastWork, IsNothingThatIsSmallBesideWhatWasLive) {
  RefusedTwice run;
  run.device.last_alloc_event = 40;
  run.device.refusals[1].allocated_after_bytes = 54;  // a twentieth of 1,100 is 55
  EXPECT_EQ(last_work_event(run.device, {}), 0u);
  EXPECT_EQ(last_work_event(run.device, {.uncaught = {{.kind = "ValueError"}}}), 40u)
      << "it tells what ended the program";
  run.device.refusals[1].allocated_after_bytes = 55;
  EXPECT_EQ(last_work_event(run.device, {}), 40u);
}

}  // namespace
}  // namespace gpumemprof
