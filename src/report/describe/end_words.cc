#include "report/describe/end_words.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "analysis/oom_message/oom_verdict.h"
#include "analysis/replay/told_refusals.h"
#include "base/size.h"
#include "report/describe/sections.h"
#include "report/describe/snapshot_words.h"
#include "report/words.h"
#include "trace/own_code.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostRefusalsTold = 3;

/// "FILE:LINE FUNCTION"; not "<torch module> layers.0", which is no place in code.
bool is_place(std::string_view line) {
  const size_t colon = line.rfind(':');
  return colon != line.npos && colon + 1 < line.size() && absl::ascii_isdigit(line[colon + 1]);
}

/// The innermost place in the user's code, else the innermost.
std::string_view headline(const std::vector<std::string>& stack) {
  auto places = stack | std::views::filter(is_place);
  for (std::string_view line : places) {
    if (is_user_file(line.substr(0, line.rfind(':')))) return line;
  }
  if (!places.empty()) return places.front();
  return stack.empty() ? std::string_view() : std::string_view(stack.front());
}

std::string shown(std::string_view line, std::string_view folder) {
  const size_t colon = line.rfind(':');
  if (colon == line.npos) return printable(line);
  return printable(short_path(line.substr(0, colon), folder) + std::string(line.substr(colon)));
}

std::string size_text(const PrintedSize& size) {
  return size.least_bytes == size.most_bytes ? format_bytes(size.bytes) : printable(size.text);
}

/// " The kernel killed 2 processes …", or what speaks against it.
std::string others_killed(const ProgramEnd& run) {
  if (!run.kernel_kills) return "";
  if (*run.kernel_kills == 0) {
    return run.signal == "SIGKILL" ? " The kernel's OOM killer did not run during that time." : "";
  }
  return fmt::format(" The kernel's OOM killer killed {} process{} {} meanwhile.",
                     *run.kernel_kills, *run.kernel_kills == 1 ? "" : "es",
                     run.kills_are_of_cgroup ? "of its cgroup" : "on this machine");
}

/// " The largest request that was served with that stack was 4.00 MiB.", where the refused one was
/// unusual.
std::string what_was_usual(const RefusedRequest& refused) {
  constexpr uint64_t kUnusual = 4;  // times
  constexpr uint64_t kFew = 4;      // requests: below, what one operation needs beside its result
  if (!refused.told || refused.told->served_count < kFew) return "";
  const uint64_t largest = refused.told->largest_served_bytes;
  if (refused.told->size_bytes / kUnusual < largest) return "";
  return fmt::format(" The largest request that was served with that stack was {}.",
                     format_bytes(largest));
}

/// " 154 MiB were left just after: …", of the host's memory; empty where that would have been
/// enough, or is not known. What malloc mapped as it failed (an arena of 64 MiB) counts as mapped.
std::string what_was_left(const RefusedRequest& refused) {
  if (!is_host_refusal(refused)) return "";
  const auto &limit = refused.address_space_limit_bytes, &mapped = refused.address_space_bytes;
  const std::optional<uint64_t> mappable = mappable_bytes(refused), left = left_bytes(refused);
  constexpr uint64_t kNear = 4;  // times what was asked for, or one in so many of the limit
  if (refused.requested && left && left == mappable)
    return fmt::format(" {} were left just after: the process had mapped {} of {} (ulimit -v).",
                       format_bytes(*left), format_bytes(*mapped), format_bytes(*limit));
  // The failed call's memory is released by then: the most that was mapped is nearer to the limit.
  const uint64_t most = std::max(mapped.value_or(0), refused.address_space_peak_bytes.value_or(0));
  const uint64_t near = refused.requested ? kNear * refused.requested->least_bytes
                                          : limit.value_or(0) / kNear;
  if (mappable && most <= *limit && *limit - most < near)
    return fmt::format(" The process may map {} (ulimit -v); it had mapped {} at most.",
                       format_bytes(*limit), format_bytes(most));
  // Of a caught one nobody says what was mapped: the limit, where it is no more than twice what was
  // wanted in all.
  const uint64_t wanted = refused.told ? refused.told->live_bytes + refused.told->size_bytes : 0;
  if (limit && !mapped && wanted >= *limit / 2)
    return fmt::format(" The process may map {} (ulimit -v).", format_bytes(*limit));
  if (left && refused.requested) return fmt::format(" {} were free on the host just after.", format_bytes(*left));
  return "";
}

/// " Below its own limit the process may take … Fragmentation: …", by the message of PyTorch's CUDA
/// allocator alone; empty where that does not tell.
std::string why_by_message(const RefusedRequest& refused) {
  if (is_host_refusal(refused)) return "";
  OomScanner scanner;
  scanner.feed(refused.message);
  const OomLog log = scanner.finish();
  if (log.messages.empty() || log.messages[0].framework != "pytorch") return "";
  const OomVerdict verdict = explain_oom(log.messages[0], log.expandable_segments_on);
  if (verdict.cause == OomCause::kCannotTell) return "";
  std::string text;
  if (!verdict.reasons.empty()) text += ' ' + printable(verdict.reasons.front());
  return text + ' ' + printable(verdict.summary);
}

