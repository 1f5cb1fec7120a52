// What `gpumemprof top` shows and what keys do to it, apart from any terminal.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "picture/picture.h"
#include "top/screen.h"

namespace gpumemprof {

enum class View : uint8_t { kOverview, kHolders, kProcesses, kRanks, kAlerts, kGpus, kHelp };
inline constexpr int kViewCount = 7;
enum class Order : uint8_t { kAllocated, kPeak, kChange, kPid };

struct TopState {
  Picture picture;
  View view = View::kOverview;
  std::array<int, kViewCount> selected{};  ///< row of each view
  Order order = Order::kAllocated;
  bool paused = false, unicode = true;
  double warning_percent = 80, critical_percent = 95;
  std::string working_folder;  ///< paths of code below it are shown relative to it; may be empty
  std::string tracking;  ///< the file that samples are written to; empty: none
  std::string message;   ///< shown instead of the keys until the next key
};

/// One device of one recording: a row of the overview.
struct RecordedRow {
  const PictureRecording* recording;
  const PictureDevice* device;
};
/// In the chosen order. Points into `state.picture`.
std::vector<RecordedRow> recorded_rows(const TopState& state);

/// The whole screen. Any size: what does not fit is left out from the end.
Screen draw(const TopState& state, int width, int height);

/// Keys that are no characters.
enum class Key : uint8_t { kNone, kUp, kDown, kPageUp, kPageDown, kHome, kEnd, kEnter, kTab };
/// What a key wants that the state alone cannot do.
enum class Wish : uint8_t { kNone, kQuit, kExport, kTrack, kThresholds };

Wish press(char character, TopState* state);
Wish press(Key key, TopState* state);
/// A click at a cell: a tab, or a row of the table. `height` as it was drawn.
void click(int x, int y, int height, TopState* state);

}  // namespace gpumemprof
