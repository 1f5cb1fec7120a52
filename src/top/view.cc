#include "top/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/size.h"
#include "top/tables.h"

namespace gpumemprof {
namespace {

struct Tab {
  View view;
  char key;
  const char* name;
};
constexpr Tab kTabs[kViewCount] = {{View::kOverview, '1', "Overview"},
                                   {View::kHolders, '2', "Holders"},
                                   {View::kProcesses, '3', "Processes"},
                                   {View::kRanks, '4', "Ranks"},
                                   {View::kAlerts, '5', "Alerts"},
                                   {View::kGpus, '6', "GPU"},
                                   {View::kHelp, '?', "Help"}};

/// " 1 Overview": with all tabs a clock and "paused" still fit into 80 columns.
std::string tab_text(const Tab& tab) { return fmt::format(" {} {}", tab.key, tab.name); }

void draw_tabs(const TopState& state, Screen* screen) {
  int x = 0;
  for (const Tab& tab : kTabs)
    x = screen->put(x, 0, tab_text(tab), tab.view == state.view ? Style::kChosenTab : Style::kTab);
  char clock[16] = "";
  const std::time_t seconds = state.picture.time_ns / 1'000'000'000;
  std::tm parts{};
  if (localtime_r(&seconds, &parts)) std::strftime(clock, sizeof clock, "%H:%M:%S", &parts);
  std::string right = clock;
  if (state.paused) right = "paused " + right;
  if (!state.tracking.empty()) right = "tracking " + right;
  if (x + static_cast<int>(right.size()) <= screen->width())
    screen->put_right(screen->width(), 0, right, state.paused ? Style::kWarning : Style::kDim);
}

Style style_of_share(const TopState& state, uint64_t used, uint64_t total) {
  const double percent =
      total == 0 ? 0 : 100 * static_cast<double>(used) / static_cast<double>(total);
  if (percent >= state.critical_percent) return Style::kCritical;
  return percent >= state.warning_percent ? Style::kWarning : Style::kGood;
}

void draw_memory(const TopState& state, const std::string& name, const Quantity& used,
                 const Quantity& total, int y, Screen* screen) {
  int x = screen->put(0, y, name, Style::kBold);
  x = std::max(x + 1, 9);
  if (!used || !total) {
    screen->put(x, y, "unknown (" + (used ? total : used).absent_because + ")", Style::kDim);
    return;
  }
  const std::string text =
      fmt::format(" {} of {} ({:.1f} %)", format_bytes(*used.bytes), format_bytes(*total.bytes),
                  100 * static_cast<double>(*used.bytes) /
                      static_cast<double>(std::max<uint64_t>(*total.bytes, 1)));
  const int width = std::clamp(screen->width() - x - static_cast<int>(text.size()), 0, 60);
  x = screen->put(x, y, bar_text(*used.bytes, *total.bytes, width, state.unicode),
                  style_of_share(state, *used.bytes, *total.bytes));
  screen->put(x, y, text);
}

void draw_memories(const TopState& state, Screen* screen) {
  const Picture& picture = state.picture;
  draw_memory(state, std::string(picture.usable.basis) == "cgroup" ? "Cgroup" : "Memory",
              picture.usable.used, picture.usable.total, 1, screen);
  int y = 2;
  if (!picture.accelerators.absent_because.empty()) {
    screen->put(0, y, "Devices", Style::kBold);
    const std::string why = "unknown (" + picture.accelerators.absent_because + ")";
    screen->put(9, y, why, Style::kDim);
    if (9 + static_cast<int>(why.size()) > screen->width())
      screen->put(screen->width() - 3, y, "...", Style::kDim);
  }
  for (const PictureAccelerator& device : picture.accelerators.devices) {
    if (y >= table_top(state) - 1) break;
    draw_memory(state, device.name, device.used, device.total, y++, screen);
  }
}

void draw_last_row(const TopState& state, Screen* screen) {
  const int y = screen->height() - 1;
  if (!state.message.empty()) {
    screen->put(0, y, state.message, Style::kBold);
    return;
  }
  screen->put(
      0, y,
      fmt::format("q quit  s sort  t track  e export  p pause  ? help  w/W c/C limits {:g}/{:g} %",
                  state.warning_percent, state.critical_percent),
      Style::kDim);
}

void step(int by, TopState* state) {
  int& selected = state->selected[static_cast<size_t>(state->view)];
  selected = std::clamp(selected + by, 0, std::max(row_count(*state) - 1, 0));
}

Wish move_threshold(double by, bool critical, TopState* state) {
  double& percent = critical ? state->critical_percent : state->warning_percent;
  percent = std::clamp(percent + by, 5.0, 100.0);
  if (critical)
    state->warning_percent = std::min(state->warning_percent, percent);
  else
    state->critical_percent = std::max(state->critical_percent, percent);
  return Wish::kThresholds;
}

}  // namespace

int table_top(const TopState& state) {
  constexpr int kMostDevices = 8;
  const auto devices = static_cast<int>(state.picture.accelerators.devices.size());
  const bool has_words = !state.picture.accelerators.absent_because.empty();
  return 3 + (has_words ? 1 : std::min(devices, kMostDevices));
}

std::vector<RecordedRow> recorded_rows(const TopState& state) {
  std::vector<RecordedRow> rows;
  for (const PictureRecording& recording : state.picture.recordings) {
    for (const PictureDevice& device : recording.devices) rows.push_back({&recording, &device});
  }
  const auto rank = [&](const RecordedRow& row) -> double {
    switch (state.order) {
      case Order::kAllocated:
        return static_cast<double>(row.device->allocated);
      case Order::kPeak:
        return static_cast<double>(row.device->peak);
      case Order::kChange:
        return row.device->bytes_per_second.value_or(0);
      case Order::kPid:
        break;
    }
    return -row.recording->pid;
  };
  std::ranges::stable_sort(
      rows, [&](const RecordedRow& a, const RecordedRow& b) { return rank(a) > rank(b); });
  return rows;
}

Screen draw(const TopState& state, int width, int height) {
  Screen screen(width, height);
  draw_tabs(state, &screen);
  draw_memories(state, &screen);
  const int y = table_top(state), end = screen.height() - 1;
  switch (state.view) {
    case View::kOverview:
      draw_overview(state, y, end, &screen);
      break;
    case View::kHolders:
      draw_holders(state, y, end, &screen);
      break;
    case View::kProcesses:
      draw_processes(state, y, end, &screen);
      break;
    case View::kRanks:
      draw_ranks(state, y, end, &screen);
      break;
    case View::kAlerts:
      draw_alerts(state, y, end, &screen);
      break;
    case View::kGpus:
      draw_gpus(state, y, end, &screen);
      break;
    case View::kHelp:
      draw_help(state, y, end, &screen);
      break;
  }
  draw_last_row(state, &screen);
  return screen;
}

Wish press(char character, TopState* state) {
  state->message.clear();
  for (const Tab& tab : kTabs) {
    if (character == tab.key) state->view = tab.view;
  }
  switch (character) {
    case 'q':
      return Wish::kQuit;
    case 'e':
      return Wish::kExport;
    case 't':
      return Wish::kTrack;
    case 'h':
      state->view = View::kHelp;
      break;
    case 'p':
    case ' ':
      state->paused = !state->paused;
      break;
    case 's':
      state->order = static_cast<Order>((static_cast<int>(state->order) + 1) % 4);
      break;
    case 'w':
      return move_threshold(-5, false, state);
    case 'W':
      return move_threshold(5, false, state);
    case 'c':
      return move_threshold(-5, true, state);
    case 'C':
      return move_threshold(5, true, state);
    case 'k':
      return press(Key::kUp, state);
    case 'j':
      return press(Key::kDown, state);
    default:
      break;
  }
  return Wish::kNone;
}

Wish press(Key key, TopState* state) {
  constexpr int kPage = 10;
  state->message.clear();
  switch (key) {
    case Key::kUp:
      step(-1, state);
      break;
    case Key::kDown:
      step(1, state);
      break;
    case Key::kPageUp:
      step(-kPage, state);
      break;
    case Key::kPageDown:
      step(kPage, state);
      break;
    case Key::kHome:
      step(-1'000'000, state);
      break;
    case Key::kEnd:
      step(1'000'000, state);
      break;
    case Key::kEnter:
      if (state->view == View::kOverview) state->view = View::kHolders;
      break;
    case Key::kTab:
      state->view = static_cast<View>((static_cast<int>(state->view) + 1) % kViewCount);
      break;
    case Key::kNone:
      break;
  }
  return Wish::kNone;
}

void click(int x, int y, int height, TopState* state) {
  state->message.clear();
  if (y == 0) {
    int begin = 0;
    for (const Tab& tab : kTabs) {
      const int end = begin + static_cast<int>(tab_text(tab).size());
      if (x >= begin && x < end) state->view = tab.view;
      begin = end;
    }
    return;
  }
  int& selected = state->selected[static_cast<size_t>(state->view)];
  const int visible = visible_rows(*state, height), count = row_count(*state);
  const int line = y - table_top(*state) - 1;  // below the table's header
  if (line < 0 || line >= std::min(visible, count)) return;
  selected = line + first_visible(selected, visible, count);
}

}  // namespace gpumemprof
