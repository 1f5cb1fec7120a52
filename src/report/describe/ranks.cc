// The ranks of a job.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/duration.h"
#include "base/size.h"
#include "report/describe/facts.h"
#include "report/describe/sections.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

/// "ranks 1, 2 and 5"; of many the first ones.
std::string rank_names(const std::vector<uint32_t>& ranks, uint64_t count) {
  constexpr size_t kMost = 8;
  if (count == 1) return fmt::format("rank {}", ranks.front());
  std::string out = "ranks ";
  const size_t shown = std::min(ranks.size(), kMost);
  for (size_t i = 0; i < shown; ++i) {
    out += i == 0 ? "" : i + 1 == count ? " and " : ", ";
    out += std::to_string(ranks[i]);
  }
  return shown == count ? out : out + fmt::format(" and {} more", count - shown);
}

std::string end_words(const OneRank& rank) {
  switch (rank.end) {
    case RankEnd::kClean:
      return "exited";
    case RankEnd::kExitCode:
      return fmt::format("exit code {}", rank.exit_code);
    case RankEnd::kSignal:
      return printable(rank.signal);
    case RankEnd::kOutOfMemory:
      return "out of memory";
    default:
      return "killed or running";
  }
}

/// Ranks that have a peak.
size_t count_with_memory(const JobRanks& job) {
  return static_cast<size_t>(
      std::ranges::count_if(job.ranks, [](const OneRank& rank) { return rank.device.has_value(); }));
}

/// What the ranks are compared with: of two the median is the mean of both.
const char* middle_name(const JobRanks& job) {
  return count_with_memory(job) == 2 ? "mean" : "median";
}

/// "+30.5 MiB (+63.4 %)".
std::string difference(uint64_t bytes, uint64_t median_bytes) {
  const bool is_more = bytes >= median_bytes;
  const uint64_t by = is_more ? bytes - median_bytes : median_bytes - bytes;
  if (by == 0) return "0 B";
  const char sign = is_more ? '+' : '-';
  if (median_bytes == 0) return fmt::format("{}{}", sign, format_bytes(by));
  const std::string share = format_percent(by, median_bytes);
  return fmt::format("{}{} ({}{})", sign, format_bytes(by),
                     share.starts_with('<') ? "" : std::string(1, sign), share);
}

std::string signed_duration(int64_t ns) {
  return (ns < 0 ? "-" : "") + format_duration(static_cast<uint64_t>(std::abs(ns)));
}

Row rank_row(const Subject& subject, const JobRanks& job, const OneRank& rank) {
  const Process& process = process_at(subject.tables, rank.process);
  std::string where = fmt::format("process {} on {}", process.pid, printable(process.host));
  if (process.place.local_rank)
    where += fmt::format(", local rank {}", *process.place.local_rank);
  if (rank.tries > 1) where += fmt::format(", the last of {} tries", rank.tries);
  if (const size_t others = rank.processes - rank.tries; others > 0)
    where += ", with " + format_plural(others, "process") + " that it started";
  Row row{.cells = {{std::to_string(rank.rank)},
                    {rank.device ? format_bytes(rank.peak_bytes) : "none"},
                    {rank.device ? difference(rank.peak_bytes, job.median_peak_bytes) : ""},
                    {job.job_peak_bytes ? format_bytes(rank.at_job_peak_bytes) : "unknown"},
                    {rank.parameters ? format_bytes(rank.parameter_bytes) : "unknown"},
                    {format_count(rank.steps)},
                    {rank.lag_ns ? signed_duration(*rank.lag_ns) : "unknown"},
                    {end_words(rank)},
                    {std::move(where)}}};
  return row;
}

Table ranks_table(const Subject& subject, const JobRanks& job) {
  Table table{.columns = {{"rank", true, 4},
                          {"peak", true, 9},
                          {fmt::format("vs. {}", middle_name(job)), true, 20},
                          {"at job's peak", true, 13},
                          {"parameters", true, 10},
                          {"steps", true, 5},
                          {"lag", true, 9},
                          {"end"},
                          {"where"}},
              .noun = "rank"};
  std::vector<const OneRank*> ranks;
  for (const OneRank& rank : job.ranks) ranks.push_back(&rank);
  if (ranks.size() > subject.options.table_rows) {  // then those that differ the most
    std::ranges::stable_sort(ranks, std::ranges::greater(), &OneRank::peak_bytes);
  }
  add_rows(ranks, subject.options.table_rows, &table,
           [&](const OneRank* rank) { return rank_row(subject, job, *rank); });
  return table;
}

