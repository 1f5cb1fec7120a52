#include "report/describe/snapshot_words.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/size.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kHoldersOfOom = 5;
constexpr size_t kPinningOfOom = 3;

std::string cause_text(const OomExplanation& oom) {
  if (oom.fitting_bytes != 0)
    return "a free block fits, but the cache was not searched again after waiting for streams";
  switch (oom.cause) {
    case RefusalCause::kWantOfMemory:
      return fmt::format("not enough memory: {} more than everything that was free",
                         format_bytes_up(oom.missing_bytes));
    case RefusalCause::kFragmentation:
      return "fragmentation: enough was free in total, but not in one piece";
    case RefusalCause::kOtherCache:
      return oom.other_cache->text();
    case RefusalCause::kLimit:
      break;
  }
  std::string text = "a limit of the process";
  if (oom.room.is_own_limit())
    text = "the process's own limit";
  else
    text += ", such as set_per_process_memory_fraction()";
  if (oom.missing_bytes != 0)
    text += fmt::format(": {} more than everything that was free below it",
                        format_bytes_up(oom.missing_bytes));
  return text + "; the device had enough";
}

std::string trials_text(const OomExplanation& oom) {
  if (!oom.is_reproduced) {
    return "Unknown which setting would have helped: " +
           (oom.not_reproduced.empty() ? std::string("nothing was tried") : oom.not_reproduced) +
           ".";
  }
  const std::string within = oom.room.basis == RoomBasis::kDevice
                                 ? ""
                                 : fmt::format(" within {}", format_bytes(oom.room.bytes));
  if (const OomTrial* best = best_trial(oom)) {
    return fmt::format(
        "Smallest change that would have fitted{} (simulated, {} tried): {}, with {} "
        "reserved at most.",
        within, format_plural(oom.trials.size(), "setting"), settings_name(best->settings),
        format_bytes(best->peak_reserved_bytes));
  }
  return fmt::format("None of {} that were simulated would have fitted{}.",
                     format_plural(oom.trials.size(), "setting"), within);
}

std::string more_memory_words(const OomExplanation& oom) {
  const std::string more = format_bytes_up(*oom.more_bytes_needed);
  return oom.room.is_own_limit() ? "a limit higher by " + more : more + " more device memory";
}

/// What it could have had, and of what.
std::string room_words(const OomExplanation& oom) {
  const std::string reserved = format_bytes(oom.moment.figures.reserved_bytes);
  const std::string free = format_bytes(oom.device_free_bytes);
  const std::string others = oom.held_by_others_bytes
                                 ? format_bytes(*oom.held_by_others_bytes) +
                                       " were used by other processes or by CUDA itself."
                                 : "A snapshot does not say how much other processes used.";
  if (oom.room.is_own_limit()) {
    return fmt::format("The process had reserved {} and could reserve {} more below {}. The "
                       "device had {} free. {}",
                       reserved, oom.left_text(), limit_words(oom.room), free, others);
  }
  if (oom.cause == RefusalCause::kLimit) {
    return fmt::format("The process had reserved {}, and the device had {} free; how much of it "
                       "the process could use is unknown. {}",
                       reserved, free, others);
  }
  return fmt::format("{} of the device were available to this process: {} reserved and {} free. {}",
                     format_bytes(oom.room.bytes), reserved, free, others);
}

/// "Pinned: 1.81 GiB in 100 segments by 150 MiB of log.py:5 keep.", where that is why.
void add_pinning(const OomExplanation& oom, const Tables& tables, std::string_view folder,
                 std::vector<std::string>* out) {
  std::vector<PinningStack> lines;
  if (oom.other_cache) {
    lines = pinning_lines({oom.other_cache->segment}, tables);
  } else if (oom.cause == RefusalCause::kFragmentation) {
    lines = pinning_lines(oom.moment.segments, tables);
  }
  for (size_t i = 0; i < std::min(kPinningOfOom, lines.size()); ++i) {
    out->push_back(fmt::format(
        "Pinned: {} in {} by {} of {}.", format_bytes(lines[i].pinned_bytes),
        format_plural(lines[i].segments, "segment"), format_bytes(lines[i].live_bytes),
        headline_text(tables, lines[i].stack, folder)));
  }
}

}  // namespace

std::vector<PinningStack> pinning_lines(const std::vector<SegmentPicture>& segments,
                                        const Tables& tables) {
  absl::flat_hash_map<uint32_t, uint32_t> node_of_line;  // by frame; one of its nodes
  return pinning_by(segments, [&](uint32_t stack) {
    const uint32_t node = headline_node(tables, stack);
    if (node == 0) return node;
    return node_of_line.try_emplace(tables.stacks.node(node).frame, node).first->second;
  });
}

