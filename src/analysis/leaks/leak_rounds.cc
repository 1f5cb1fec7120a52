#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "analysis/categories/attribution.h"
#include "analysis/leaks/leak_evidence.h"
#include "analysis/leaks/leak_period.h"
#include "analysis/leaks/leaks.h"
#include "analysis/pass/layer_work.h"
#include "base/path_parts.h"
#include "trace/label_frames.h"
#include "trace/own_code.h"

namespace gpumemprof {
namespace {

/// What comes after the last round: two rounds that were not begun, or one window in so many.
constexpr uint32_t kRoundsOfTail = 2, kShareOfTail = 16;
/// Of what a round makes and drops one in so many may wait for Python's collector.
constexpr uint64_t kShareOfKept = 8;
/// A line that joins what it has with what it makes allocates so often in a round, at most; as
/// often does a line that makes blocks of several sizes.
constexpr uint64_t kMostAllocsOfJoin = 8;
/// It makes a larger block to its end: the last one is among the last so many rounds.
constexpr uint64_t kLastJoins = 4;
/// Models take each other's place where they are so many, each called so often: the layers of a
/// model that are made and called one by one are called once.
constexpr uint64_t kLeastModels = 4, kLeastCallsOfModel = 3;

struct Beat {
  const SiteHistory* site;
  uint64_t count = 0, allocs_a_round = 1;
  uint32_t first = 0, last = 0, longest_gap = 0;
  bool joins = false;  ///< makes a larger block out of the last one in each round
  bool is_pass = false;  ///< works in a model that is called, or in a backward pass
};

bool comes_and_goes(const SiteHistory& site, uint64_t count) {
  return site.live_count <= count / kShareOfKept + 1;
}

Beat beat_of(const SiteHistory& site, uint32_t from_window) {
  Beat beat{.site = &site};
  for (const HeldCell& cell : site.cells) {
    if (cell.allocs == 0 || cell.window < from_window) continue;
    if (beat.count == 0) beat.first = beat.last = cell.window;
    beat.longest_gap = std::max(beat.longest_gap, cell.window - beat.last);
    beat.count += cell.allocs, beat.last = cell.window;
  }
  const uint64_t rounds = site.larger_count;
  const uint64_t since_larger = site.last_alloc - std::min(site.last_alloc, site.last_larger);
  const uint64_t span = site.last_alloc - std::min(site.last_alloc, site.first_alloc);
  beat.joins = rounds >= kLeastRounds && beat.count == site.alloc_count &&
               comes_and_goes(site, beat.count) && beat.count <= kMostAllocsOfJoin * rounds &&
               since_larger * rounds <= kLastJoins * span;
  if (beat.joins) {
    beat.allocs_a_round = std::max<uint64_t>(1, (beat.count + rounds / 2) / rounds);
    beat.count /= beat.allocs_a_round;
  }
  return beat;
}

bool goes_on_to_end(const Beat& beat, uint32_t windows, uint32_t from_window) {
  const uint32_t tail =
      std::max(kRoundsOfTail * beat.longest_gap, (windows - from_window) / kShareOfTail);
  return windows - 1 - beat.last <= tail;
}

/// As often, or a whole number of times a round, as for each parameter or layer. Loops begin and
/// end in the middle, so counts that differ by one are of one loop.
bool is_multiple(uint64_t beats, uint64_t count) {
  return beats + 1 >= count && (beats + 1) % count <= 2;
}

/// Frames from the outermost inwards, without those that are no code.
std::vector<Frame> code_of(const Tables& tables, uint32_t stack) {
  std::vector<Frame> out;
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame_of(node);
    if (!is_torch_label(tables.strings.get(frame.file))) out.push_back(frame);
  }
  std::ranges::reverse(out);
  return out;
}

/// The stack without what its inner end tells beside code: the module's name.
uint32_t code_node(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    return !is_torch_label(tables.strings.get(frame.file));
  });
}

bool is_same_function(const Frame& a, const Frame& b) {
  return a.file == b.file && a.function == b.function;
}

