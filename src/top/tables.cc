#include "top/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr const char* kHelpLines[] = {
    "Read from the recording files; the programs do no extra work.",
    "",
    "1 2 3 4 5 6 ?  views; Tab: next view; a click on a tab works too",
    "arrows j k     select a row; also PgUp PgDn Home End, a click or the wheel",
    "Enter          show the lines that hold a recording's memory, and their stacks",
    "s              order: allocated, peak, change, PID",
    "w W            warning threshold down, up by 5 %",
    "c C            critical threshold down, up by 5 %",
    "t              write samples to a file for `gpumemprof analyze`; t again stops",
    "e              save this screen as JSON in the current folder",
    "p or space     pause or resume",
    "q Ctrl-C       quit",
    "",
    "Allocated: bytes in tensors. Reserved: bytes the allocator took from the device.",
    "Peak: exact, over every allocation. Change: since the last refresh.",
    "GPU: use reported by the driver, split by recorded process.",
    "Ranks: processes with a rank, side by side on one scale.",
};

/// "12:03:59" of nanoseconds since 1970.
std::string clock_text(int64_t time_ns) {
  const std::time_t seconds = time_ns / 1'000'000'000;
  std::tm parts{};
  char text[16] = "";
  if (localtime_r(&seconds, &parts)) std::strftime(text, sizeof text, "%H:%M:%S", &parts);
  return text;
}

int selected_in(const TopState& state) {
  return std::clamp(state.selected[static_cast<size_t>(state.view)], 0,
                    std::max(row_count(state) - 1, 0));
}

}  // namespace

int first_visible(int selected, int visible, int count) {
  if (count <= visible || visible <= 0) return 0;
  return std::clamp(selected - visible / 2, 0, count - visible);
}

std::string rate_text(const std::optional<double>& rate) {
  if (!rate) return "unknown";
  const auto bytes = static_cast<uint64_t>(std::llround(std::abs(*rate)));
  const char* sign = bytes == 0 ? "" : *rate < 0 ? "-" : "+";
  return sign + format_bytes(bytes) + "/s";
}

std::string row_name(const RecordedRow& row) {
  return fmt::format("{} {} {}", subject_name(*row.recording), program_name(row.recording->command),
                     row.device->name);
}

int visible_rows(const TopState& state, int height) {
  const int room = std::max(height - 2 - table_top(state), 1);
  if (state.view == View::kGpus)
    return std::clamp(row_count(state), 1, std::max(room - kSumRows, 1));
  // Below the overview's table come the holders of the selected row, and the last alert.
  constexpr int kHolders = 8;
  return state.view == View::kOverview && room > 2 * kHolders - 3
             ? std::min(std::max(row_count(state), 1), room - kHolders)
             : room;
}

int row_count(const TopState& state) {
  const Picture& picture = state.picture;
  switch (state.view) {
    case View::kOverview:
    case View::kRanks:
      return static_cast<int>(recorded_rows(state).size());
    case View::kHolders: {
      const auto rows = recorded_rows(state);
      if (rows.empty()) return 0;
      const int chosen = std::clamp(state.selected[0], 0, static_cast<int>(rows.size()) - 1);
      return static_cast<int>(rows[static_cast<size_t>(chosen)].device->holders.size());
    }
    case View::kProcesses:
      return static_cast<int>(picture.processes.size());
    case View::kAlerts:
      return static_cast<int>(picture.alerts.size());
    case View::kGpus:
      return sum_count(picture);
    case View::kHelp:
      break;
  }
  return 0;
}

