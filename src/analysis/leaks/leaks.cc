#include "analysis/leaks/leaks.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "analysis/categories/attribution.h"
#include "analysis/leaks/leak_evidence.h"
#include "base/path_parts.h"
#include "trace/own_code.h"
#include "trace/process_end.h"

namespace gpumemprof {
namespace {

/// Of one process, by site: the blocks that were made after the warm-up and are live; `old_count`
/// of them before the last steps.
struct Survivors {
  uint64_t count = 0, largest_bytes = 0, bytes = 0, old_count = 0, old_bytes = 0;
  /// Of blocks as young as the last two steps, and of no size that an older one has.
  uint64_t passing_bytes = 0;
  /// Of a block that stays: one of the last steps may be replaced in the next.
  double mean_bytes() const {
    return old_count != 0 ? static_cast<double>(old_bytes) / static_cast<double>(old_count)
                          : static_cast<double>(bytes) / static_cast<double>(count);
  }
};
using SurvivorsBySite = absl::flat_hash_map<SiteKey, Survivors>;

/// What is as young as one step in so many is replaced in every step, not kept.
constexpr uint64_t kLastSteps = 8;
/// A variable has a block until the next step replaces it.
constexpr uint64_t kStepsOfVariable = 2;

SurvivorsBySite survivors_since(uint64_t warm_up_steps, const ProcessHistory& history,
                                const Period& period) {
  const uint64_t time_ns = time_after(warm_up_steps, history, period);
  const auto time_of_last = [&](uint64_t steps) {
    return time_after(period.steps() - std::min(steps, period.steps()), history, period);
  };
  const uint64_t last_ns = time_of_last(std::max<uint64_t>(2, period.steps() / kLastSteps));
  const uint64_t variable_ns = time_of_last(kStepsOfVariable);
  const auto is_young = [&](const KeptBlock& block) {
    return block.time_ns != LiveBlock::kUnknownTime && block.time_ns >= variable_ns;
  };
  absl::flat_hash_set<std::pair<SiteKey, uint64_t>> old_sizes;
  for (const KeptBlock& block : history.kept) {
    if (!is_young(block)) old_sizes.insert({site_key_of(block), block.size_bytes});
  }
  SurvivorsBySite out;
  for (const KeptBlock& block : history.kept) {
    if (block.time_ns == LiveBlock::kUnknownTime || block.time_ns < time_ns) continue;
    Survivors& of_site = out[site_key_of(block)];
    ++of_site.count;
    of_site.bytes += block.size_bytes;
    if (block.time_ns < last_ns) ++of_site.old_count, of_site.old_bytes += block.size_bytes;
    of_site.largest_bytes = std::max(of_site.largest_bytes, block.size_bytes);
    if (is_young(block) && !old_sizes.contains({site_key_of(block), block.size_bytes}))
      of_site.passing_bytes += block.size_bytes;
  }
  return out;
}

double seconds_a_step(const ProcessHistory& history, const Period& period) {
  const uint64_t first = history.end_ns[period.first_window];
  const uint64_t last = history.end_ns[period.last_window];
  const uint64_t steps = period.done[period.last_window] - period.done[period.first_window];
  return steps == 0 || last <= first
             ? 0
             : static_cast<double>(last - first) * 1e-9 / static_cast<double>(steps);
}

void add(const SiteHistory& site, const LeakGrowth& growth, const SurvivorsBySite& survivors,
         Leak* leak) {
  LeakStack stack{.stack = site.stack,
                  .told_by_bytes = site.told_by_bytes,
                  .growth = growth,
                  .live_bytes = site.live_bytes,
                  .live_count = site.live_count};
  const auto known = survivors.find(site_key_of(site));
  if (known != survivors.end()) {
    stack.survivors = known->second.count;
    stack.largest_bytes = known->second.largest_bytes;
    stack.survivor_bytes = known->second.bytes;
    stack.old_survivors = known->second.old_count;
    // Not where a larger block replaces each, or where all that was made stays.
    if (stack.old_survivors != 0 && site.alloc_count > site.live_count)
      stack.live_bytes -= std::min(stack.live_bytes, known->second.passing_bytes);
    if (known->second.bytes != 0)
      leak->survivors_a_step += growth.bytes_a_step / known->second.mean_bytes();
  }
  leak->bytes_a_step += growth.bytes_a_step;
  leak->live_bytes += stack.live_bytes;
  leak->steps = std::max(leak->steps, growth.steps);
  leak->stacks.push_back(std::move(stack));
}

void finish(Leak* leak) {
  std::ranges::stable_sort(leak->stacks, std::greater<>(),
                           [](const LeakStack& s) { return s.growth.bytes_a_step; });
  leak->grown_bytes = grown_in_steps(*leak);
}

/// An optimizer makes its state for a parameter when it first steps it: what grows as layers are
/// unfrozen has an end. That of models which are made anew has none.
bool is_first_state(const SiteHistory& site, const ProcessHistory& history, const Tables& tables) {
  return history.state_names != 0 && site.live_count <= history.state_names &&
         attribution_of(tables, site.stack).phase == WorkPhase::kOptimizer;
}

/// Of one process, on all its devices (a worker joins what it made in shared memory): what stacks
/// allocate that do so for the first time late.
class LateStacks {
 public:
  explicit LateStacks(const ProcessHistory& history) {
    for (const SiteHistory& site : history.sites) {
      stacks_.push_back({site.first_alloc, site.alloc_bytes});
    }
    std::ranges::sort(stacks_, {}, &Late::first_alloc);
    for (size_t i = stacks_.size(); i-- > 1;) {
      stacks_[i - 1].most_bytes = std::max(stacks_[i - 1].most_bytes, stacks_[i].most_bytes);
    }
  }