/// The frames that all stacks have in common, then the function in which they part.
std::vector<Frame> common_code(const std::vector<std::vector<Frame>>& stacks) {
  std::vector<Frame> common = stacks.front();
  bool parts_within = false;
  for (const std::vector<Frame>& stack : stacks) {
    size_t same = 0;
    while (same < common.size() && same < stack.size() && common[same] == stack[same]) ++same;
    if (same == common.size()) continue;
    parts_within = same < stack.size() && is_same_function(common[same], stack[same]);
    common.resize(same + (parts_within ? 1 : 0));
  }
  return common;
}

/// Of the thread that has most of them.
std::vector<Frame> code_of_loop(const std::vector<const Beat*>& beats, const Tables& tables) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<std::vector<Frame>>> by_root;
  for (const Beat* beat : beats) {
    std::vector<Frame> code = code_of(tables, beat->site->stack);
    if (!code.empty()) by_root[{code[0].file, code[0].function}].push_back(std::move(code));
  }
  if (by_root.empty()) return {};
  return common_code(std::ranges::max_element(by_root, {}, [](const auto& root_and_stacks) {
                       return root_and_stacks.second.size();
                     })->second);
}

bool is_of_library(std::string_view file) {
  return !file.empty() && !is_user_file(file) && !is_native_source(file);
}

/// A framework's functions in Python around an operation: they have no loop.
bool is_operation(std::string_view file) {
  if (path_has(file, "/tensorflow/python/")) {
    return path_has(file, "/python/util/") || path_has(file, "/python/framework/") ||
           (path_has(file, "/python/ops/") &&
            (file.ends_with("_ops.py") || file.ends_with("_overrides.py")));
  }
  if (path_has(file, "/jax/_src/")) {
    return !path_has(file, "/control_flow/") && !path_ends_with(file, "/tree_util.py");
  }
  return path_ends_with(file, "/torch/nn/functional.py") ||
         path_ends_with(file, "/torch/functional.py");
}

bool is_module_call(std::string_view file, std::string_view function) {
  return path_ends_with(file, "/torch/nn/modules/module.py") && function.ends_with("_call_impl");
}

/// Each round of Keras's fit is a step of the program's, which train_step runs: what repeats within
/// that is none.
bool is_round_of_fit(const std::vector<Frame>& code, const Tables& tables) {
  for (size_t i = code.size(); i-- > 0;) {
    const std::string_view file = tables.strings.get(code[i].file);
    const std::string_view function = tables.strings.get(code[i].function);
    const bool is_within_step = function.ends_with("train_step") && i + 1 < code.size();
    if (is_within_step || !is_of_library(file)) return false;
    if (path_has(file, "keras/") && (function == "fit" || function.ends_with(".fit"))) return true;
  }
  return false;
}

bool is_worker(const std::vector<const Beat*>& beats, const Tables& tables) {
  return std::ranges::any_of(beats, [&](const Beat* beat) {
    return std::ranges::any_of(code_of(tables, beat->site->stack), [&](const Frame& frame) {
      const std::string_view file = tables.strings.get(frame.file);
      return path_ends_with(file, "/multiprocessing/process.py") ||
             path_ends_with(file, "/torch/utils/data/_utils/worker.py");
    });
  });
}

bool is_pass(const SiteHistory& site, const Attribution& of, const Tables& tables,
             WorkReader* reader) {
  if (site.device < tables.devices.size() && is_tensorflow(tables.devices[site.device])) {
    const LayerWork work = layer_work_of(tables, site.stack, reader);
    return work.part == "gradient" || (work.part == "forward" && !work.layer.empty());
  }
  return !of.is_in_setup && (of.phase == WorkPhase::kForward || of.phase == WorkPhase::kBackward ||
                             of.phase == WorkPhase::kEvaluation);
}

/// A loop, or why these stacks, which allocate as often, are none of the program's own.
struct Loop {
  uint64_t count = 0;
  std::vector<const Beat*> beats;
  bool in_worker = false;
  bool is_fit = false;  ///< Keras's: one call of the program's, and yet its steps
  std::string why_none;
};

