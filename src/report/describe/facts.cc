#include "report/describe/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "analysis/host/host_memories.h"
#include "analysis/replay/snapshot_device.h"
#include "base/duration.h"
#include "base/size.h"
#include "report/describe/end_words.h"
#include "report/describe/snapshot_words.h"
#include "report/words.h"

namespace gpumemprof {

std::string moment_text(const Analysis& analysis, uint64_t time_ns) {
  const uint64_t start = analysis.start_time_ns;
  return time_ns >= start ? format_duration(time_ns - start) + " after the first event"
                          : format_duration(start - time_ns) + " before the first event";
}

namespace {

constexpr const char* kAtTheOneMoment = ", at the one moment that the file covers";

/// By an allocator's own history: it counts events by device, and knows what was asked for.
std::string snapshot_peak_sentence(const Analysis& analysis, const Tables& tables,
                                   const DeviceAnalysis& device) {
  const Device& memory = device_at(tables, device.device);
  const SnapshotDevice& snapshot = *device.snapshot;
  const bool moment = is_moment(device);
  std::string text = fmt::format("{} {} on {} (requested bytes)", moment ? "Live" : "Peak",
                                 format_bytes(device.figures.peak_bytes), device_name(memory));
  if (moment) return text + kAtTheOneMoment;
  if (!snapshot.peak_event) return text + ", before the first event";
  if (snapshot.has_times) text += ", " + moment_text(analysis, device.figures.peak_time_ns);
  text += fmt::format(" (event {} of {})", format_count(*snapshot.peak_event + 1),
                      format_count(event_count(device)));
  if (!snapshot.is_recorded) return text;  // a snapshot names no process
  return text + ", " + process_label(process_at(tables, memory.process));
}

/// "The peak may be up to 96 MiB: 3 threads …"; empty where no more than the peak can have been held,
/// as it is shown.
std::string held_bound_sentence(const DeviceAnalysis& device) {
  const uint64_t least = device.figures.peak_bytes;
  const uint64_t most = device.most_held_bytes.value_or(least);
  if (most <= least) return {};
  const std::string from = format_bytes(least), to = format_bytes(most);
  if (from == to) return {};  // the precision of every figure that is shown
  return fmt::format("The peak may be up to {}: {} threads allocated and freed, perhaps at the same time.",
                     to, device.threads);
}

/// The least that was live between the peak and a sample, by the buckets of the timeline.
uint64_t least_between(const Timeline& timeline, uint64_t peak_ns, uint64_t sample_ns) {
  const std::vector<TimelineBucket>& buckets = timeline.buckets();
  if (buckets.empty()) return 0;
  const auto bucket_at = [&](uint64_t time_ns) {
    const uint64_t elapsed = time_ns - std::min(time_ns, timeline.start_ns());
    return std::min<uint64_t>(elapsed / timeline.bucket_ns(), buckets.size() - 1);
  };
  const uint64_t last = bucket_at(std::max(peak_ns, sample_ns)), of_peak = bucket_at(peak_ns);
  uint64_t least = UINT64_MAX;
  for (uint64_t i = bucket_at(std::min(peak_ns, sample_ns)); i <= last; ++i) {
    // The peak's own bucket may begin below it.
    const bool goes_on = i == of_peak && i < last;
    least = std::min(least, goes_on ? buckets[i].last_bytes : buckets[i].min_bytes);
  }
  return least;
}

/// Most of a map may never be touched: its size alone is taken for memory that was used. Only a
/// sample between which and the peak nine tenths of it stayed live measures the peak.
std::string resident_words(const Analysis& analysis, const Process& process,
                           const DeviceAnalysis& device) {
  const uint64_t peak_ns = device.figures.peak_time_ns;
  std::optional<uint64_t> before, after;  // of all samples, those next to the peak
  std::optional<uint64_t> nearest, bytes;
  const auto distance = [&](uint64_t time_ns) {
    return time_ns > peak_ns ? time_ns - peak_ns : peak_ns - time_ns;
  };
  const auto take = [&](const HostProcess& sampled, uint64_t time_ns) {
    const auto later =
        std::ranges::upper_bound(sampled.levels, time_ns, {}, &HostProcess::Level::time_ns);
    if (later == sampled.levels.begin() || time_ns > sampled.last_time_ns) return;
    if (time_ns <= peak_ns) before = time_ns;
    if (time_ns > peak_ns && !after) after = time_ns;
    if (nearest && distance(*nearest) <= distance(time_ns)) return;
    const uint64_t least = least_between(device.timeline, peak_ns, time_ns);
    if (least < device.figures.peak_bytes / 10 * 9) return;
    nearest = time_ns, bytes = std::prev(later)->resident;
  };
  if (analysis.host) {
    for (const HostRun& run : analysis.host->runs) {
      for (const HostProcess& one : run.processes) {
        if (run.host != process.host || one.pid != process.pid) continue;
        for (const HostLevel& level : run.levels) take(one, level.time_ns);
      }
    }
  }
  if (bytes) {
    return fmt::format(" ({} resident in the whole process, {} {} the peak)", format_bytes(*bytes),
                       format_duration(distance(*nearest)),
                       *nearest > peak_ns ? "after" : "before");
  }
  std::string why;
  if (before && after)
    why = fmt::format("no sample between {} and {}", moment_text(analysis, *before),
                      moment_text(analysis, *after));
  else if (before)
    why = "the last sample was " + moment_text(analysis, *before);
  else if (after)
    why = "the first sample was " + moment_text(analysis, *after);
  return " (how much of it is resident is unknown" + (why.empty() ? why : ": " + why) + ")";
}

}  // namespace

std::string peak_sentence(const Analysis& analysis, const Tables& tables,
                          const DeviceAnalysis& device) {
  const Device& memory = device_at(tables, device.device);
  if (device.snapshot) return snapshot_peak_sentence(analysis, tables, device);
  const bool moment = is_moment(device);
  std::string text =
      fmt::format("{} {}{} on {}", moment ? "Live" : "Peak", format_bytes(device.figures.peak_bytes),
                  is_host_map(memory) ? " mapped" : "", memory_name(device, tables));
  if (moment) {
    text += kAtTheOneMoment;
  } else if (is_peak_before_events(analysis, device)) {
    text += ", before the first event";
  } else if (analysis.source.can.times) {
    text += ", " + moment_text(analysis, device.figures.peak_time_ns);
  } else {
    text += fmt::format(" (event {} of {})", format_count(device.figures.peak_event + 1),
                        format_count(analysis.events));
  }
  if (is_host_map(memory))
    text += resident_words(analysis, process_at(tables, memory.process), device);
  const bool has_others = std::ranges::any_of(analysis.devices, [&](const DeviceAnalysis& other) {
    return other.figures.peak_bytes != 0 &&
           device_at(tables, other.device).process != memory.process;
  });
  if (has_others)
    text += ", " + process_label(process_at(tables, memory.process));
  // A lost allocation makes the peak too low, a lost free too high.
  if (!is_exact(analysis, device))
    text += fmt::format("; NOT EXACT: {}", why_not_exact(analysis, device));
  return text;
}

uint64_t event_count(const DeviceAnalysis& device) {
  const auto& counts = device.figures.actions;
  return std::accumulate(std::begin(counts), std::end(counts), uint64_t{0});
}

bool is_peak_before_events(const Analysis& analysis, const DeviceAnalysis& device) {
  // Blocks that a source knows to have been live before set no time.
  return device.figures.peak_bytes != 0 && device.figures.peak_time_ns == 0 &&
         (analysis.source.can.times || is_moment(device));
}

bool is_moment(const DeviceAnalysis& device) {
  for (size_t action = 1; action < kActionCount; ++action) {
    if (device.figures.actions[action] != 0 && static_cast<Action>(action) != Action::kSnapshot)
      return false;
  }
  return true;
}

std::string no_such_step_text(const DeviceAnalysis& device, uint64_t step) {
  const std::vector<StepLevel>& levels = device.step_levels.levels();
  if (levels.empty()) {
    return "it has no steps; a step ends when an optimizer steps or the program calls "
           "gpumemprof.step(); rounds of a loop, which analyze finds by itself, are no steps";
  }
  return fmt::format("step {} is not complete in it; the last complete one is step {}", step,
                     levels.back().step);
}

std::string reason_text(const LossReason& reason) {
  std::string text = printable(reason.reason);
  if (reason.is_counted()) text += fmt::format(" ({})", format_plural(reason.events, "event"));
  return text;
}

/// Empty where no number is known.
static std::string lost_amount(const Loss& loss) {
  std::string text;
  if (loss.events != 0) {
    text = (loss.is_open_ended() ? "at least " : "") + format_plural(loss.events, "event");
  } else if (loss.is_open_ended()) {
    text = "an unknown number of events";
  }
  if (!text.empty() && loss.bytes != 0) text += ", ";
  if (loss.bytes != 0) text += format_bytes(loss.bytes) + " of the file unreadable";
  return text;
}

/// ": REASON; REASON; and 2 more reasons".
static std::string lost_reasons(const Loss& loss) {
  std::string text;
  const char* separator = ": ";
  for (size_t i = 0; i < std::min(kReasonsInSentence, loss.reasons.size()); ++i) {
    text += separator + reason_text(loss.reasons[i]);
    separator = "; ";
  }
  if (loss.reasons.size() > kReasonsInSentence) {
    text += fmt::format("; and {}",
                        format_plural(loss.reasons.size() - kReasonsInSentence, "more reason"));
  }
  return text;
}

std::string lost_words(const Loss& loss) {
  return loss.has_every_event() ? "" : lost_amount(loss) + lost_reasons(loss);
}

std::string loss_sentence(const Loss& loss) {
  if (is_complete(loss)) return "Nothing was lost.";
  const std::string amount = lost_amount(loss);
  return (amount.empty() ? "Not complete" : "LOST: " + amount) + lost_reasons(loss) + '.';
}

/// What the blocks of `run --host` leave out.
static std::vector<std::string> host_block_sentences(const Tables& tables) {
  std::vector<std::string> out;
  for (const Device& device : tables.devices) {
    if (!is_unseen_malloc(device)) continue;
    const bool has_maps = device.name.starts_with(kUnseenMalloc);
    const size_t at = has_maps ? kUnseenMalloc.size() : kUnseenMallocAndMaps.size();
    const std::string library = printable(device.name.substr(at));
    std::string text =
        has_maps
            ? fmt::format("malloc comes from {}: its blocks are not recorded; maps (mmap) are.",
                          library)
            : fmt::format("malloc and mmap come from {}: blocks and maps are not recorded.",
                          library);
    if (std::ranges::find(out, text) == out.end()) out.push_back(std::move(text));
  }
  const auto has_blocks = [](const Device& device) {
    return is_host_blocks(device) && !is_unseen_malloc(device);
  };
  if (std::ranges::any_of(tables.devices, has_blocks)) {
    out.push_back(
        "Host blocks and maps below 64 KiB are not recorded, and their sum is unknown. Maps count "
        "with their full size; how much of them is resident is unknown.");
  }
  return out;
}

std::vector<std::string> caveats(const Analysis& analysis, const Tables& tables,
                                 std::string_view working_folder) {
  std::vector<std::string> out;
  uint64_t unmatched = 0, repeated = 0;
  for (const DeviceAnalysis& device : analysis.devices) {
    unmatched += device.figures.unmatched_frees;
    repeated += device.figures.repeated_allocs;
    if (!device.snapshot) continue;
    const std::string name = device_name(device_at(tables, device.device));
    for (std::string& text : snapshot_caveats(*device.snapshot, name))
      out.push_back(std::move(text));
  }
  for (std::string& text : host_block_sentences(tables)) out.push_back(std::move(text));
  if (const DeviceAnalysis* device = main_device(analysis, tables)) {
    if (std::string text = held_bound_sentence(*device); !text.empty()) out.push_back(text);
  }
  for (std::string& text : caught_refusal_sentences(analysis, tables, working_folder))
    out.push_back(std::move(text));
  if (unmatched != 0) {
    out.push_back(
        fmt::format("{} of blocks whose allocation was not recorded (older than the recording, or "
                    "inherited by fork): no figure includes them.",
                    format_plural(unmatched, "free")));
  }
  if (repeated != 0) {
    out.push_back(
        fmt::format("{} at the address of a live block: that block's free was not recorded.",
                    format_plural(repeated, "allocation")));
  }
  for (const Process& process : tables.processes) {
    if (!process.stacks.starts_with("none")) continue;
    out.push_back(
        fmt::format("{} has no stacks ({}).", process_label(process), printable(process.stacks)));
  }
  return out;
}

bool is_no_stack_from_before(const DeviceAnalysis& device) {
  uint64_t bytes = 0;
  for (const Holder& holder : device.holders_at_peak) bytes += holder.stack == 0 ? holder.bytes : 0;
  return device.snapshot && bytes != 0 && bytes <= device.snapshot->live_before_bytes;
}

bool is_on_threads_of_jax(const DeviceAnalysis& device, const Tables& tables) {
  const Device& memory = device_at(tables, device.device);
  return memory.type == kJaxCpu && !process_at(tables, memory.process).stacks.starts_with("none");
}

std::string no_stack_words(const DeviceAnalysis& device, const Tables& tables) {
  if (is_on_threads_of_jax(device, tables)) {
    return fmt::format("made on JAX's own threads, which run no Python; {}", kJaxOnYourThread);
  }
  constexpr size_t kMostTypes = 3;
  const std::string why =
      is_no_stack_from_before(device) ? "allocated before the recording began" : "";
  std::array<uint64_t, kCategories> by_category{};
  for (const CategoryHolder& holder : device.categories.at_peak) {
    if (holder.stack == 0) by_category[static_cast<size_t>(holder.category)] += holder.bytes;
  }
  std::vector<size_t> order;
  bool is_any_known = false;
  for (size_t i = 0; i < kCategories; ++i) {
    if (by_category[i] == 0) continue;
    order.push_back(i);
    is_any_known |= static_cast<Category>(i) != Category::kUnknown;
  }
  if (!is_any_known) return why;
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](size_t i) { return by_category[i]; });
  order.resize(std::min(order.size(), kMostTypes));
  std::string types;
  for (const size_t i : order) {
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ",
                         category_name(static_cast<Category>(i)), format_bytes(by_category[i]));
  }
  return why.empty() || types.empty() ? why + types : why + ": " + types;
}