  /// Of the stacks that first allocate when those of the line have done so for the last time, what
  /// one has allocated at most; nothing where there are none.
  std::optional<uint64_t> most_after(const std::vector<const SiteHistory*>& line) const {
    const uint64_t last = std::ranges::max(line, {}, &SiteHistory::last_alloc)->last_alloc;
    const auto after = std::ranges::upper_bound(stacks_, last, {}, &Late::first_alloc);
    return after == stacks_.end() ? std::nullopt : std::optional(after->most_bytes);
  }

 private:
  struct Late {
    uint64_t first_alloc, most_bytes;  // of this one and those that come later
  };
  std::vector<Late> stacks_;
};

/// What was gathered on purpose is joined after the last round: one block as large as all of it.
bool is_joined_after(const std::vector<const SiteHistory*>& line, uint64_t kept_bytes,
                     const LateStacks& late) {
  const std::optional<uint64_t> most = late.most_after(line);
  return most && *most >= kept_bytes;
}

/// Of what grew after the last step, the line gave so much back before: then it keeps it for an
/// evaluation, and the last one ends with the program.
constexpr double kShareGivenBack = 0.25;

bool was_given_back(const std::vector<const SiteHistory*>& line, const Period& period,
                    uint64_t grown_bytes) {
  if (period.from_window == 0) return false;
  const std::vector<double> floors = floors_by_window(line, period);
  const auto last_step = floors.begin() + period.from_window;
  const double before = *std::max_element(floors.begin(), last_step);
  return before - *last_step >= kShareGivenBack * static_cast<double>(grown_bytes);
}

/// Of one process, on all its devices: where TensorFlow built graphs of functions, by each frame of
/// the program's own that this was for.
class Traces {
 public:
  Traces(const ProcessHistory& history, const Tables& tables) : history_(history), tables_(tables) {}

  /// In how many steps, at least, a function was traced for the line.
  size_t steps_of(uint32_t frame, const Period& period) {
    if (!is_read_) read();
    std::set<uint64_t> steps;
    const auto sites = sites_.find(frame);
    if (sites == sites_.end()) return 0;
    for (const SiteHistory* site : sites->second) {
      for (const HeldCell& cell : site->cells) {
        if (cell.allocs != 0 && cell.window >= period.from_window)
          steps.insert(period.done[cell.window]);
      }
    }
    return steps.size();
  }

 private:
  void read() {
    is_read_ = true;
    for (const SiteHistory& site : history_.sites) {
      if (!is_in_trace(tables_, site.stack)) continue;
      for (uint32_t node = site.stack; node != 0; node = tables_.stacks.node(node).parent) {
        if (!is_user_file(tables_.strings.get(tables_.stacks.frame_of(node).file))) continue;
        sites_[tables_.stacks.node(node).frame].push_back(&site);
      }
    }
  }

  const ProcessHistory& history_;
  const Tables& tables_;
  bool is_read_ = false;
  absl::flat_hash_map<uint32_t, std::vector<const SiteHistory*>> sites_;
};

/// Of the steps in which the line comes to keep more, a function is traced in one of so many.
constexpr size_t kRisesATrace = 2;

using SitesOfLines = std::map<std::tuple<uint16_t, uint32_t>, std::vector<const SiteHistory*>>;

SitesOfLines sites_of_lines(const ProcessHistory& history, const Tables& tables) {
  SitesOfLines out;  // by device, frame of the line
  for (const SiteHistory& site : history.sites) {
    const uint32_t frame = tables.stacks.node(leak_line(tables, site.stack)).frame;
    out[{site.device, frame}].push_back(&site);
  }
  return out;
}

/// Of one process, in one kind of its steps.
class Search {
 public:
  Search(const ProcessHistory& history, const LateStacks& late, Traces* traces,
         const Period& period, const Tables& tables)
      : history_(history), late_(late), traces_(*traces), period_(period), tables_(tables) {}

