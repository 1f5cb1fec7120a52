// What is in which cell, and what keys do.
#include <gtest/gtest.h>

#include <array>

#include "top/tables.h"
#include "top/view.h"

namespace gpumemprof {
namespace {

PictureRecording recording_of(int pid, int64_t rank, uint64_t allocated) {
  PictureRecording out;
  out.pid = pid, out.rank = rank, out.command = "python train.py --lr 1";
  PictureDevice device;
  device.name = "cuda:0", device.allocated = allocated, device.peak = 4 * allocated;
  device.reserved = Quantity::of(2 * allocated);
  device.bytes_per_second = 1 << 20;
  device.history = {0, allocated / 2, allocated};
  device.history_seconds = 4;
  device.holders = {{allocated, 3, "train.py:7 step", {"lib.py:1 make", "train.py:7 step"},
                     "blocks.*.attn", "activation", false, 4}};
  out.devices.push_back(device);
  return out;
}

TopState state_of(int recordings) {
  TopState state;
  Picture& picture = state.picture;
  picture.usable = {Quantity::of(1000 << 20), Quantity::of(850 << 20), Quantity::of(150 << 20),
                    "machine"};
  picture.accelerators.absent_because = "no driver";
  for (int i = 0; i < recordings; ++i)
    picture.recordings.push_back(recording_of(100 + i, i, (10ull + i) << 20));
  picture.processes.push_back({42, "python train.py", 64 << 20, true, {}});
  picture.alerts.push_back({1'000'000'000, true, "kernel", "killed 1 process"});
  return state;
}

TEST(Screen, CutsAtItsEdgesAndCountsCells) {
  Screen screen(5, 2);
  EXPECT_EQ(screen.put(3, 0, "abc"), 6);
  screen.put(0, 7, "outside");
  screen.put_right(5, 1, "1234567");
  EXPECT_EQ(screen.line(0), "   ab");
  EXPECT_EQ(screen.line(1), "34567");
}

TEST(Screen, ShowsNothingThatMovesTheCursor) {
  Screen screen(20, 1);
  screen.put(0, 0, "a\x1b[2Jb\tc\xff d\xc3\xa9\xe6\xbc\xa2\xe2\x80\xae");
  EXPECT_EQ(screen.line(0), "a?[2Jb?c? d\xc3\xa9??");
}

TEST(BarText, ShowsEveryPartThatIsNotNothing) {
  EXPECT_EQ(bar_text(0, 10, 4, false), "....");
  EXPECT_EQ(bar_text(1, 1000, 4, false), "#...");
  EXPECT_EQ(bar_text(5, 10, 4, false), "##..");
  EXPECT_EQ(bar_text(20, 10, 4, false), "####");
  EXPECT_EQ(bar_text(5, 8, 2, true), "█▎");
}

TEST(Sparkline, IsTheLastValuesFromNothingToTheHighest) {
  EXPECT_EQ(sparkline({0, 50, 100}, 5, true), "▁▅█");
  EXPECT_EQ(sparkline({100, 0, 50, 100}, 3, false), "_=#");
  EXPECT_EQ(sparkline({}, 5, true), "");
}

TEST(Overview, ARunThatHasAllocatedNothingHasARowOfItsOwn) {
  TopState state = state_of(1);
  state.picture.waiting = {{{4711, 1}, "python wait.py", "/srv/r", ""}};
  const Screen screen = draw(state, 80, 40);
  int row = 0;
  while (row < 40 && screen.line(row) != "    4711 wait.py no allocation yet") ++row;
  ASSERT_LT(row, 30);
  EXPECT_TRUE(screen.line(row - 1).contains("train.py")) << screen.line(row - 1);
  EXPECT_EQ(screen.line(row + 1), "");
  state.picture.recordings.clear();
  const Screen alone = draw(state, 80, 40);
  for (int y = 0; y < 40; ++y)
    EXPECT_FALSE(alone.line(y).contains("None of your recordings is running")) << y;
}

TEST(Overview, HasItsFiguresIn80By24) {
  const TopState state = state_of(2);
  const Screen screen = draw(state, 80, 24);
  EXPECT_TRUE(
      screen.line(0).starts_with(" 1 Overview 2 Holders 3 Processes 4 Ranks 5 Alerts 6 GPU ? Help"));
  EXPECT_TRUE(screen.line(1).starts_with("Memory   "));
  EXPECT_TRUE(screen.line(1).ends_with(" 850 MiB of 1000 MiB (85.0 %)"));
  EXPECT_EQ(screen.at(9, 1).style, Style::kWarning);
  EXPECT_EQ(screen.line(2), "Devices  unknown (no driver)");
  EXPECT_EQ(screen.line(4),
            "    RANK DEVICE     ALLOCATED      PEAK       CHANGE HISTORY    PROGRAM");
  EXPECT_EQ(screen.line(5),
            "       1 cuda:0      11.0 MiB  44.0 MiB  +1.00 MiB/s ▁▅█        train.py");
  EXPECT_EQ(screen.at(0, 5).style, Style::kSelected);
  EXPECT_EQ(screen.line(6).substr(0, 29), "       0 cuda:0      10.0 MiB");
  EXPECT_EQ(screen.line(8), "          ALLOCATED IN THE LAST 4 s BY rank 1 train.py cuda:0");
  EXPECT_EQ(screen.line(9), " 11.0 MiB" + std::string(70, ' ') + "█");
  EXPECT_EQ(screen.line(12), "        0" + std::string(69, ' ') + "██");
  EXPECT_EQ(screen.line(14),
            "    HOLDS    BLOCKS TYPE       HELD NOW BY LINES OF rank 1 train.py cuda:0");
  EXPECT_EQ(screen.line(15),
            " 11.0 MiB       3 x activation train.py:7 step  blocks.*.attn  4 stacks");
  EXPECT_EQ(screen.line(22), "critical: kernel: killed 1 process");
}

TEST(Overview, SaysWholeWhatToDoOnANarrowScreen) {
  TopState state = state_of(0);
  EXPECT_EQ(draw(state, 80, 24).line(5),
            "None of your recordings is running. Start one: gpumemprof run -- python train.py");
  const Screen narrow = draw(state, 60, 24);
  EXPECT_EQ(narrow.line(5), "None of your recordings is running. Start one:");
  EXPECT_EQ(narrow.line(6), " gpumemprof run -- python train.py");
}

TEST(Overview, HasTheSumsOfARecordingWholeAboveTheTableOfItsHolders) {
  TopState state = state_of(1);
  state.picture.recordings[0].devices[0].history = {10'000'000};
  state.picture.recordings[0].devices[0].categories.all = {
      {"parameter", 1 << 20}, {"gradient", 1 << 20}, {"optimizer state", 2 << 20}};
  const Screen screen = draw(state, 60, 24);
  EXPECT_EQ(screen.line(7), "parameter 1.00 MiB, gradient 1.00 MiB, optimizer state");
  EXPECT_EQ(screen.line(8), "2.00 MiB");
  EXPECT_TRUE(screen.line(9).starts_with("    HOLDS ")) << screen.line(9);
}

TEST(Overview, HasNoChartOfOneLook) {
  TopState state = state_of(1);
  state.picture.recordings[0].devices[0].history = {10'000'000};
  const Screen screen = draw(state, 80, 24);
  EXPECT_TRUE(screen.line(7).ends_with("HELD NOW BY LINES OF rank 0 train.py cuda:0")) << screen.line(7);
}

TEST(Overview, LeavesOutAFolderBeforeItCutsALine) {
  TopState state = state_of(1);
  state.picture.accelerators.absent_because = std::string(100, 'x');
  state.picture.recordings[0].devices[0].holders[0].line = "/srv/models/of/mine/train.py:7 step";
  EXPECT_EQ(draw(state, 120, 24).line(14),
            " 10.0 MiB       3 x activation /srv/models/of/mine/train.py:7 step  blocks.*.attn  4 stacks");
  const Screen narrow = draw(state, 60, 24);
  EXPECT_TRUE(narrow.line(14).starts_with(" 10.0 MiB activation train.py:7 step  blocks.*.attn"))
      << narrow.line(14);
  EXPECT_TRUE(narrow.line(2).ends_with("xxx..."));
}

TEST(Overview, NamesFilesAsOtherCommandsDo) {
  TopState state = state_of(1);
  std::string& line = state.picture.recordings[0].devices[0].holders[0].line;
  const auto shown = [&] { return draw(state, 120, 24).line(14).substr(31); };
  state.working_folder = "/srv/models";
  line = "/srv/models/of/mine/train.py:7 step";
  EXPECT_EQ(shown(), "of/mine/train.py:7 step  blocks.*.attn  4 stacks");
  line = "/opt/lib/python3.11/site-packages/torch/nn/functional.py:12 linear";
  EXPECT_EQ(shown(), "…/torch/nn/functional.py:12 linear  blocks.*.attn  4 stacks");
  state.unicode = false;
  EXPECT_EQ(shown(), ".../torch/nn/functional.py:12 linear  blocks.*.attn  4 stacks");
}

TEST(Overview, NamesProcessesByTheirPidWhereNoneIsARank) {
  TopState state = state_of(1);
  state.picture.recordings[0].rank.reset();
  const Screen screen = draw(state, 80, 24);
  EXPECT_EQ(screen.line(4),
            "     PID DEVICE     ALLOCATED      PEAK       CHANGE HISTORY    PROGRAM");
  EXPECT_EQ(screen.line(5).substr(0, 29), "     100 cuda:0      10.0 MiB");
  EXPECT_EQ(screen.line(7).substr(10), "ALLOCATED IN THE LAST 4 s BY pid 100 train.py cuda:0");
}

TEST(Overview, OfAWorkerOfARankThePidIsItsName) {
  TopState state = state_of(2);
  state.picture.recordings[0].rank.reset();
  EXPECT_EQ(draw(state, 80, 24).line(6).substr(0, 29), " pid 100 cuda:0      10.0 MiB");
}

TEST(Overview, KeepsTheProgramOnANarrowScreen) {
  const Screen screen = draw(state_of(1), 50, 24);
  EXPECT_EQ(screen.line(4), "    RANK ALLOCATED      PEAK       CHANGE PROGRAM");
  EXPECT_EQ(screen.line(5), "       0  10.0 MiB  40.0 MiB  +1.00 MiB/s train.py");
  EXPECT_EQ(screen.line(14), " 10.0 MiB activation train.py:7 step  blocks.*.att");
}

TEST(Overview, HasMoreColumnsWhereThereIsRoom) {
  const Screen screen = draw(state_of(1), 200, 60);
  EXPECT_EQ(screen.line(4).substr(0, 73),
            "    RANK      PID DEVICE     ALLOCATED  RESERVED      PEAK       CHANGE H");
  EXPECT_EQ(screen.line(5).substr(0, 71),
            "       0      100 cuda:0      10.0 MiB  20.0 MiB  40.0 MiB  +1.00 MiB/s");
}

TEST(AreaChart, IsTheLastValuesInRows) {
  EXPECT_EQ(area_chart({9, 0, 4, 8}, 4, 2, true), (std::vector<std::string>{"█  ▆", "█ ▇█"}));
  EXPECT_EQ(area_chart({0, 1, 100}, 5, 2, false), (std::vector<std::string>{"    #", "   ##"}));
  EXPECT_EQ(area_chart({1, 2, 3, 4}, 2, 1, true), std::vector<std::string>{"▆█"});
  EXPECT_EQ(area_chart({}, 5, 2, true), (std::vector<std::string>{"", ""}));
}

TEST(Draw, FitsIntoAnySizeWithAnyView) {
  std::array states{state_of(0), state_of(1), state_of(60)};
  for (TopState& state : states) {
    for (int view = 0; view < kViewCount; ++view) {
      state.view = static_cast<View>(view);
      for (const auto& [width, height] : {std::pair{1, 1}, {3, 5}, {80, 24}, {40, 7}, {200, 60}}) {
        state.selected.fill(1000);
        const Screen screen = draw(state, width, height);
        EXPECT_EQ(screen.width(), width);
        EXPECT_EQ(screen.height(), height);
      }
    }
  }
}

TEST(Draw, KeepsTheSelectedRowOnTheScreen) {
  TopState state = state_of(60);
  for (int i = 0; i < 45; ++i) press(Key::kDown, &state);
  const Screen screen = draw(state, 80, 24);
  int selected = 0;
  for (int y = 0; y < 24; ++y) {
    if (screen.at(0, y).style != Style::kSelected) continue;
    ++selected;
    EXPECT_EQ(screen.line(y).substr(0, 8), "      14") << "the 46th by what is allocated";
  }
  EXPECT_EQ(selected, 1);
}

TEST(Ranks, AreComparedOnOneScale) {
  TopState state = state_of(3);
  state.view = View::kRanks;
  const Screen screen = draw(state, 80, 24);
  EXPECT_EQ(screen.line(5).substr(0, 59),
            "    0       100 cuda:0         10.0 MiB   40.0 MiB    -9.1%");
  EXPECT_EQ(screen.line(7).substr(0, 59),
            "    2       102 cuda:0         12.0 MiB   48.0 MiB    +9.1%");
  EXPECT_TRUE(screen.line(7).ends_with("███"));
}

TEST(Keys, ChooseViewsOrdersAndThresholds) {
  TopState state = state_of(2);
  EXPECT_EQ(press('3', &state), Wish::kNone);
  EXPECT_EQ(state.view, View::kProcesses);
  EXPECT_EQ(draw(state, 80, 24).line(5),
            "       42   64.0 MiB          - yes       python train.py");
  press(Key::kTab, &state);
  EXPECT_EQ(state.view, View::kRanks);
  press('1', &state);
  press(Key::kEnter, &state);
  EXPECT_EQ(state.view, View::kHolders);
  EXPECT_EQ(draw(state, 80, 24).line(8), "  lib.py:1 make");
  EXPECT_EQ(press('C', &state), Wish::kThresholds);
  EXPECT_EQ(state.critical_percent, 100);
  for (int i = 0; i < 3; ++i) press('c', &state);
  for (int i = 0; i < 3; ++i) press('c', &state);
  EXPECT_EQ(state.critical_percent, 70);
  EXPECT_EQ(state.warning_percent, 70) << "never above critical";
  EXPECT_EQ(press('q', &state), Wish::kQuit);
  EXPECT_EQ(press('e', &state), Wish::kExport);
  EXPECT_EQ(press('t', &state), Wish::kTrack);
}

TEST(Click, ChoosesTabsAndRows) {
  TopState state = state_of(60);
  click(13, 0, 24, &state);
  EXPECT_EQ(state.view, View::kHolders);
  click(0, 0, 24, &state);
  for (int i = 0; i < 30; ++i) press(Key::kDown, &state);
  const int before = state.selected[0];
  click(5, 5, 24, &state);  // the first row that is shown
  const int visible = visible_rows(state, 24);
  EXPECT_EQ(state.selected[0], before - visible / 2);
  click(5, 3, 24, &state);
  EXPECT_EQ(state.selected[0], before - visible / 2) << "not a row";
}

}  // namespace
}  // namespace gpumemprof