void draw_processes(const TopState& state, int y, int end, Screen* screen) {
  screen->put(
      0, y,
      fmt::format("{:>9} {:>10} {:>10} {:<9} COMMAND", "PID", "RESIDENT", "DEVICES", "RECORDED"));
  screen->paint_row(y++, Style::kHeader);
  const auto& all = state.picture.processes;
  const int selected = selected_in(state), count = static_cast<int>(all.size());
  for (int i = first_visible(selected, end - y, count); i < count && y < end; ++i, ++y) {
    const PictureProcess& one = all[static_cast<size_t>(i)];
    screen->put(
        0, y,
        fmt::format("{:>9} {:>10} {:>10} {:<9} {}", one.pid, format_bytes(one.resident_bytes),
                    one.accelerator_bytes ? format_bytes(*one.accelerator_bytes) : "-",
                    one.is_recorded ? "yes" : "", one.command));
    if (i == selected) screen->paint_row(y, Style::kSelected);
  }
}

void draw_ranks(const TopState& state, int y, int end, Screen* screen) {
  screen->put(0, y,
              fmt::format("{:>5} {:>9} {:<12} {:>10} {:>10} {:>8}  {}", "RANK", "PID", "DEVICE",
                          "ALLOCATED", "PEAK", "MEDIAN", "ALLOCATED, ONE SCALE"));
  screen->paint_row(y++, Style::kHeader);
  std::vector<RecordedRow> rows = recorded_rows(state);
  std::ranges::stable_sort(rows, [](const RecordedRow& a, const RecordedRow& b) {
    const auto key = [](const RecordedRow& row) {
      return std::pair(row.recording->rank.value_or(INT64_MAX), row.recording->pid);
    };
    return key(a) < key(b);
  });
  if (rows.empty()) screen->put(0, y, no_rows_text(state.picture), Style::kDim);
  std::vector<uint64_t> sizes;
  for (const RecordedRow& row : rows) sizes.push_back(row.device->allocated);
  std::ranges::sort(sizes);
  const uint64_t most = sizes.empty() ? 0 : sizes.back();
  const uint64_t median = sizes.empty() ? 0 : sizes[sizes.size() / 2];
  const int selected = selected_in(state), count = static_cast<int>(rows.size());
  for (int i = first_visible(selected, end - y, count); i < count && y < end; ++i, ++y) {
    const PictureRecording& recording = *rows[static_cast<size_t>(i)].recording;
    const PictureDevice& device = *rows[static_cast<size_t>(i)].device;
    const double apart =
        median == 0
            ? 0
            : 100 * (static_cast<double>(device.allocated) / static_cast<double>(median) - 1);
    const int x = screen->put(
        0, y,
        fmt::format("{:>5} {:>9} {:<12} {:>10} {:>10} {:>+7.1f}%  ",
                    recording.rank ? std::to_string(*recording.rank) : "-", recording.pid,
                    device.name, format_bytes(device.allocated), format_bytes(device.peak), apart));
    const bool is_odd = std::abs(apart) >= 10;
    screen->put(x, y, bar_text(device.allocated, most, screen->width() - x, state.unicode),
                is_odd ? Style::kWarning : Style::kGraph);
    if (i == selected) screen->paint_row(y, Style::kSelected);
  }
}

void draw_alerts(const TopState& state, int y, int end, Screen* screen) {
  screen->put(0, y, fmt::format("{:<9} {:<9} {:<24} WHAT", "TIME", "LEVEL", "OF"));
  screen->paint_row(y++, Style::kHeader);
  const auto& all = state.picture.alerts;
  if (all.empty()) screen->put(0, y, "None.", Style::kDim);
  const int selected = selected_in(state), count = static_cast<int>(all.size());
  for (int i = first_visible(selected, end - y, count); i < count && y < end; ++i, ++y) {
    const PictureAlert& alert = all[all.size() - 1 - static_cast<size_t>(i)];  // newest first
    screen->put(0, y,
                fmt::format("{:<9} {:<9} {:<24} {}", clock_text(alert.time_ns),
                            alert.is_critical ? "critical" : "warning", alert.subject, alert.text),
                alert.is_critical ? Style::kCritical : Style::kWarning);
    if (i == selected) screen->paint_row(y, Style::kSelected);
  }
}

void draw_help(const TopState&, int y, int end, Screen* screen) {
  for (const char* line : kHelpLines) {
    if (y >= end) return;
    screen->put(0, y++, line);
  }
}

}  // namespace gpumemprof