std::string limit_words(const ProcessRoom& room) {
  if (room.basis == RoomBasis::kRefusals)
    return fmt::format("its own limit (between {} and {})", format_bytes(room.least_bytes),
                       format_bytes(room.most_bytes));
  return fmt::format("its own limit of {}{}", format_bytes(room.bytes),
                     room.basis == RoomBasis::kRounded ? " (as the error rounds it)" : "");
}

std::string why_refused(const OomExplanation& oom) {
  const bool is_unknown = !oom.room.is_own_limit() && oom.cause == RefusalCause::kLimit;
  std::string text = oom.room.is_own_limit()
                         ? fmt::format("{} left {}", capitalized(limit_words(oom.room)),
                                       oom.left_text())
                         : "The device had " + format_bytes(oom.device_free_bytes) + " left";
  if (oom.other_cache) return text + ", and " + oom.other_cache->text() + '.';
  if (oom.free_inside_bytes != 0 && !is_unknown) {
    text += fmt::format(", and {} were free in its segments, the largest usable piece {}",
                        format_bytes(oom.free_inside_bytes),
                        format_bytes(oom.obstacle.largest_usable_bytes));
  }
  if (oom.fitting_bytes != 0) return text + ": one piece fits, so a retry succeeds.";
  if (is_unknown) return text + ", so a limit of the process refused it.";
  if (oom.cause == RefusalCause::kFragmentation) return text + ": fragmentation.";
  // Else that sentence has the figure: the pieces in its segments do not add up for one request.
  if (oom.missing_bytes != 0 && what_would_have_fitted(oom).empty())
    text += ": at least " + format_bytes_up(oom.missing_bytes) + " too little";
  if (oom.cause == RefusalCause::kLimit)
    text += fmt::format("; the device had {} free", format_bytes(oom.device_free_bytes));
  return text + '.';
}

std::string what_would_have_fitted(const OomExplanation& oom) {
  if (const OomTrial* best = best_trial(oom)) {
    return fmt::format("It would have fitted with {} (simulated): {} reserved at most.",
                       settings_name(best->settings), format_bytes(best->peak_reserved_bytes));
  }
  if (!oom.is_reproduced || !oom.more_bytes_needed) return "";
  return fmt::format("No allocator setting helps ({} simulated, as by whatif --sweep). This "
                     "request would have fitted with {}; what follows is unknown.",
                     oom.trials.size(), more_memory_words(oom));
}

std::vector<std::string> oom_details(const OomExplanation& oom, const SnapshotDevice& device,
                                     const Tables& tables, std::string_view folder,
                                     bool is_headline) {
  std::vector<std::string> out;
  const uint32_t node = headline_node(tables, oom.stack);
  out.push_back(fmt::format("Requested: {} at {} (event {}).", format_bytes(oom.asked_bytes),
                            headline_text(tables, node, folder), format_count(oom.event + 1)));
  if (!device.is_consistent) {
    out.push_back("The allocator's state at that moment is unknown: " + device.contradiction + ".");
    return out;
  }
  const MemoryFigures& figures = oom.moment.figures;
  out.push_back(room_words(oom));
  out.push_back(fmt::format(
      "Of the reserved memory, {} were in use and {} free, {} of them in the pool and stream of "
      "this request; its largest free block was {}.",
      format_bytes(figures.active_bytes), format_bytes(oom.free_inside_bytes),
      format_bytes(oom.obstacle.free_bytes), format_bytes(oom.obstacle.largest_usable_bytes)));
  out.push_back("Why: " + cause_text(oom) + ".");
  add_pinning(oom, tables, folder, &out);
  if (oom.largest_fit_bytes && *oom.largest_fit_bytes < oom.asked_bytes) {
    const bool is_small = oom.asked_bytes > OomExplanation::kLargestSmallBytes &&
                          *oom.largest_fit_bytes <= OomExplanation::kLargestSmallBytes;
    out.push_back(*oom.largest_fit_bytes == 0
                      ? std::string("No request, however small, would have been served.")
                      : fmt::format("A request of up to {} would have been served{}, {} less.",
                                    format_bytes(*oom.largest_fit_bytes),
                                    is_small ? " by the pool of small blocks" : "",
                                    format_bytes(oom.asked_bytes - *oom.largest_fit_bytes)));
  }
  const std::string told = what_would_have_fitted(oom);
  const bool is_trial = best_trial(oom) != nullptr;
  if (is_trial || told.empty()) out.push_back(trials_text(oom));
  if (!told.empty() && !is_trial && !is_headline) out.push_back(told);
  if (oom.more_bytes_needed && is_trial) {
    out.push_back(fmt::format("With {} it would have fitted under the recorded settings.",
                              more_memory_words(oom)));
  }
  const std::vector<HolderLine> lines = group_by_line(oom.moment.holders, tables);
  for (size_t i = 0; i < std::min(kHoldersOfOom, lines.size()); ++i) {
    out.push_back(fmt::format("Held: {} ({}) by {}.", format_bytes(lines[i].bytes),
                              format_percent(lines[i].bytes, figures.active_bytes),
                              headline_text(tables, lines[i].node, folder)));
  }
  return out;
}