  /// Nothing where the line does not grow. `are_models_made`: new ones, all the time.
  std::optional<Leak> leak_of(const std::vector<const SiteHistory*>& line, bool are_models_made) {
    std::vector<const SiteHistory*> sites;
    for (const SiteHistory* site : line) {
      if (are_models_made || !is_first_state(*site, history_, tables_)) sites.push_back(site);
    }
    const Growing growing = growing_of(sites);
    if (growing.empty()) return std::nullopt;
    Leak leak{.process = history_.process, .device = line.front()->device};
    leak.node = leak_line(tables_, growing.begin()->first->stack);
    leak.period_from = period_.from;
    if (period_.from == Period::From::kRounds) leak.round_node = call_line(tables_, period_.stack);
    leak.is_after_steps = period_.from_window != 0;
    leak.seconds_a_step = seconds_a_step(history_, period_);
    leak.is_used_after = late_.most_after(line).has_value();
    leak.are_steps = period_.are_steps || (period_.in_worker && are_tasks(leak));
    for (const SiteHistory* site : line) {
      const auto growth = growing.find(site);
      if (growth == growing.end()) {
        leak.others.push_back(site->stack);
      } else {
        add(*site, growth->second, survivors(growth->second.warm_up_steps), &leak);
      }
    }
    finish(&leak);
    if (was_given_back(line, period_, leak.grown_bytes)) return std::nullopt;
    const size_t traces = traces_.steps_of(tables_.stacks.node(leak.node).frame, period_);
    leak.is_retraced = traces != 0 && kRisesATrace * traces >= leak.most().rise_steps.size();
    if (period_.from == Period::From::kRounds && !leak.is_retraced &&
        is_joined_after(line, leak.live_bytes, late_)) {
      return std::nullopt;
    }
    return leak;
  }

 private:
  /// A worker's rounds are its tasks where it ended between two of them and used nothing of what it
  /// has from them; else they may be within one, as those of a comprehension are.
  bool are_tasks(const Leak& leak) const {
    return !leak.is_used_after && !is_comprehension(tables_, leak.node) &&
           history_.process < tables_.processes.size() &&
           ended_in_order(tables_, tables_.processes[history_.process]);
  }

  using Growing = std::map<const SiteHistory*, LeakGrowth>;

  /// What grows, and with it what the same line keeps more of, if less evenly. The rest where it
  /// grows as a whole: a recursion, or a module that is made anew, has other stacks in each step.
  Growing growing_of(const std::vector<const SiteHistory*>& sites) const {
    Growing out;
    for (const SiteHistory* site : sites) {
      if (auto growth = growth_of(*site, period_)) out.emplace(site, std::move(*growth));
    }
    if (!out.empty()) {
      for (const SiteHistory* site : sites) {
        if (out.contains(site)) continue;
        if (auto along = growth_along(*site, period_)) out.emplace(site, std::move(*along));
      }
    }
    std::vector<const SiteHistory*> rest;
    double live_bytes = 0;
    for (const SiteHistory* site : sites) {
      if (out.contains(site)) continue;
      rest.push_back(site);
      live_bytes += static_cast<double>(site->live_bytes);
    }
    const auto all = rest.size() > 1 ? growth_of(rest, period_) : std::nullopt;
    if (!all || live_bytes == 0) return out;
    for (const SiteHistory* site : rest) {
      if (site->live_bytes == 0) continue;
      const double share = static_cast<double>(site->live_bytes) / live_bytes;
      LeakGrowth& growth = out.emplace(site, *all).first->second;
      growth.bytes_a_step *= share;
      growth.grown_bytes = static_cast<uint64_t>(share * static_cast<double>(all->grown_bytes));
    }
    return out;
  }

  const SurvivorsBySite& survivors(uint64_t since_step) {
    const auto [known, is_new] = survivors_.try_emplace(since_step);
    if (is_new) known->second = survivors_since(since_step, history_, period_);
    return known->second;
  }