std::string name_of(const UnfinishedProcess& one) {
  if (one.rank) return fmt::format("rank {} (process {})", *one.rank, one.pid);
  return process_label({.pid = one.pid, .command = one.command});
}

/// The signal that ended the process of the error, if one did; else empty.
std::string signal_after(const UncaughtError& error, const ProgramEnd& run) {
  for (const ProcessExit& exit : run.exits) {
    const bool is_its = exit.pid == error.process.pid &&
                        (exit.start_ticks == 0 || error.process.start_ticks == 0 ||
                         exit.start_ticks == error.process.start_ticks);
    if (is_its) return exit.signal;
  }
  return "";
}

/// "ValueError ended rank 1 at train.py:9 step: bad batch"
std::string error_sentence(const UncaughtError& error, const ProgramEnd& run,
                           std::string_view working_folder) {
  const std::string signal = signal_after(error, run);
  std::string text = printable(error.kind) + (signal.empty() ? " ended " : " was raised in ") +
                     (error.rank ? fmt::format("rank {}", *error.rank) : "the program");
  if (const std::string_view at = headline(error.stack); !at.empty())
    text += " at " + shown(at, working_folder);
  if (!signal.empty()) text += " before " + printable(signal) + " ended it";
  if (!error.message.empty()) text += ": " + printable(error.message);
  if (error.kind.find('.') == error.kind.npos) text = capitalized(text);
  return text + (text.ends_with('.') ? "" : ".");
}

/// Before all figures: those of a program that goes on, or of which the end is unknown.
std::vector<Sentence> open_end_sentences(const ProgramEnds& ends) {
  std::vector<Sentence> out;
  std::vector<uint32_t> others = ends.running_pids;
  for (const ProgramEnd& run : ends.runs) {
    std::erase(others, static_cast<uint32_t>(run.pid));
    if (run.state == RunState::kRunning)
      out.push_back({fmt::format("The program is still running (pid {}): figures are those until "
                                 "now.",
                                 run.pid),
                     Tone::kWarning});
    else if (run.state == RunState::kGone)
      out.push_back({"How the program ended is unknown: `run` was killed, or could not write it.",
                     Tone::kWarning});
    else if (run.state == RunState::kElsewhere)
      out.push_back({"How the program ended is unknown: on its machine it may still be running.",
                     Tone::kWarning});
  }
  if (out.empty() && !others.empty())
    out.push_back({fmt::format("{} still running: figures are those until now.",
                               others.size() == 1
                                   ? fmt::format("Process {} is", others[0])
                                   : format_count(others.size()) + " processes are"),
                   Tone::kWarning});
  if (out.size() > kMostRefusalsTold) out.resize(kMostRefusalsTold);
  return out;
}

/// "Rank 0 (process 41) and rank 1 (process 42) were killed or still run."
std::string unfinished_sentence(const std::vector<UnfinishedProcess>& all) {
  constexpr size_t kMostNamed = 4;
  if (all.size() == 1) return capitalized(name_of(all[0])) + " was killed or is still running.";
  if (all.size() > kMostNamed)
    return fmt::format("{} processes were killed or are still running.", all.size());
  std::string names;
  for (size_t i = 0; i < all.size(); ++i) {
    names += (i == 0 ? "" : i + 1 == all.size() ? " and " : ", ") + name_of(all[i]);
  }
  return capitalized(names) + " were killed or are still running.";
}

}  // namespace

std::string refusal_sentence(const RefusedRequest& refused, const OomExplanation* explained,
                             std::string_view working_folder) {
  std::string text = "Out of memory";
  if (refused.rank) text += fmt::format(" on rank {}", *refused.rank);
  text += ": ";
  if (refused.told)
    text += format_bytes(refused.told->size_bytes) + " were refused";
  else if (refused.requested)
    text += size_text(*refused.requested) + " were refused";
  else
    text += "a request was refused";
  if (const std::string_view at = headline(refused.stack); !at.empty())
    text += " at " + shown(at, working_folder);
  if (refused.raised_again_from != 0)
    text += fmt::format(" in process {}", refused.raised_again_from);
  else if (!refused.raised_again_in.empty())
    text += " in " + printable(refused.raised_again_in);
  if (refused.was_caught && refused.told && refused.told->number != 0)
    text += fmt::format(", the last of {} requests", format_count(refused.told->number + 1));
  std::string live, when;
  if (explained)
    live = format_bytes(explained->moment.figures.active_bytes);
  else if (refused.told)
    live = format_bytes(refused.told->live_bytes);
  else if (refused.allocated)
    live = size_text(*refused.allocated);
  else if (refused.live_bytes && refused.raised_again_in.empty())
    live = format_bytes(*refused.live_bytes), when = " just after it";
  if (!live.empty()) {
    text += fmt::format(", with {} live on {}{}", live, printable(refused.device), when);
  } else if (!refused.device.empty()) {
    text += " on " + printable(refused.device);
  }
  text += '.' + what_was_usual(refused) + what_was_left(refused);
  return text + (explained ? ' ' + why_refused(*explained) : why_by_message(refused));
}