std::string reserved_sentence(const SnapshotDevice& device, const Tables& tables,
                              bool is_moment) {
  if (!device.is_consistent) {
    return "Allocated and reserved bytes over time are unknown: " + device.contradiction + ".";
  }
  std::string text =
      fmt::format("Reserved at most {}", format_bytes(device.replay.peak_reserved.bytes));
  if (device.at_peak && device.at_most_reserved &&
      device.at_most_reserved->pinned_bytes > device.at_peak->pinned_bytes)
    text += fmt::format(", {} of it lost to fragmentation",
                        format_bytes(device.at_most_reserved->pinned_bytes));
  if (device.at_peak) {
    const MemoryFigures& figures = device.at_peak->figures;
    text = fmt::format("{} {}: {} allocated", is_moment ? "Reserved" : text + "; at the peak",
                       format_bytes(figures.reserved_bytes), format_bytes(figures.allocated_bytes));
    // Blocks that wait for a stream are rounded, too, but the program no longer holds them.
    if (figures.active_bytes == figures.allocated_bytes &&
        figures.requested_bytes < figures.allocated_bytes)
      text += fmt::format(" ({} of it rounding)",
                          format_bytes(figures.allocated_bytes - figures.requested_bytes));
    if (figures.active_bytes > figures.allocated_bytes)
      text += fmt::format(", {} freed, waiting for a stream",
                          format_bytes(figures.active_bytes - figures.allocated_bytes));
    text += fmt::format(", {} lost to fragmentation, {} cached",
                        format_bytes(device.at_peak->pinned_bytes),
                        format_bytes(figures.releasable_bytes));
  }
  text += '.';
  const bool is_most_at_start = !device.replay.peak_reserved.event;
  if (is_most_at_start && device.cached_before_bytes != 0) {
    const uint32_t line = own_node(tables, device.cached_before_stack);
    text += fmt::format(" {} cached before the recording began were released by empty_cache(){}.",
                        format_bytes(device.cached_before_bytes),
                        line == 0 ? "" : " at " + printable(short_line(tables, line)));
  }
  return text;
}

std::string retries_sentence(const SnapshotDevice& device) {
  const Retries& retries = device.retries;
  if (retries.count == 0) return "";
  const bool is_one = retries.count == 1;
  return fmt::format("{} {}, {}at event {}: no more memory could be reserved, so {} of cache were "
                     "released first{}.",
                     format_count(retries.count), is_one ? "retry" : "retries",
                     is_one ? "" : "the first ", format_count(retries.first_event + 1),
                     format_bytes(retries.released_bytes), is_one ? "" : ", in all");
}

std::string replay_sentence(const SnapshotDevice& device) {
  const ReplayResult& replay = device.replay;
  if (replay.alloc_addresses == 0) return "The trace has no allocation, so nothing was replayed.";
  std::string text =
      fmt::format("Replay: {} of {} at their recorded address by the rules of PyTorch {}{}",
                  format_count(replay.matched), format_plural(replay.alloc_addresses, "allocation"),
                  release_name(replay.release),
                  replay.release_was_searched ? ", which fit; the file does not name its release"
                                              : "");
  if (replay.first_mismatch_event) {
    text += fmt::format("; the first that differs is event {}{}",
                        format_count(*replay.first_mismatch_event + 1),
                        replay.mismatch_reason.empty() ? "" : ": " + replay.mismatch_reason);
  }
  return text.ends_with('.') ? text : text + '.';
}

std::vector<std::string> snapshot_caveats(const SnapshotDevice& device,
                                          std::string_view device_name) {
  std::vector<std::string> out;
  if (!device.has_history) {
    out.push_back(
        fmt::format("{}: no history was recorded, only what was live at the end.", device_name));
    return out;
  }
  if (device.overflowed) {
    out.push_back(fmt::format("{}: the writer's ring was full and the oldest events were dropped.",
                              device_name));
  }
  if (device.live_before_count != 0) {
    out.push_back(
        fmt::format("{}: {} of {}, allocated before the {}, {} included.", device_name,
                    format_plural(device.live_before_count, "block"),
                    format_bytes(device.live_before_bytes),
                    device.overflowed ? "oldest kept event" : "recording began",
                    device.live_before_count == 1 ? "is" : "are"));
  }
  if (device.oom_count > device.ooms.size()) {
    out.push_back(fmt::format("{}: {} in all; the first {} and the last are explained.", device_name,
                              format_plural(device.oom_count, "out-of-memory event"),
                              device.ooms.size() - 1));
  }
  return out;
}

}  // namespace gpumemprof