  const ProcessHistory& history_;
  const LateStacks& late_;
  Traces& traces_;
  const Period& period_;
  const Tables& tables_;
  std::map<uint64_t, SurvivorsBySite> survivors_;  // by the step since which they were made
};

void tell_passes(const ProcessHistory& history, const Period& period, const Tables& tables,
                 std::vector<Leak>* leaks) {
  GrowingStacks grows;
  for (const Leak& leak : *leaks) {
    for (const LeakStack& stack : leak.stacks) {
      grows[stack.stack] += stack.growth.bytes_a_step;
    }
  }
  const Passes passes = passes_of(history, period, tables, grows);
  for (Leak& leak : *leaks) {
    leak.is_training = passes.have_backward;
    leak.trains_in_steps = passes.have_backward_in_steps;
    leak.a_size_rises = passes.a_size_rises;
    leak.sizes_rise = passes.have_backward ? passes.sizes_rise : passes.a_size_rises;
    leak.sizes_rise |= !period.are_steps && !period.in_worker && passes.rounds_work_on_more;
  }
}

}  // namespace

uint64_t grown_in_steps(const Leak& leak) {
  const double bytes = leak.bytes_a_step * static_cast<double>(leak.steps);
  return static_cast<uint64_t>(std::llround(std::max(0.0, bytes)));
}

std::optional<FewTimes> few_times(const Leak& leak) {
  constexpr uint64_t kFewTimes = 8, kLeastApart = 4;
  const std::vector<uint64_t>& times = leak.most().time_steps;
  if (times.size() > kFewTimes || times.size() < 2) return std::nullopt;
  const uint64_t intervals = times.size() - 1, steps = times.back() - times.front();
  if (steps < kLeastApart * intervals) return std::nullopt;
  const uint64_t apart = (steps + intervals / 2) / intervals;
  const uint64_t measured = std::max<uint64_t>(1, (leak.steps + apart / 2) / apart);
  return FewTimes{times.size() + (leak.most().comes_at_end ? 1 : 0), apart,
                  leak.grown_bytes / measured};
}

uint64_t time_after(uint64_t steps, const ProcessHistory& history, const Period& period) {
  for (uint32_t window = 0; window < period.done.size(); ++window) {
    if (period.done[window] < steps) continue;
    // A window may go on after a step's end.
    const bool is_marked = period.from == Period::From::kMarks && window < history.step_ns.size() &&
                           history.step_ns[window] != 0;
    return is_marked ? history.step_ns[window] : history.end_ns[window];
  }
  return 0;
}

bool is_comprehension(const Tables& tables, uint32_t line) {
  return tables.strings.get(tables.stacks.frame_of(line).function).ends_with("comp>");
}

uint32_t call_line(const Tables& tables, uint32_t stack) {
  uint32_t outside = stack;
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame_of(node);
    if (!path_has(tables.strings.get(frame.file), "/torch/nn/modules/")) continue;
    outside = tables.stacks.node(node).parent;
  }
  const uint32_t line = own_node(tables, outside);
  return line != 0 ? line : leak_line(tables, stack);
}

uint32_t leak_line(const Tables& tables, uint32_t stack) {
  if (const uint32_t own = own_node(tables, stack); own != 0) return own;
  const uint32_t python = python_node(tables, stack);
  return python != 0 ? python : stack;
}

std::vector<Leak> find_leaks(const std::vector<ProcessHistory>& histories, const Tables& tables) {
  std::vector<Leak> out;
  for (const ProcessHistory& history : histories) {
    SitesOfLines lines = sites_of_lines(history, tables);
    const LateStacks late(history);
    Traces traces(history, tables);
    for (const Period& period : find_periods(history, tables)) {
      if (period.from == Period::From::kNothing) continue;
      Search search(history, late, &traces, period, tables);
      std::vector<Leak> found;
      std::vector<SitesOfLines::key_type> of_found;
      const auto look = [&](bool are_models_made) {
        found.clear(), of_found.clear();
        for (const auto& [line, sites] : lines) {
          std::optional<Leak> leak = search.leak_of(sites, are_models_made);
          if (!leak) continue;
          found.push_back(std::move(*leak));
          of_found.push_back(line);
        }
      };
      look(false);
      // Of a line that was found, the state of the models may be a part.
      if (history.state_names != 0 && std::ranges::any_of(found, [&](const Leak& leak) {
            return is_in_setup(tables, leak.stacks.front().stack);
          }))
        look(true);
      for (const auto& line : of_found) lines.erase(line);
      if (!found.empty()) tell_passes(history, period, tables, &found);
      std::ranges::move(found, std::back_inserter(out));
    }
  }
  std::ranges::stable_sort(out, std::greater<>(), &Leak::grown_bytes);
  return out;
}

}  // namespace gpumemprof
