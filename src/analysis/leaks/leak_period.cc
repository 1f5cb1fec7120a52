#include "analysis/leaks/leak_period.h"

namespace gpumemprof {
namespace {

void accumulate(const std::vector<uint32_t>& by_window, Period* period) {
  uint64_t done = 0;
  bool any = false;
  for (uint32_t window = 0; window < by_window.size(); ++window) {
    done += by_window[window];
    period->done.push_back(done);
    if (by_window[window] == 0) continue;
    if (!any) period->first_window = window;
    any = true;
    period->last_window = window;
  }
}

Period of_marks(const ProcessHistory& history) {
  Period period{.from = Period::From::kMarks, .are_steps = true};
  accumulate(history.steps, &period);
  return period;
}

Period of_rounds(const ProcessHistory& history, const Tables& tables, uint32_t from_window) {
  Period period;
  const auto rounds = find_rounds(history, tables, from_window, &period.why_none);
  if (!rounds) return period;
  period.from = Period::From::kRounds;
  period.stack = rounds->stack;
  period.are_steps = rounds->have_passes, period.in_worker = rounds->in_worker;
  std::vector<uint32_t> by_window(history.windows());
  uint64_t allocs = 0, done = 0;
  for (const HeldCell& cell : rounds->cells) {
    if (cell.window < from_window) continue;
    allocs += cell.allocs;
    by_window[cell.window] = static_cast<uint32_t>(allocs / rounds->allocs_a_round - done);
    done = allocs / rounds->allocs_a_round;
  }
  accumulate(by_window, &period);
  period.last_window = history.windows() - 1;
  return period;
}

}  // namespace

std::vector<Period> find_periods(const ProcessHistory& history, const Tables& tables) {
  std::vector<Period> out;
  uint64_t marked = 0;
  uint32_t after_marks = 0;
  for (uint32_t window = 0; window < history.steps.size(); ++window) {
    marked += history.steps[window];
    if (history.steps[window] != 0) after_marks = window + 1;
  }
  if (marked >= kLeastSteps) out.push_back(of_marks(history));
  const bool has_steps = !out.empty();
  if (2 * after_marks <= history.windows()) {
    out.push_back(of_rounds(history, tables, after_marks));
    if (has_steps) out.back().from_window = after_marks;
  } else if (!has_steps) {
    // A few long steps, of many micro-batches each.
    out.push_back(of_rounds(history, tables, 0));
    if (!out.back().why_none.empty())
      out.back().why_none = "the program has " + std::to_string(marked) + " steps, fewer than " +
                            std::to_string(kLeastSteps);
  } else if (after_marks < history.windows()) {
    Period after = of_rounds(history, tables, after_marks);
    after.from_window = after_marks;
    if (after.steps() >= kLeastRoundsAfterSteps) out.push_back(std::move(after));
  }
  return out;
}

}  // namespace gpumemprof