std::string together_words(const Subject& subject, const JobRanks& job) {
  if (!job.job_peak_bytes) return "unknown, because " + job.why_no_job_peak;
  std::string text = fmt::format("{} on all ranks at one moment, {}",
                                 format_bytes(*job.job_peak_bytes),
                                 moment_text(subject.analysis, job.job_peak_ns));
  return job.why_no_job_peak.empty() ? text
                                     : text + "; the moment is uncertain: " + job.why_no_job_peak;
}

std::string refusal_words(const Subject& subject, const RankRefusal& one) {
  std::string text = fmt::format("rank {}: {} were refused on {}", one.rank,
                                 format_bytes(one.size_bytes),
                                 device_name(device_at(subject.tables, one.device)));
  if (one.stack != 0) text += " at " + subject.line_text(headline_node(subject.tables, one.stack));
  if (!one.ended_it) text += ". The program caught it";
  if (one.ranks > 1) text += fmt::format(". {} ranks had requests refused", one.ranks);
  return text;
}

std::string clock_words(const Tables& tables) {
  if (tables.clocks.size() < 2) return "one, shared by all processes: error 0";
  std::string text;
  for (const MachineClock& clock : tables.clocks) {
    if (clock.by == MachineClock::Aligned::kIsTheirs) continue;
    if (!text.empty()) text += "; ";
    if (clock.by == MachineClock::Aligned::kWallClock) {
      text += "by the wall clocks, error unknown";
    } else {
      text += fmt::format("by {}, error at most {}", format_plural(clock.collectives, "collective"),
                          clock.error_ns ? format_duration(*clock.error_ns) : "unknown");
      if (clock.drifts) text += ", including their drift";
    }
  }
  return fmt::format("{}, aligned {}", tables.clocks.size(), text);
}

List facts_list(const Subject& subject, const JobRanks& job) {
  List list{.label_width = 13};
  const auto add = [&](const char* label, std::string text) {
    list.items.push_back({.label = label, .text = std::move(text) + "."});
  };
  add("together", together_words(subject, job));
  if (job.first_refusal) add("out of memory", refusal_words(subject, *job.first_refusal));
  for (const Straggler& one : job.stragglers)
    add("waited for", fmt::format("rank {}: {}", one.rank, printable(one.evidence)));
  if (job.stragglers.empty())
    add("waited for", job.why_no_stragglers.empty() ? "no rank in particular"
                                                    : "unknown, because " + job.why_no_stragglers);
  for (const Parallelism& one : job.parallelism)
    add("parallelism", one.kind + " parallel: " + printable(one.evidence));
  if (job.parallelism.empty()) add("parallelism", "unknown: " + printable(job.why_no_parallelism));
  add("clocks", clock_words(subject.tables));
  return list;
}

Table lines_table(const Subject& subject, const JobRanks& job) {
  Table table{.columns = {{"here", true, 9},
                          {middle_name(job), true, 9},
                          {"line"}}, .noun = "line"};
  add_rows(job.lines, 3, &table, [&](const RankLine& line) {
    return Row{.cells = {{format_bytes(line.bytes)},
                         {format_bytes(line.median_bytes)},
                         {.text = subject.line_text(line.node),
                          .note = subject.source_of(line.node),
                          .is_code = true}}};
  });
  table.left_out = 0;
  return table;
}

/// Half a percent apart is alike.
bool is_above_median(const JobRanks& job) {
  const uint64_t most = job.ranks[*job.highest].peak_bytes;
  return most > job.median_peak_bytes + job.median_peak_bytes / 200;
}

}  // namespace

