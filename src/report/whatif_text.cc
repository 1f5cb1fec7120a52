#include <fmt/format.h>

#include <set>

#include "analysis/replay/settings_text.h"
#include "base/shell_word.h"
#include "base/size.h"
#include "report/describe/snapshot_words.h"
#include "report/whatif_report.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

/// "+1.2 GiB", "-300 MiB", "same".
std::string change(uint64_t bytes, uint64_t from) {
  if (bytes == from) return "same";
  return bytes > from ? "+" + format_bytes(bytes - from) : "-" + format_bytes(from - bytes);
}

std::string failure(const WhatIfResult& result) {
  if (result.oom_before_first_event) return "at start";
  if (!result.first_oom_event_index) return "-";
  return fmt::format("event {}", format_count(*result.first_oom_event_index + 1));
}

class Text {
 public:
  Text(const SettingsStudy& study, const WhatIfSubject& subject)
      : study_(study), subject_(subject) {}

  std::string write() {
    write_fidelity();
    write_gap();
    write_table();
    for (const std::string& limit : whatif_limits(study_)) line("Note: " + limit);
    write_end();
    return std::move(out_);
  }

 private:
  void line(std::string_view text) { (out_ += text) += '\n'; }

  void write_fidelity() {
    const ReplayResult& replay = study_.replay;
    line(fmt::format(
        "{}: the replay of the recorded settings gives {} of {} their recorded address "
        "({}), under the rules of PyTorch {}.",
        subject_.device, format_count(replay.matched),
        format_plural(replay.alloc_addresses, "allocation"),
        replay.matched == replay.alloc_addresses
            ? "all"
            : format_percent(replay.matched, replay.alloc_addresses),
        releases()));
    if (!study_.settings_known) {
      line("The file does not name the recorded settings: PyTorch's defaults are assumed.");
    }
  }

  /// "2.9", "2.4 to 2.11 (equal here)".
  std::string releases() const {
    const std::vector<Release>& equal = study_.equal_releases;
    std::string text;
    for (size_t i = 0; i < equal.size(); ++i) {
      const size_t first = i;
      while (i + 1 < equal.size() && equal[i + 1].minor == equal[i].minor + 1) ++i;
      if (first != 0) text += " and ";
      text += release_name(equal[first]);
      if (i != first) text += " to " + release_name(equal[i]);
    }
    if (!study_.replay.release_was_searched) return text;
    return text + (equal.size() > 1 ? " (equal here)" : " (the release that fits best)");
  }

  /// Earlier history is missing, so even the recorded settings give another peak.
  void write_gap() {
    const WhatIfResult& again = study_.rows.front().result;
    if (!study_.recorded_peak_reserved_bytes) {
      line("The recorded peak is unknown: the trace and the segments contradict each other.");
      return;
    }
    const uint64_t recorded = *study_.recorded_peak_reserved_bytes;
    std::string text =
        fmt::format("Peak of reserved bytes: {} in the recorded run", format_bytes(recorded));
    if (again.peak_reserved_bytes == recorded) {
      line(text + ", the same in the replay.");
    } else {
      const std::string device = other_device();
      const bool is_cache_unknown = device.empty() || study_.live_before_bytes != 0;
      line(text + fmt::format(", {} ({}) in the replay{}{}. Compare the rows with the replay.",
                              format_bytes(again.peak_reserved_bytes),
                              change(again.peak_reserved_bytes, recorded), device,
                              is_cache_unknown
                                  ? ", which does not know what was cached before the trace"
                                  : ""));
    }
  }

  /// " on a device with 21.0 GiB for this process"; empty where it is the recorded run's.
  std::string other_device() const {
    const std::optional<uint64_t>& capacity = study_.rows.front().capacity_bytes;
    if (study_.is_in_that_room || (!capacity && !study_.room)) return "";
    return capacity
               ? fmt::format(" on a device with {} for this process", format_bytes(*capacity))
               : " on a device of unlimited size";
  }

  void write_table() {
    line("");
    line(fmt::format("  {:>9}  {:>9}  {:>10}  {:>8}  {:>7}  {:>5}  {:>12}  settings", "reserved",
                     "change", "fragmented", "segments", "retries", "OOMs", "first OOM"));
    const StudyRow& first = study_.rows.front();
    for (const StudyRow& row : study_.rows) {
      const WhatIfResult& result = row.result;
      std::string name = settings_name(row.settings);
      if (&row == &first) name += study_.settings_known ? " (recorded)" : " (assumed)";
      if (row.release != first.release) name += ", PyTorch " + release_name(row.release);
      line(fmt::format("  {:>9}  {:>9}  {:>10}  {:>8}  {:>7}  {:>5}  {:>12}  {}",
                       format_bytes(result.peak_reserved_bytes),
                       &row == &first
                           ? ""
                           : change(result.peak_reserved_bytes, first.result.peak_reserved_bytes),
                       format_bytes(result.fragmented_bytes_at_peak()),
                       format_count(result.segments), format_count(result.num_alloc_retries),
                       format_count(result.num_ooms), failure(result), name));
    }
    if (study_.is_in_that_room) {
      const ProcessRoom& room = *study_.room;
      const std::string bytes = format_bytes(room.bytes);
      std::string where = "on a device with " + bytes + " for this process";
      if (room.basis == RoomBasis::kRefusals)
        where = "within " + bytes + ", as the process stays below " + limit_words(room);
      else if (room.is_own_limit())
        where = "the process stays within " + limit_words(room);
      line("  " + where + ", as in the recorded run, which ran out of memory");
    } else if (first.capacity_bytes) {
      line(fmt::format("  on a device with {} for this process",
                       format_bytes(*first.capacity_bytes)));
    } else {
      line("  on a device of unlimited size (--capacity sets a limit)");
    }
    write_least_memory();
    line("  fragmented: free in segments that live blocks pin, right after the reserved bytes were "
         "highest (analyze: also at the peak of the requested bytes)");
    line("");
  }