Loop loop_of(uint64_t count, std::vector<const Beat*> beats, const Tables& tables) {
  Loop loop{.count = count, .beats = std::move(beats)};
  loop.in_worker = is_worker(loop.beats, tables);
  std::vector<Frame> code = code_of_loop(loop.beats, tables);
  const bool fills_a_list = std::ranges::all_of(loop.beats, [&](const Beat* beat) {
    return is_comprehension(tables, call_line(tables, beat->site->stack));  // and that is over
  });
  if (loop.in_worker && !fills_a_list) return loop;
  while (!code.empty() && is_operation(tables.strings.get(code.back().file))) code.pop_back();
  loop.is_fit = is_round_of_fit(code, tables);
  const bool is_in_pass = std::ranges::any_of(code, [&](const Frame& frame) {
    return is_module_call(tables.strings.get(frame.file), tables.strings.get(frame.function));
  });
  if (loop.beats.size() < 2 && !loop.beats.front()->joins) {
    loop.why_none = "nothing else occurs as often as the most frequent allocation";
  } else if (std::ranges::none_of(loop.beats, [&](const Beat* beat) {
               return beat->joins || comes_and_goes(*beat->site, beat->count) || beat->is_pass;
             })) {
    loop.why_none = "all repeated allocations are kept, which is also how loading data looks";
  } else if (is_in_pass) {
    loop.why_none = "the repetition is inside one module call";
  } else if (!code.empty() && !loop.is_fit &&
             is_of_library(tables.strings.get(code.back().file))) {
    loop.why_none = "the repetition is inside a library function";
  }
  return loop;
}

/// Where each stack that allocates once in the round makes blocks of several sizes, how often it
/// makes the largest: one call of a line may make several blocks.
uint64_t count_by_size(const Loop& loop) {
  uint64_t least = loop.count;
  for (const Beat* beat : loop.beats) {
    if (beat->count != loop.count) continue;
    const uint64_t largest = beat->site->largest_count;
    const bool has_sizes = beat->allocs_a_round == 1 && largest >= kLeastRounds &&
                           beat->count <= kMostAllocsOfJoin * largest &&
                           is_multiple(beat->count, largest);
    if (!has_sizes) return loop.count;
    least = std::min(least, largest);
  }
  return least;
}

/// Stacks by how often they allocate, the most often first.
using StacksByCount = std::map<uint64_t, size_t, std::greater<>>;

/// Where more stacks allocate once in several of these rounds than once in each, how often they do:
/// a line makes several blocks in a call, as the K and the V of a cache.
uint64_t count_of_more(const StacksByCount& stacks_by_count, uint64_t count) {
  uint64_t most = count;
  for (auto at = stacks_by_count.upper_bound(count); at != stacks_by_count.end(); ++at) {
    if (at->first * kMostAllocsOfJoin < count) break;
    const bool is_part = count % at->first == 0;
    if (is_part && at->second > stacks_by_count.at(most)) most = at->first;
  }
  return most;
}

/// The shortest round that holds most of the work: half of all stacks or more allocate once in it,
/// or a whole number of times. What happens in every other one is not it.
Loop best_loop(const std::vector<Beat>& beats, const Tables& tables, uint64_t* steps) {
  StacksByCount stacks_by_count;
  for (const Beat& beat : beats) ++stacks_by_count[beat.count];
  Loop best{.why_none = "nothing happens " + std::to_string(kLeastRounds) +
                        " times or more until the end of the process"};
  uint64_t until = 0;
  for (const auto& [count, unused] : stacks_by_count) {
    if (count < until) break;
    // The stacks themselves only where they are enough: there may be as many counts as the root of
    // the events, and a stack is a whole number of times few of them.
    size_t in_round = 0;
    for (const auto& [other, stacks] : stacks_by_count) {
      if (other + 1 < count) break;
      in_round += is_multiple(other, count) ? stacks : 0;
      ++*steps;
    }
    if (2 * in_round < beats.size()) continue;
    std::vector<const Beat*> of_round;
    for (const Beat& beat : beats) {
      if (is_multiple(beat.count, count)) of_round.push_back(&beat);
    }
    *steps += beats.size();
    Loop loop = loop_of(count, std::move(of_round), tables);
    const bool is_found = loop.why_none.empty();
    // Another stack beats that time: the loop is its, and is looked at when its turn comes.
    uint64_t calls = is_found ? count_by_size(loop) : count;
    if (!stacks_by_count.contains(calls)) calls = count;
    if (is_found && calls == count) calls = count_of_more(stacks_by_count, count);
    const bool is_several = calls < count;
    if (is_several) until = calls;
    if (is_found || best.beats.empty()) best = std::move(loop);
    if (is_found && !is_several) break;
  }
  return best;
}