std::vector<std::string> rank_failures(const JobRanks& job, std::optional<uint32_t> told_rank) {
  std::vector<std::string> out;
  if (job.missing_count != 0) {
    out.push_back(capitalized(rank_names(job.missing, job.missing_count)) +
                  (job.missing_count == 1 ? " has" : " have") + " no recording" +
                  (job.world_size ? fmt::format("; the job has {} ranks.", *job.world_size)
                                  : ", though higher numbers have."));
  }
  // A launcher ends the others after the first.
  std::vector<uint32_t> ended_after;
  std::vector<const OneRank*> failed;
  const bool ran_out = std::ranges::any_of(
      job.ranks, [](const OneRank& rank) { return rank.end == RankEnd::kOutOfMemory; });
  for (const OneRank& rank : job.ranks) {
    if (rank.end == RankEnd::kSignal && rank.signal == "SIGTERM") {
      ended_after.push_back(rank.rank);
    } else if (rank.end == RankEnd::kSignal || rank.end == RankEnd::kExitCode) {
      failed.push_back(&rank);
    }
  }
  constexpr size_t kMostTold = 3;
  for (const OneRank* rank : failed) {
    if (out.size() == kMostTold + 1) break;
    if (rank->rank == told_rank) continue;
    out.push_back(rank->end == RankEnd::kSignal
                      ? fmt::format("{} ended rank {}.", printable(rank->signal), rank->rank)
                      : fmt::format("Rank {} ended with exit code {}.", rank->rank,
                                    rank->exit_code));
  }
  if (!ended_after.empty()) {
    out.push_back(fmt::format("SIGTERM ended {}{}.", rank_names(ended_after, ended_after.size()),
                              failed.empty() && !ran_out ? "" : ", as launchers do after the first failure"));
  }
  return out;
}

std::string median_sentence(const Subject& subject, const JobRanks& job) {
  if (!job.highest) return {};
  const OneRank& highest = job.ranks[*job.highest];
  const size_t ranks = count_with_memory(job);
  if (ranks < 2) return {};
  if (!is_above_median(job)) {
    const std::string least = format_bytes(job.least_peak_bytes);
    const std::string most = format_bytes(highest.peak_bytes);
    const bool are_alike = job.least_peak_bytes + job.least_peak_bytes / 200 >= highest.peak_bytes;
    const bool are_all = ranks == job.ranks.size();
    const std::string who = ranks == 2 && are_all ? "Both ranks"
                            : are_all && are_alike ? fmt::format("All {} ranks", ranks)
                                                   : fmt::format("The {} ranks", ranks);
    return fmt::format("{}{} peak at {}.", who, are_all ? "" : " with allocations",
                       least == most ? most : fmt::format("{} to {}", least, most));
  }
  const uint64_t above = highest.peak_bytes - job.median_peak_bytes;
  std::string text = fmt::format(
      "Rank {} is {} ({}) above the {} of {} ranks, {}", highest.rank, format_bytes(above),
      format_percent(above, job.median_peak_bytes), middle_name(job),
      ranks == 2 && ranks == job.ranks.size() ? "both" : std::to_string(ranks),
      format_bytes(job.median_peak_bytes));
  if (!job.lines.empty())
    text += fmt::format(": {} holds {} there, against a {} of {}",
                        subject.line_text(job.lines[0].node), format_bytes(job.lines[0].bytes),
                        middle_name(job), format_bytes(job.lines[0].median_bytes));
  return text + '.';
}

Section ranks_section(const Subject& subject) {
  Section out{"Ranks"};
  const JobRanks* job = subject.analysis.ranks.get();
  if (job == nullptr) return out;
  out.add(Sentence{fmt::format(
      "{} of {} ranks {} recorded{}, on {}.", job->ranks.size(),
      job->world_size ? std::to_string(*job->world_size) : "an unknown number of",
      job->ranks.size() == 1 ? "was" : "were",
      job->launcher == Launcher::kNone ? "" : std::string(" (") + launcher_name(job->launcher) + ")",
      format_plural(job->hosts, "host"))});
  std::vector<uint32_t> without;
  for (const OneRank& rank : job->ranks)
    if (!rank.device) without.push_back(rank.rank);
  if (!without.empty() && without.size() < job->ranks.size())
    out.add(Sentence{fmt::format("No allocation of {} was recorded.",
                                 rank_names(without, without.size()))});
  out.add(ranks_table(subject, *job));
  if (job->highest && is_above_median(*job) && !job->lines.empty()) {
    out.add(Sentence{fmt::format("What rank {} holds above the {}, by line:",
                                 job->ranks[*job->highest].rank, middle_name(*job))});
    out.add(lines_table(subject, *job));
  }
  out.add(facts_list(subject, *job));
  return out;
}

}  // namespace gpumemprof