std::string refusal_sentence(const OomExplanation& oom, const SnapshotDevice& device,
                             std::string_view device_name, std::string_view place) {
  std::string text = fmt::format("Out of memory: {} were refused", format_bytes(oom.asked_bytes));
  if (!place.empty()) text += fmt::format(" at {}", place);
  if (!device.is_consistent)
    return text + fmt::format(" on {}, which had {} left.", device_name,
                              format_bytes(oom.device_free_bytes));
  return text + fmt::format(", with {} live on {}. {}",
                            format_bytes(oom.moment.figures.active_bytes), device_name,
                            why_refused(oom));
}

Document describe_refusal(const RefusedRequest& refused, std::string_view working_folder,
                          size_t most) {
  std::vector<std::pair<std::string, HolderAtRefusal>> lines;  // with the largest stack of each
  for (const HolderAtRefusal& holder : refused.holders) {
    const std::string_view at = headline(holder.stack);
    std::string line = at.empty() ? "(no stack)" : shown(at, working_folder);
    auto same = std::ranges::find(lines, line, &std::pair<std::string, HolderAtRefusal>::first);
    if (same == lines.end()) {
      lines.emplace_back(std::move(line), holder);
    } else {
      same->second.bytes += holder.bytes, same->second.count += holder.count;
    }
  }
  std::ranges::stable_sort(lines, std::ranges::greater{},
                           [](const auto& line) { return line.second.bytes; });
  Table table = share_table("line");
  add_rows(lines, most, &table, [&](const auto& line) {
    return share_row(line.second.bytes, refused.live_bytes.value_or(0),
                     {.text = line.first, .is_code = true});
  });
  Section answer;
  answer.add(Sentence{refusal_sentence(refused, nullptr, working_folder), Tone::kHeadline});
  if (!refused.raised_again_in.empty() && refused.live_bytes)
    answer.add(Sentence{fmt::format("This process, which waited for it, had {} live on {}{}",
                                    format_bytes(*refused.live_bytes), printable(refused.device),
                                    table.rows.empty() ? '.' : ':')});
  answer.add(std::move(table));
  if (!refused.live_bytes) answer.add(Sentence{"Holders unknown: the process was not recorded."});
  answer.add(Sentence{refused.message, Tone::kPlain, "The error"});
  Document out{.title = "Out of memory: " + refused.folder};
  out.add(std::move(answer));
  return out;
}

std::vector<Sentence> end_sentences(const ProgramEnds& ends, const Analysis* analysis,
                                    std::string_view working_folder) {
  std::vector<Sentence> lines = open_end_sentences(ends);
  const size_t before = lines.size();
  for (const RefusedRequest& one : ends.refused | std::views::take(kMostRefusalsTold)) {
    const OomExplanation* explained = analysis ? explanation_of(one, *analysis) : nullptr;
    lines.push_back({refusal_sentence(one, explained, working_folder), Tone::kBad});
    std::string remedy = explained ? what_would_have_fitted(*explained) : "";
    if (!remedy.empty()) lines.push_back({std::move(remedy), Tone::kStrong});
  }
  if (ends.refused.size() > kMostRefusalsTold) {
    lines.push_back({fmt::format("Out of memory in {} more processes or calls.",
                                 ends.refused.size() - kMostRefusalsTold),
                     Tone::kBad});
  }
  // What nobody caught has ended the program; after a caught one it ended in a way of its own.
  if (lines.size() > before && std::ranges::none_of(ends.refused, &RefusedRequest::was_caught))
    return lines;
  const size_t of_refusals = lines.size();
  for (const ProgramEnd& run : ends.runs) {
    std::string line;
    if (was_killed_by_the_kernel(run)) {
      line = "The kernel's OOM killer ended the program";
      line += run.memory_limit_bytes ? fmt::format(": its cgroup's limit is {}.",
                                                   format_bytes(*run.memory_limit_bytes))
                                     : ": the host ran out of memory.";
    } else if (!run.signal.empty()) {
      line = printable(run.signal) + " ended the program." + others_killed(run);
      if (run.signal == "SIGKILL" && !run.kernel_kills)
        line +=
            " The kernel sends it when the host or the container is out of memory; users can, too.";
    } else if (run.exit_code.value_or(0) != 0) {
      // What else was raised in a job came of the first.
      const bool is_told = lines.size() == of_refusals && !ends.uncaught.empty();
      line = is_told ? error_sentence(ends.uncaught.front(), run, working_folder)
                     : fmt::format("The program ended with exit code {}.", *run.exit_code);
      line += others_killed(run);
    }
    if (!line.empty()) lines.push_back({std::move(line), Tone::kBad});
  }
  if (lines.size() - before > kMostRefusalsTold) {
    const size_t more = lines.size() - before - kMostRefusalsTold;
    lines.resize(before + kMostRefusalsTold);
    lines.push_back({fmt::format("{} more programs failed.", more), Tone::kBad});
  }
  if (!ends.unfinished.empty())
    lines.push_back({unfinished_sentence(ends.unfinished), Tone::kBad});
  return lines;
}

}  // namespace gpumemprof
