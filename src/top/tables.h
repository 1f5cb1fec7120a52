// The parts of the screen, one function each; only src/top uses them.
#pragma once

#include <optional>
#include <string>

#include "top/view.h"

namespace gpumemprof {

/// The first row below the tabs and the memories: where the table of a view begins.
int table_top(const TopState& state);

/// Rows that a view's table has.
int row_count(const TopState& state);

/// How many of them a screen of `height` rows has room for.
int visible_rows(const TopState& state, int height);

/// Devices of which the driver is recorded: rows of draw_gpus().
int sum_count(const Picture& picture);
/// Rows of the sum below its table, at most.
inline constexpr int kSumRows = 18;

/// Where there is no row of a recording.
const char* no_rows_text(const Picture& picture);

/// Each draws its table from row `y` to before `end`.
void draw_overview(const TopState& state, int y, int end, Screen* screen);
void draw_holders(const TopState& state, int y, int end, Screen* screen);
void draw_processes(const TopState& state, int y, int end, Screen* screen);
void draw_ranks(const TopState& state, int y, int end, Screen* screen);
void draw_alerts(const TopState& state, int y, int end, Screen* screen);
void draw_gpus(const TopState& state, int y, int end, Screen* screen);
void draw_help(const TopState& state, int y, int end, Screen* screen);

/// The first row to show so that `selected` is among `visible` of `count` rows.
int first_visible(int selected, int visible, int count);

/// "+1.50 MiB/s", "0 B/s", "unknown".
std::string rate_text(const std::optional<double>& bytes_per_second);

/// "pid 12 train.py cuda:0"; of a rank "rank 3 train.py cuda:0".
std::string row_name(const RecordedRow& row);

}  // namespace gpumemprof
