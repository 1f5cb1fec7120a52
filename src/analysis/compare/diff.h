// What changed between two runs: every stack of one beside the same stack of the other.
//
// Two stacks are the same where all their frames have the same file, function and line. Of a file
// only the part counts that does not depend on the machine: below site-packages, below the standard
// library's folder, else its name. So one program in two checkouts, environments or users' homes
// aligns. Lines that an edit has moved are matched by what they allocated (moved_lines.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "base/large_pages.h"

namespace gpumemprof {

/// The end of a step, where that is compared instead of the whole run.
struct DiffMoment {
  uint64_t step = 0;  ///< the program's number of it
  uint64_t time_ns = 0;
  uint64_t event = 0;                       ///< number of the event after it
  std::optional<uint64_t> step_peak_bytes;  ///< the most that was live within it, where it is known
};

/// One run, read to its end. All three outlive the Diff; `device` is null where nothing was
/// allocated.
struct DiffSide {
  const Analysis* analysis = nullptr;
  const Tables* tables = nullptr;
  const DeviceAnalysis* device = nullptr;
  /// Then `device` is at_moment() of it: its peak and its end are both what was live.
  std::optional<DiffMoment> moment;
  /// `device` is not the run's main one, but the highest of the role that the other run's has.
  bool is_by_role = false;
};

/// `device` as if all that is known of it were what was live at `moment`: peak, end and their
/// holders and categories are those of the moment, totals what was allocated up to then.
DeviceAnalysis at_moment(const DeviceAnalysis& device, const LiveMoment& moment);
/// What a comparison says of the end of step `step`. `device` is the whole run's.
DiffMoment diff_moment(const DeviceAnalysis& device, const LiveMoment& moment, uint64_t step);

/// What one row held in one run.
struct DiffFigures {
  uint64_t peak_bytes = 0;  ///< at the device's peak
  uint64_t peak_count = 0;  ///< blocks
  uint64_t end_bytes = 0;
  uint64_t end_count = 0;
  uint64_t total_bytes = 0;  ///< allocated over the whole run
  uint64_t total_count = 0;
};

/// At the peak. kAppeared: this stack allocated nothing at all in A; kVanished: nothing in B.
enum class Change : uint8_t { kSame, kGrew, kShrank, kAppeared, kVanished };
const char* change_name(Change change);  ///< "same", "grew", …

struct DiffRow {
  DiffFigures a, b;
  bool from_b = false;  ///< whose tables `node` belongs to: B's where B has it
  uint32_t node = 0;    ///< a stack, or the frame that the row is grouped by; 0: no stack known
  Change change() const;
  /// Nothing of it was live in either run; what it allocated may differ.
  bool is_never_live() const {
    return a.peak_count + a.end_count + b.peak_count + b.end_count == 0;
  }
  /// B - A, in wrapping arithmetic: right for all that fits 63 bits.
  int64_t peak_delta() const { return static_cast<int64_t>(b.peak_bytes - a.peak_bytes); }
  int64_t end_delta() const { return static_cast<int64_t>(b.end_bytes - a.end_bytes); }
};

using DiffRows = std::vector<DiffRow, LargePages<DiffRow>>;

/// Without its sign, for every value.
inline uint64_t magnitude(int64_t delta) {
  const uint64_t bits = static_cast<uint64_t>(delta);
  return delta < 0 ? uint64_t{0} - bits : bits;
}

/// Rows of each list are disjoint and, but for by_stack, complete: they add up to both devices' peaks and ends.
/// Largest change at the peak first, then at the end, then the larger row.
struct Diff {
  /// A row of by_layer.
  struct LayerPart {
    std::string layer;  ///< empty: in no layer that is known
    std::string part;   ///< as layer_work.h says
  };
  DiffSide a, b;
  DiffRows by_stack;     ///< those that diff_runs() was asked for
  DiffRows by_line;      ///< file, function and line of headline_node()
  DiffRows by_function;  ///< the same frame without its line: survives edits above it
  uint64_t moved_lines = 0;  ///< that B has under another number, matched by moved_lines()
  /// By layer and part of its work, the same text being the same layer; a row's `node` is the index
  /// in `layers`. Empty where neither run names a layer.
  DiffRows by_layer;
  std::vector<LayerPart> layers;
  /// By category, and by module: that of a tensor's name, else the one that was called. A row's
  /// `node` is the index in `groups`; their totals are not known, so that a row has appeared where
  /// A held nothing of it at its peak and its end. Empty where `why_no_categories` and
  /// `why_no_modules` say why.
  DiffRows by_category, by_module;
  std::vector<std::string> groups;  ///< "": in no module
  std::string why_no_categories, why_no_modules;
};

/// Which stacks by_stack has. A run has far more stacks than it holds memory of at one moment.
enum class DiffStacks : uint8_t {
  kLive,   ///< those that are live at the peak or the end of either run
  kEvery,  ///< those too that only allocated
};

/// O(frames of all stacks); memory the same.
Diff diff_runs(const DiffSide& a, const DiffSide& b, DiffStacks stacks = DiffStacks::kEvery);

/// The part of a path by which files are aligned. "/venv/lib/python3.11/site-packages/torch/a.py"
/// gives "torch/a.py", "/usr/lib/python3.11/json/x.py" "json/x.py", "/any/where/train.py"
/// "train.py".
std::string_view aligned_file(std::string_view path);

}  // namespace gpumemprof
