// The sums of devices: what is used, and what that is made of.
#include <fmt/format.h>

#include <algorithm>

#include "base/size.h"
#include "report/describe/describe.h"
#include "report/render/text.h"
#include "top/tables.h"

namespace gpumemprof {
namespace {

struct SumRow {
  const PictureRecording* recording;
  const PictureSum* sum;
};

std::vector<SumRow> sum_rows(const Picture& picture) {
  std::vector<SumRow> rows;
  for (const PictureRecording& recording : picture.recordings)
    for (const PictureSum& sum : recording.sums) rows.push_back({&recording, &sum});
  return rows;
}

std::string bytes_text(const std::optional<uint64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : "unknown";
}

std::string unexplained_text(const DeviceIdentity& sum) {
  if (!sum.unexplained_bytes) return "unknown";
  const int64_t bytes = *sum.unexplained_bytes;
  const auto size = static_cast<uint64_t>(bytes);
  return (bytes < 0 ? "-" : "+") + format_bytes(bytes < 0 ? 0 - size : size);
}

}  // namespace

int sum_count(const Picture& picture) { return static_cast<int>(sum_rows(picture).size()); }

void draw_gpus(const TopState& state, int y, int end, Screen* screen) {
  screen->put(0, y,
              fmt::format("{:>8} {:<7} {:<9} {:>9} {:>9} {:>9} {:>11} PROGRAM", "PID", "DEVICE",
                          "IS", "USED", "OTHERS", "THIS", "UNEXPLAINED"));
  screen->paint_row(y++, Style::kHeader);
  const std::vector<SumRow> rows = sum_rows(state.picture);
  const int count = static_cast<int>(rows.size());
  if (count == 0) {
    screen->put(0, y, "No running recording uses CUDA.", Style::kDim);
    return;
  }
  const int selected = std::clamp(state.selected[static_cast<size_t>(View::kGpus)], 0, count - 1);
  const int visible = visible_rows(state, screen->height());
  int i = first_visible(selected, visible, count);
  for (int shown = 0; i < count && shown < visible && y < end; ++i, ++shown, ++y) {
    const auto& [recording, of] = rows[static_cast<size_t>(i)];
    screen->put(0, y,
                fmt::format("{:>8} {:<7.7} {:<9.9} {:>9} {:>9} {:>9} {:>11} {}", recording->pid,
                            of->name, of->accelerator.empty() ? "unknown" : of->accelerator,
                            bytes_text(of->sum.device_used_bytes), bytes_text(of->sum.others_bytes),
                            bytes_text(of->sum.process_bytes), unexplained_text(of->sum),
                            program_name(recording->command)));
    if (i == selected) screen->paint_row(y, Style::kSelected);
  }
  if (y >= end) return;
  const auto& [recording, of] = rows[static_cast<size_t>(selected)];
  screen->put(0, y,
              fmt::format("THE SUM OF {} {} {}", subject_name(*recording),
                          program_name(recording->command), of->name));
  screen->paint_row(y++, Style::kHeader);
  // The last term is what the view is for: libraries make room for it.
  const auto lines_of = [&](size_t libraries) {
    Section section;
    section.add(identity_table(of->moment, of->sum, libraries));
    return text_lines(section, {});
  };
  const auto least = static_cast<int>(lines_of(0).size());
  const auto libraries = static_cast<size_t>(std::max(end - y - least, 0));
  for (const std::string& line : lines_of(libraries)) {
    if (y >= end) return;
    screen->put(0, y++, line);
  }
}

}  // namespace gpumemprof
