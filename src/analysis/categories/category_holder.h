// What memory is, as answers have it: by stack, category and name; at the peak, at the end, at
// moments and over time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/categories/category_rules.h"
#include "analysis/categories/difference_series.h"

namespace gpumemprof {

/// What one stack held of one category and, where it has a name, for one tensor.
struct CategoryHolder {
  uint32_t stack = 0;
  Category category = Category::kUnknown;
  WhyUnknown why = WhyUnknown::kNone;  ///< of recordings, where the category is unknown
  uint32_t name = 0;  ///< StringTable id of a parameter's name or the like; 0: none
  uint64_t bytes = 0, count = 0;
  /// Where the program told nothing: the SnapshotRule that decided, and the phase that it took it
  /// for.
  static constexpr uint8_t kNotByRules = 255;
  uint8_t rule = kNotByRules;
  WorkPhase phase = WorkPhase::kNone;
};

/// What the program said, or what can be told apart: a moment at which the categories are known.
struct CategoryMoment {
  enum Kind : uint8_t { kStepEnd, kPhaseBegin, kPhaseEnd };
  Kind kind = kStepEnd;
  uint32_t process = 0;
  uint32_t text = 0;   ///< StringTable id of the phase
  uint64_t value = 0;  ///< number of the step
  uint64_t time_ns = 0;
  uint64_t event = 0;  ///< number of the event after it
};

using CategoryBytes = DifferenceSeries<kCategories>::Sample;

/// What was going on when the peak was reached.
struct PeakWork {
  bool is_known = false;  ///< false: the peak was before what is known
  uint32_t stack = 0;     ///< of the allocation that reached it
  uint64_t step = 0;      ///< number of the step that went on; 0 before the end of the first
  uint64_t steps = 0;     ///< steps that the process told in the whole recording
  /// Of what was live at the peak: freed before that step ended, or, where the step did not end,
  /// before the recording did.
  uint64_t freed_in_step_bytes = 0;
  bool step_ended = false;
};

/// A gradient that was freed long after its last use: until the program's next pass, say.
struct IdleGradient {
  uint64_t begin_event = 0, end_event = 0;  ///< of its device: idle from that on, freed by this
  uint64_t size_bytes = 0;
  uint32_t stack = 0, freed_at = 0;  ///< of its allocation and of its free; 0: not known
  bool operator==(const IdleGradient&) const = default;
};

/// Of one device.
struct DeviceCategories {
  bool is_known = false;
  std::string why_not;  ///< where it is not
  /// By stacks and lives alone (snapshot_rules.h): the program told nothing, each holder has a rule.
  bool is_by_rules = false;
  bool has_names = false;  ///< the package told what has a role in the program
  /// At the peak; largest first, all of it. Empty where the peak was before what is known.
  std::vector<CategoryHolder> at_peak;
  std::vector<CategoryHolder> at_end;
  std::vector<CategoryHolder> before_exit;  ///< as DeviceAnalysis::holders_before_exit
  PeakWork peak;
  /// Where is_by_rules: gradients that outlived the optimizer's step, or the forward pass after it,
  /// during which something was allocated.
  std::vector<IdleGradient> idle_gradients;
  /// Where is_by_rules: of gradients at the peak that an earlier step made and that are not known
  /// to be idle then. Where no optimizer's step is seen, each pass counts as one.
  uint64_t earlier_gradient_bytes = 0;
  /// Samples `sample_ns` apart, the first one at `start_ns`; indexed by Category.
  uint64_t start_ns = 0, sample_ns = 1;
  std::vector<CategoryBytes> timeline;
  /// At Categories::moments(), one for each.
  std::vector<CategoryBytes> at_moments;

  CategoryBytes bytes_at_peak() const;
};

/// What the rules for snapshots make of a block of a followed allocator.
struct RuledBlock {
  uint32_t place = 0;  ///< place_of() its address
  uint8_t rule = 0;    ///< SnapshotRule; 0: none covers it
  WorkPhase phase = WorkPhase::kNone;
  static uint32_t place_of(uint64_t address) { return static_cast<uint32_t>(address >> 9); }
};

}  // namespace gpumemprof