/// How many follow one another: those that take turns, as the layers of a model do, are one.
uint64_t count_in_turn(const std::vector<const SiteHistory*>& by_first) {
  uint64_t count = 0, last = 0;
  for (const SiteHistory* site : by_first) {
    if (count == 0 || site->first_alloc > last) ++count;
    last = std::max(last, site->last_alloc);
  }
  return count;
}

SiteHistory merged(const std::vector<const SiteHistory*>& by_first) {
  SiteHistory out{.stack = by_first.front()->stack, .device = by_first.front()->device};
  out.first_alloc = by_first.front()->first_alloc;
  std::map<uint32_t, uint32_t> allocs_by_window;
  for (const SiteHistory* site : by_first) {
    out.alloc_count += site->alloc_count, out.alloc_bytes += site->alloc_bytes;
    out.live_count += site->live_count, out.live_bytes += site->live_bytes;
    out.last_alloc = std::max(out.last_alloc, site->last_alloc);
    for (const HeldCell& cell : site->cells) allocs_by_window[cell.window] += cell.allocs;
  }
  for (const auto& [window, allocs] : allocs_by_window) {
    if (allocs != 0) out.cells.push_back({.window = window, .allocs = allocs});
  }
  return out;
}

/// What is looked for beats: the stacks of a process, those of models that take each other's place
/// as one for each code.
class Stacks {
 public:
  Stacks(const ProcessHistory& history, const Tables& tables, Attributions* attributions) {
    std::map<std::pair<uint16_t, uint32_t>, std::vector<const SiteHistory*>> by_code;
    std::set<uint64_t> counts_outside;
    for (const SiteHistory& site : history.sites) {
      if (site.first_alloc != 0 && module_node(tables, site.stack) != 0) {
        by_code[{site.device, code_node(tables, site.stack)}].push_back(&site);
      } else if (site.alloc_count >= kLeastModels * kLeastCallsOfModel &&
                 !attributions->of(site.stack).is_in_setup) {
        counts_outside.insert(site.alloc_count);
      }
    }
    std::map<const SiteHistory*, const SiteHistory*> one_for;  // null: it is in another one
    for (auto& [code, sites] : by_code) {
      if (!take_turns(&sites, counts_outside)) continue;
      for (const SiteHistory* site : sites) one_for[site] = nullptr;
      one_for[sites.front()] = &models_.emplace_back(merged(sites));
    }
    for (const SiteHistory& site : history.sites) {
      const auto one = one_for.find(&site);
      const SiteHistory* stack = one == one_for.end() ? &site : one->second;
      if (stack) all_.push_back(stack);
    }
  }

  const std::vector<const SiteHistory*>& all() const { return all_; }

 private:
  /// Something outside of the modules is made with every call: it tells how often they are called.
  static bool take_turns(std::vector<const SiteHistory*>* sites,
                         const std::set<uint64_t>& counts_outside) {
    if (sites->size() < kLeastModels) return false;
    std::ranges::sort(*sites, {}, &SiteHistory::first_alloc);
    const uint64_t models = count_in_turn(*sites);
    if (models < kLeastModels) return false;
    uint64_t allocs = 0;
    for (const SiteHistory* site : *sites) allocs += site->alloc_count;
    return std::ranges::any_of(counts_outside, [&](uint64_t calls) {
      return calls >= kLeastCallsOfModel * models && is_multiple(allocs, calls);
    });
  }

  std::deque<SiteHistory> models_;
  std::vector<const SiteHistory*> all_;
};

/// Over more of the run, and then more evenly.
bool keeps_time_better(const Beat& a, const Beat& b) {
  const uint32_t span_a = a.last - a.first, span_b = b.last - b.first;
  return span_a != span_b ? span_a > span_b : a.longest_gap < b.longest_gap;
}