  /// Reserved memory is what the cache took where nothing stopped it, not what the program needs.
  void write_least_memory() {
    std::string text;
    for (const StudyRow& row : study_.rows) {
      if (!row.least_memory_bytes) continue;
      text += fmt::format(
          "{}{} with {}{}", text.empty() ? "" : ", ", format_bytes_up(*row.least_memory_bytes),
          &row != &study_.rows.front() ? settings_name(row.settings)
          : study_.settings_known      ? "the recorded settings"
                                       : "the assumed settings",
          row.retries_there == 0
              ? ""
              : fmt::format(" ({})", format_plural(row.retries_there, "retry")));
    }
    if (!text.empty()) line("  the least memory that serves every request (to 0.5 %): " + text);
  }

  void write_end() {
    const StudyRow* best = best_row(study_);
    const std::string environment = environment_line(study_);
    if (study_.rows.size() == 1) {
      line("Name settings with --set, or let --sweep try a set of promising ones.");
    } else if (!best) {
      line(fails(study_.rows.front())
               ? fmt::format("No setting helps ({} simulated): with each a request is refused.",
                             format_count(study_.rows.size() - 1))
               : no_gain());
    } else {
      const StudyRow& first = study_.rows.front();
      line(fmt::format("Best: {} reserved at most ({} against the {} settings), {}.",
                       format_bytes(best->result.peak_reserved_bytes),
                       change(best->result.peak_reserved_bytes, first.result.peak_reserved_bytes),
                       study_.settings_known ? "recorded" : "assumed",
                       format_plural(best->result.num_ooms, "failed allocation")));
    }
    if (!environment.empty()) line(environment);
  }

  /// Where none of the rows is worth it, and the recorded settings serve every request.
  std::string no_gain() const {
    const uint64_t now = study_.rows.front().result.peak_reserved_bytes;
    const StudyRow* least = nullptr;
    for (const StudyRow& row : study_.rows) {
      if (fails(row) || row.result.peak_reserved_bytes >= now) continue;
      if (!least || row.result.peak_reserved_bytes < least->result.peak_reserved_bytes)
        least = &row;
    }
    const std::string none = fmt::format("No setting saves {:g} % ({} simulated): ",
                                         100 * kLeastGain, format_count(study_.rows.size() - 1));
    if (!least) return none + "none saves anything.";
    const uint64_t saved = now - least->result.peak_reserved_bytes;
    return none + fmt::format("the largest saving is {} ({}), with {}.", format_bytes(saved),
                              format_percent(saved, now), settings_name(least->settings));
  }

  const SettingsStudy& study_;
  const WhatIfSubject& subject_;
  std::string out_;
};

}  // namespace

std::vector<std::string> whatif_limits(const SettingsStudy& study) {
  std::vector<std::string> limits;
  if (study.live_before_bytes != 0) {
    limits.push_back(
        "the trace starts late: " + format_bytes(study.live_before_bytes) +
        " (as the allocator rounded the blocks) were live before it and are placed anew; the file "
        "does not say all that was cached then.");
  }
  std::set<std::string_view> told;
  for (const StudyRow& row : study.rows) {
    for (const std::string& key : row.keys_without_effect) {
      if (!told.insert(key).second) continue;
      limits.push_back(
          printable(key) +
          (key == kGarbageCollection
               ? ": no effect here: it acts only below a memory limit of the process "
                 "(--capacity with per_process_memory_fraction)."
           : key == kMemoryFraction
               ? ": no effect here: it is a share of a device whose size --capacity sets."
               : ": accepted; it does not change where blocks go."));
    }
  }
  if (study.room && !study.rows.front().capacity_bytes) {
    limits.push_back("the recorded run ran out of memory with " + format_bytes(study.room->bytes) +
                     ": --capacity " + std::to_string(study.room->bytes) +
                     " simulates that device.");
  }
  const WhatIfResult& first = study.rows.front().result;
  if (first.retries_carried_out != 0) {
    limits.push_back("the rows repeat " +
                     format_plural(first.retries_carried_out, "recorded release") +
                     " of cached memory that the full device forced: a device that never gets full "
                     "may take more. --capacity with a large size leaves them out.");
  }
  if (first.releases_unclear != 0) {
    limits.push_back(
        format_plural(first.releases_unclear, "recorded release") +
        " of cached segments may have been empty_cache() or a retry; treated as empty_cache().");
  }
  limits.push_back(
      "assumes that the program makes the same requests and that frees on other streams complete "
      "when they did; cudaMallocAsync cannot be simulated.");
  return limits;
}

std::string environment_line(const SettingsStudy& study) {
  const StudyRow* best = best_row(study);
  if (!best || best->settings == study.rows.front().settings) return "";
  if (best->settings.empty()) return fmt::format("unset {}", settings_variable(best->release));
  return fmt::format("export {}={}", settings_variable(best->release),
                     shell_word(printable(best->settings)));
}

std::string whatif_text(const SettingsStudy& study, const WhatIfSubject& subject) {
  return Text(study, subject).write();
}

}  // namespace gpumemprof