WallTime wall_time(const Process& process, uint64_t time_ns) {
  if (process.realtime_offset_ns == 0) return {};
  // In unsigned numbers: a damaged file may hold any offset, and signed overflow is not defined.
  const uint64_t wall_ns = time_ns + static_cast<uint64_t>(process.realtime_offset_ns);
  return {true, static_cast<int64_t>(wall_ns) / 1000};
}

std::optional<std::string> peak_reserved_text(const DeviceAnalysis& device) {
  const auto reserved_bytes = peak_reserved_bytes(device);
  if (!reserved_bytes) return std::nullopt;
  return format_bytes(*reserved_bytes);
}

std::string why_no_times(const Analysis& analysis, const DeviceAnalysis& device) {
  const SnapshotDevice* history = device.snapshot.get();
  const bool has_times = history ? history->has_times || !history->has_history
                                 : analysis.source.can.times || is_moment(device);
  return has_times ? "" : "the events have no times";
}

std::optional<double> rate_per_second(uint64_t amount, const Analysis& analysis,
                                      const DeviceAnalysis& device) {
  if (!why_no_times(analysis, device).empty()) return std::nullopt;
  // The amount is that of all events, so the time is that of the dropped ones, too.
  const uint64_t begin = analysis.oldest_dropped ? analysis.start_time_ns : device.first_time_ns;
  if (device.last_time_ns <= begin) return 0;
  return static_cast<double>(amount) * 1e9 / static_cast<double>(device.last_time_ns - begin);
}

std::string score_sentence(const Score& score) {
  if (!score.value) return "Score: none, because " + score.reason + ".";
  std::string parts;
  for (const ScorePart& part : score.parts) {
    if (!part.value) continue;
    parts += fmt::format("{}{} {:.1f}", parts.empty() ? "" : ", ", part.name, *part.value);
  }
  return fmt::format("Score: {:.1f} of 10 ({}).", *score.value, parts);
}

}  // namespace gpumemprof
