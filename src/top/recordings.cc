// The overview and the holders of one recording.
#include <fmt/format.h>

#include <algorithm>

#include "base/size.h"
#include "live/live_recordings.h"
#include "live/recording_follower.h"
#include "report/describe/describe.h"
#include "report/user_code.h"
#include "report/words.h"
#include "top/tables.h"

namespace gpumemprof {
namespace {

/// Columns that come with the screen's width. A rank is named by its number: a narrow screen has no
/// room for its PID beside it.
struct Columns {
  bool pid, rank, device, reserved;
  int sparkline;
};

Columns columns_of(const TopState& state, int width) {
  const bool has_ranks =
      std::ranges::any_of(state.picture.recordings,
                          [](const PictureRecording& one) { return one.rank.has_value(); });
  return {.pid = !has_ranks || width >= 110,
          .rank = has_ranks,
          .device = width >= 60,
          .reserved = width >= 96,
          .sparkline = width >= 140 ? 40 : width >= 72 ? 10 : 0};
}

std::string head_text(const Columns& columns) {
  std::string text;
  if (columns.rank) text += fmt::format("{:>8} ", "RANK");
  if (columns.pid) text += fmt::format("{:>8} ", "PID");
  if (columns.device) text += fmt::format("{:<10} ", "DEVICE");
  text += fmt::format("{:>9} ", "ALLOCATED");
  if (columns.reserved) text += fmt::format("{:>9} ", "RESERVED");
  text += fmt::format("{:>9} {:>12} ", "PEAK", "CHANGE");
  if (columns.sparkline) text += fmt::format("{:<{}} ", "HISTORY", columns.sparkline);
  return text + "PROGRAM";
}

void draw_row(const TopState& state, const RecordedRow& row, int y, Screen* screen) {
  const Columns columns = columns_of(state, screen->width());
  const PictureRecording& recording = *row.recording;
  const PictureDevice& device = *row.device;
  std::string text;
  // A rank's workers have none of their own.
  if (columns.rank)
    text += fmt::format("{:>8} ", recording.rank || columns.pid
                                      ? recording.rank ? std::to_string(*recording.rank) : "-"
                                      : fmt::format("pid {}", recording.pid));
  if (columns.pid) text += fmt::format("{:>8} ", recording.pid);
  if (columns.device) text += fmt::format("{:<10.10} ", device.name);
  text += fmt::format("{:>9} ", format_bytes(device.allocated));
  if (columns.reserved) {
    text +=
        fmt::format("{:>9} ", device.reserved ? format_bytes(*device.reserved.bytes) : "unknown");
  }
  text +=
      fmt::format("{:>9} {:>12} ", format_bytes(device.peak), rate_text(device.bytes_per_second));
  int x = screen->put(0, y, text);
  if (columns.sparkline) {
    screen->put(x, y, sparkline(device.history, columns.sparkline, state.unicode), Style::kGraph);
    x += columns.sparkline + 1;
  }
  x = screen->put(x, y, program_name(recording.command));
  if (recording.age_seconds > kLateSeconds) {
    x = screen->put(x + 1, y, fmt::format("(read {:.0f} s ago)", recording.age_seconds), Style::kWarning);
  } else if (!recording.exact) {
    x = screen->put(x + 1, y, "(events lost)", Style::kWarning);
  }
  if (device.leak_bytes_per_second.value_or(0) > 0)
    screen->put(x + 1, y, "grows " + rate_text(device.leak_bytes_per_second), Style::kWarning);
}

/// Lines that hold memory: bytes, how many blocks, of which kind, the line, its module.
struct HolderColumns {
  bool blocks;
  int kind;  ///< characters; 0: no column
};

/// "optimizer state", or "optimizer state+" where a part of it is something else.
std::string kind_text(const FollowedHolder& holder) {
  return holder.category + (holder.has_other_categories ? "+" : "");
}

HolderColumns holder_columns(const PictureDevice& device, int width) {
  constexpr int kMostKind = 16;
  size_t kind = 0;
  for (const FollowedHolder& one : device.holders) kind = std::max(kind, kind_text(one).size());
  return {.blocks = width >= 64, .kind = std::min(static_cast<int>(kind), kMostKind)};
}

std::string holder_head(const RecordedRow& row, const HolderColumns& columns) {
  std::string text = fmt::format("{:>9} ", "HOLDS");
  if (columns.blocks) text += fmt::format("{:>9} ", "BLOCKS");
  if (columns.kind) text += fmt::format("{:<{}} ", "TYPE", columns.kind);
  return text + "HELD NOW BY LINES OF " + row_name(row);
}

/// "train.py:3 f" of "/srv/train.py:3 f".
std::string without_folder(const std::string& line) {
  const size_t slash = line.rfind('/', line.find(':'));
  return slash == line.npos ? line : line.substr(slash + 1);
}

/// "/srv/train.py:3 f" with its path as other commands show it.
std::string with_short_path(std::string_view line, const TopState& state) {
  const size_t end = std::min(line.find(':'), line.size());
  std::string path = short_path(line.substr(0, end), state.working_folder);
  constexpr std::string_view kLeftOut = "…";
  if (!state.unicode && path.starts_with(kLeftOut)) path.replace(0, kLeftOut.size(), "...");
  return path.append(line.substr(end));
}

/// " 1.00 MiB      12 x activation train.py:3 f  blocks.*.attn"; where it would be cut at `width`
/// the file is named without its folder.
std::string holder_text(const FollowedHolder& holder, const HolderColumns& columns,
                        const TopState& state, int width) {
  std::string text = fmt::format("{:>9} ", format_bytes(holder.bytes));
  if (columns.blocks) text += fmt::format("{:>9} ", fmt::format("{} x", holder.count));
  if (columns.kind) text += fmt::format("{:<{}.{}} ", kind_text(holder), columns.kind, columns.kind);
  std::string beside;
  if (!holder.module.empty()) beside += "  " + holder.module;
  if (holder.stacks > 1) beside += fmt::format("  {} stacks", holder.stacks);
  const std::string line =
      holder.line.empty() ? std::string(kNoStack) : with_short_path(holder.line, state);
  const bool fits = text.size() + line.size() + beside.size() <= static_cast<size_t>(width);
  return text + (fits ? line : without_folder(line)) + beside;
}

constexpr int kChartRows = 4;

/// Of the chosen recording, over the looks that are remembered, two at least; kChartRows and a head.
void draw_history(const TopState& state, const RecordedRow& row, int y, Screen* screen) {
  const PictureDevice& device = *row.device;
  constexpr int kLabel = 10;
  const int width = screen->width() - kLabel;
  const size_t shown = std::min(device.history.size(), static_cast<size_t>(std::max(width, 0)));
  const double seconds = device.history_seconds * static_cast<double>(std::max<size_t>(shown, 1) - 1) /
                         static_cast<double>(device.history.size() - 1);
  screen->put(0, y,
              fmt::format("{:>9} ALLOCATED IN THE LAST {:.0f} s BY {}", "", seconds, row_name(row)));
  screen->paint_row(y++, Style::kHeader);
  if (shown == 0) return;
  const auto last = device.history.end();
  const uint64_t top = *std::max_element(last - static_cast<std::ptrdiff_t>(shown), last);
  screen->put_right(kLabel - 1, y, format_bytes(top), Style::kDim);
  screen->put_right(kLabel - 1, y + kChartRows - 1, "0", Style::kDim);
  for (const std::string& line : area_chart(device.history, width, kChartRows, state.unicode))
    screen->put(kLabel, y++, line, Style::kGraph);
}

/// "parameter 1.00 GiB, optimizer state 2.00 GiB"; empty where nothing is told.
std::string category_text(const FollowedCategories& categories) {
  std::string out;
  for (const FollowedCategory& kind : categories.all)
    out += (out.empty() ? "" : ", ") + kind.name + ' ' + format_bytes(kind.bytes);
  return out;
}

void draw_head(const std::string& text, int y, Screen* screen) {
  screen->put(0, y, text);
  screen->paint_row(y, Style::kHeader);
}

/// In as many rows as it needs, before `end`. The row below them.
int put_whole(const std::string& text, int y, int end, Style style, Screen* screen) {
  for (const std::string& line : wrapped(text, static_cast<size_t>(screen->width()))) {
    if (y < end) screen->put(0, y++, line, style);
  }
  return y;
}

/// Recordings without a device yet, or that cannot be read, and runs without a recording yet. The
/// row below them.
int draw_others(const Picture& picture, int y, int end, Screen* screen) {
  for (const PictureRecording& recording : picture.recordings) {
    if (!recording.devices.empty() || y >= end) continue;
    screen->put(0, y++,
                fmt::format("{:>8} {} {}", recording.pid, program_name(recording.command),
                            recording.problem.empty() ? "no event yet" : recording.problem),
                Style::kWarning);
  }
  for (const LiveRecording& run : picture.waiting) {
    if (y >= end) break;
    screen->put(0, y++,
                fmt::format("{:>8} {} {}", run.id.pid, program_name(run.command), kNoAllocationYet),
                Style::kDim);
  }
  return y;
}

}  // namespace

const char* no_rows_text(const Picture& picture) {
  return picture.waiting.empty() ? "None of your recordings is running."
                                 : "None of your recorded programs has allocated anything yet.";
}

void draw_overview(const TopState& state, int y, int end, Screen* screen) {
  const auto rows = recorded_rows(state);
  const int count = static_cast<int>(rows.size());
  const int selected = std::clamp(state.selected[0], 0, std::max(count - 1, 0));
  draw_head(head_text(columns_of(state, screen->width())), y++, screen);
  if (state.picture.recordings.empty() && state.picture.waiting.empty()) {
    const std::string none = "None of your recordings is running. Start one:";
    const std::string command = " gpumemprof run -- python train.py";  // never in two pieces
    const bool fits = none.size() + command.size() <= static_cast<size_t>(screen->width());
    screen->put(0, y++, none + (fits ? command : ""), Style::kDim);
    if (!fits) screen->put(0, y++, command, Style::kDim);
  }
  const int visible = visible_rows(state, screen->height());
  int i = first_visible(selected, visible, count);
  for (int shown = 0; i < count && shown < visible && y < end; ++i, ++shown, ++y) {
    draw_row(state, rows[static_cast<size_t>(i)], y, screen);
    if (i == selected) screen->paint_row(y, Style::kSelected);
  }
  y = draw_others(state.picture, y, count == 0 ? end : end - 8, screen);
  if (count == 0 || y + 2 >= end) return;
  const RecordedRow& row = rows[static_cast<size_t>(selected)];
  ++y;
  constexpr int kLeastBelow = 7;  // of the holders, under the chart
  // One look, as `--once` takes, is no line.
  if (row.device->history.size() >= 2 && end - y >= kChartRows + 2 + kLeastBelow) {
    draw_history(state, row, y, screen);
    y += kChartRows + 2;
  }
  const HolderColumns columns = holder_columns(*row.device, screen->width());
  const int last = state.picture.alerts.empty() ? end : end - 1;
  y = put_whole(category_text(row.device->categories), y, last, Style::kBold, screen);
  y = put_whole(host_sum_text(row.recording->host_memory), y, last, Style::kBold, screen);
  if (y < last) draw_head(holder_head(row, columns), y++, screen);
  for (const FollowedHolder& holder : row.device->holders) {
    if (y >= last) break;
    screen->put(0, y++, holder_text(holder, columns, state, screen->width()));
  }
  if (state.picture.alerts.empty()) return;
  const PictureAlert& alert = state.picture.alerts.back();
  screen->put(0, end - 1,
              fmt::format("{}: {}: {}", alert.is_critical ? "critical" : "warning", alert.subject,
                          alert.text),
              alert.is_critical ? Style::kCritical : Style::kWarning);
}

void draw_holders(const TopState& state, int y, int end, Screen* screen) {
  const auto rows = recorded_rows(state);
  if (rows.empty()) {
    draw_head("HOLDERS", y++, screen);
    screen->put(0, y, no_rows_text(state.picture), Style::kDim);
    return;
  }
  const int chosen = std::clamp(state.selected[0], 0, static_cast<int>(rows.size()) - 1);
  const RecordedRow& row = rows[static_cast<size_t>(chosen)];
  const HolderColumns columns = holder_columns(*row.device, screen->width());
  y = put_whole(category_text(row.device->categories), y, end, Style::kBold, screen);
  if (y < end) draw_head(holder_head(row, columns), y++, screen);
  const auto& holders = row.device->holders;
  const int count = static_cast<int>(holders.size());
  const int selected =
      std::clamp(state.selected[static_cast<size_t>(View::kHolders)], 0, std::max(count - 1, 0));
  for (int i = 0; i < count && y < end; ++i, ++y) {
    screen->put(0, y,
                holder_text(holders[static_cast<size_t>(i)], columns, state, screen->width()));
    if (i == selected) screen->paint_row(y, Style::kSelected);
  }
  if (count == 0) return;
  ++y;
  const FollowedHolder& holder = holders[static_cast<size_t>(selected)];
  screen->put(
      0, y++,
      fmt::format("Its {}stack, the allocating line first:", holder.stacks > 1 ? "largest " : ""),
      Style::kBold);
  for (const std::string& line : holder.stack) {
    if (y >= end) return;
    screen->put(2, y++, with_short_path(line, state));
  }
}

}  // namespace gpumemprof