/// A round is one call of a line, and most stacks of the call allocate once in it. Where the calls
/// are too few to be a loop by themselves, what allocates several times in each looks like one: the
/// beat of the calls, or nothing where `metronome` keeps it.
std::optional<Beat> beat_of_calls(const Stacks& of_process, const Tables& tables, uint32_t windows,
                                  uint32_t from_window, const Beat& metronome) {
  const uint32_t line = call_line(tables, metronome.site->stack);
  if (line == 0) return std::nullopt;  // without a stack nothing is known to be of one call
  std::map<uint64_t, std::vector<Beat>> by_count;
  size_t stacks = 0;
  for (const SiteHistory* site : of_process.all()) {
    if (site->alloc_count < 2 || call_line(tables, site->stack) != line) continue;
    Beat beat = beat_of(*site, from_window);
    if (beat.count < 2 || !goes_on_to_end(beat, windows, from_window)) continue;
    by_count[beat.count].push_back(beat);
    ++stacks;
  }
  for (const auto& [count, beats] : by_count) {
    if (count >= kLeastRounds) break;
    if (2 * beats.size() < stacks || !is_multiple(metronome.count, count)) continue;
    return *std::ranges::min_element(beats, keeps_time_better);
  }
  return std::nullopt;
}

/// A task of a DataLoader's worker is one round, however many samples it makes and whatever these are
/// joined into: how many there were, if the stack allocates equally often in each; else 0.
uint64_t tasks_of(const Beat& metronome) {
  const uint64_t turns = metronome.site->turns;
  const bool is_whole = metronome.allocs_a_round == 1 &&
                        metronome.count == metronome.site->alloc_count && turns >= kLeastRounds;
  return is_whole && metronome.count % turns == 0 ? turns : 0;
}

}  // namespace

std::optional<Rounds> find_rounds(const ProcessHistory& history, const Tables& tables,
                                  uint32_t from_window, std::string* why_none, uint64_t* steps) {
  uint64_t uncounted = 0;
  std::vector<Beat> beats;
  WorkReader reader(tables);
  Attributions attributions(tables);
  const Stacks stacks(history, tables, &attributions);
  for (const SiteHistory* site : stacks.all()) {
    Beat beat = beat_of(*site, from_window);
    if (beat.count < kLeastRounds || !goes_on_to_end(beat, history.windows(), from_window)) continue;
    const Attribution& of = attributions.of(site->stack);
    if (of.is_in_setup) continue;
    beat.is_pass = is_pass(*site, of, tables, &reader);
    beats.push_back(beat);
  }
  const Loop loop = best_loop(beats, tables, steps ? steps : &uncounted);
  if (!loop.why_none.empty()) {
    *why_none = loop.why_none;
    return std::nullopt;
  }
  const Beat* metronome = nullptr;
  for (const Beat* beat : loop.beats) {
    if (beat->count != loop.count) continue;
    if (!metronome || keeps_time_better(*beat, *metronome)) metronome = beat;
  }
  uint64_t count = loop.count;
  std::optional<Beat> calls;
  if (!loop.is_fit)
    calls = beat_of_calls(stacks, tables, history.windows(), from_window, *metronome);
  if (calls) metronome = &*calls, count = calls->count;
  uint64_t allocs_a_round = metronome->allocs_a_round;
  if (const uint64_t tasks = tasks_of(*metronome); tasks != 0)
    allocs_a_round = count / tasks, count = tasks;
  if (count < kLeastSteps) {
    *why_none = "the line of the repeated allocations is called fewer than " +
                std::to_string(kLeastSteps) + " times";
    return std::nullopt;
  }
  Rounds out{.stack = metronome->site->stack,
             .cells = metronome->site->cells,
             .count = count,
             .allocs_a_round = allocs_a_round,
             .in_worker = loop.in_worker};
  out.have_passes = std::ranges::any_of(beats, [&](const Beat& beat) {
    return 2 * beat.count >= loop.count && beat.is_pass;
  });
  return out;
}

}  // namespace gpumemprof
