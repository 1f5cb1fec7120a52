#include <fmt/format.h>

#include <algorithm>

#include "analysis/host/host_findings.h"
#include "analysis/leaks/leak_names.h"
#include "analysis/pass/end_in_doubt.h"
#include "analysis/replay/told_refusals.h"
#include "base/duration.h"
#include "base/size.h"
#include "report/describe/end_words.h"
#include "report/describe/explanation.h"
#include "report/describe/facts.h"
#include "report/describe/sections.h"
#include "report/describe/snapshot_words.h"
#include "report/words.h"
#include "trace/device_place.h"

namespace gpumemprof {
namespace {

constexpr size_t kAnswerLines = 3;

/// An out-of-memory error comes before everything else. One that ended the program is told by its
/// dump, where there is one.
void add_first_refusal(const Subject& subject, Section* out) {
  const Analysis& analysis = subject.analysis;
  if (std::ranges::any_of(analysis.ends.refused, [&](const RefusedRequest& one) {
        return explanation_of(one, analysis) != nullptr;
      }))
    return;
  for (const DeviceAnalysis& device : analysis.devices) {
    if (!device.snapshot || device.snapshot->ooms.empty()) continue;
    const OomExplanation& oom = device.snapshot->ooms.front();
    // Of a snapshot it is not known what came of it, unless something was allocated later.
    const bool was_caught =
        (device.snapshot->is_recorded || oom.went_on) && analysis.ends.failure.empty();
    const uint64_t refusals = device.snapshot->oom_count;
    std::string rest = was_caught ? " The program went on." : "";
    if (refusals > 1)
      rest = fmt::format(" It is the first of {} refusals{}", refusals,
                         was_caught ? "; the program went on." : ".");
    const uint32_t node = headline_node(subject.tables, oom.stack);
    out->add(Sentence{
        refusal_sentence(oom, *device.snapshot, memory_name(device, subject.tables),
                         node == 0 ? "" : subject.line_text(node)) +
            rest,
        was_caught ? Tone::kWarning : Tone::kBad});
    if (std::string remedy = what_would_have_fitted(oom); !remedy.empty())
      out->add(Sentence{std::move(remedy), Tone::kStrong});
    return;
  }
}

const OneRank* rank_of(std::optional<uint32_t> number, const JobRanks& job) {
  const auto found = std::ranges::find(job.ranks, number, &OneRank::rank);
  return number && found != job.ranks.end() ? &*found : nullptr;
}

/// Of a job whose ranks tell how they ended. What a launcher raises is an echo, and so is what a rank
/// raised that was ended after another had failed.
ProgramEnds ends_of_job(const ProgramEnds& all, const JobRanks& job) {
  ProgramEnds ends = all;
  std::erase_if(ends.uncaught, [&](const UncaughtError& error) {
    return !error.rank && error.kind.ends_with("ChildFailedError");
  });
  std::ranges::stable_partition(ends.uncaught, [&](const UncaughtError& error) {
    const OneRank* rank = rank_of(error.rank, job);
    return rank && rank->end == RankEnd::kExitCode;
  });
  std::erase_if(ends.unfinished, [&](const UnfinishedProcess& one) {
    const OneRank* rank = rank_of(one.rank, job);
    return rank && rank->end != RankEnd::kUnknown;
  });
  return ends;
}

/// A rank failed and raised nothing: what others raised may have come of that.
bool has_failed_silently(const JobRanks& job, const std::vector<UncaughtError>& errors) {
  return std::ranges::any_of(job.ranks, [&](const OneRank& rank) {
    const bool has_failed = rank.end == RankEnd::kExitCode ||
                            (rank.end == RankEnd::kSignal && rank.signal != "SIGTERM");
    return has_failed && std::ranges::none_of(errors, [&](const UncaughtError& error) {
             return error.rank == rank.rank;
           });
  });
}

}  // namespace

std::vector<Sentence> job_end_sentences(const Analysis& analysis,
                                        std::string_view working_folder) {
  if (!analysis.ranks || rank_failures(*analysis.ranks).empty())
    return end_sentences(analysis.ends, &analysis, working_folder);
  const ProgramEnds ends = ends_of_job(analysis.ends, *analysis.ranks);
  std::vector<Sentence> out = end_sentences(ends, &analysis, working_folder);
  const bool ran_out = !ends.refused.empty();
  const OneRank* raised =
      ends.uncaught.empty() ? nullptr : rank_of(ends.uncaught.front().rank, *analysis.ranks);
  const bool is_told = !ran_out && raised && raised->end == RankEnd::kExitCode;
  const bool is_cause = is_told && !has_failed_silently(*analysis.ranks, ends.uncaught);
  std::vector<Sentence> of_ranks;
  for (std::string& text :
       rank_failures(*analysis.ranks, is_told ? std::optional(raised->rank) : std::nullopt))
    of_ranks.push_back({std::move(text), Tone::kBad});
  // The cause is first: a refused request, or the first error if no rank failed without one.
  out.insert(ran_out || is_cause ? out.end() : out.begin(), of_ranks.begin(), of_ranks.end());
  return out;
}

namespace {

std::string complete_loss_sentence(const Analysis& analysis) {
  if (!is_complete(analysis.loss)) return loss_sentence(analysis.loss);
  if (analysis.ranks && analysis.ranks->missing_count != 0)
    return "Nothing was lost of the ranks that were recorded.";
  const bool has_dropped = std::ranges::any_of(analysis.devices, [](const DeviceAnalysis& device) {
    return device.snapshot && device.snapshot->overflowed;
  });
  return has_dropped ? "The oldest events were dropped, an unknown number; of the rest nothing "
                       "was lost."
                     : loss_sentence(analysis.loss);
}

Section answer_section(const Subject& subject, const DeviceAnalysis* device) {
  const Analysis& analysis = subject.analysis;
  const char* no_events = analysis.loss.has_every_event() ? "No events: nothing was recorded."
                                                          : "No events: all were lost.";
  Section out = peak_section(
      subject, analysis.events == 0 ? no_events
               : analysis.driver
                   ? "No framework allocated memory; driver allocations are listed below."
                   : "Nothing was allocated in this recording.");
  if (device && device->snapshot) {
    out.add(Sentence{reserved_sentence(*device->snapshot, subject.tables, is_moment(*device))});
    if (std::string retries = retries_sentence(*device->snapshot); !retries.empty())
      out.add(Sentence{std::move(retries)});
    out.add(Sentence{replay_sentence(*device->snapshot)});
  }
  out.add(Sentence{complete_loss_sentence(analysis),
                   is_complete(analysis.loss) ? Tone::kPlain : Tone::kBad});
  for (const std::string& text : caveats(analysis, subject.tables, subject.options.working_folder))
    out.add(Sentence{text, Tone::kWarning, "Note"});
  return out;
}

Section file_section(const Analysis& analysis) {
  const uint64_t from = std::min(analysis.start_time_ns, analysis.last_time_ns);
  const bool lacks_times = std::ranges::any_of(analysis.devices, [&](const DeviceAnalysis& device) {
    return !why_no_times(analysis, device).empty();
  });
  const bool has_span = !lacks_times && analysis.last_time_ns > from;
  Section out;
  out.add(Sentence{fmt::format("{}{}. {} in {}.", format_plural(analysis.events, "event"),
                               lacks_times ? " without times"
                               : has_span  ? ", " + format_duration(analysis.last_time_ns - from)
                                           : "",
                               format_bytes(analysis.source.bytes), analysis.source.path),
                   Tone::kDim});
  return out;
}

Section score_section(const Score& score) {
  Section out;
  out.add(Sentence{score_sentence(score)});
  return out;
}

Section words_section(const Subject& subject, const DeviceAnalysis& device) {
  Section out{"The peak in plain words"};
  const DescribeOptions& options = subject.options;
  out.add(Sentence{explain_peak(subject.analysis, subject.tables, device, options.working_folder,
                                options.advice ? options.advice : options.known_advice)
                       .text});
  return out;
}

}  // namespace

Tone tone_of(Severity severity) {
  return severity == Severity::kCritical  ? Tone::kBad
         : severity == Severity::kWarning ? Tone::kWarning
                                          : Tone::kNote;
}

Subject::Subject(const Analysis& analysis, const Tables& tables, const DescribeOptions& options)
    : analysis(analysis), tables(tables), options(options) {
  const DeviceAnalysis* device = main_device(analysis, tables);
  if (!options.shows_source || !device) return;
  source_ = source_text_of(process_at(tables, device_at(tables, device->device).process));
}

std::string Subject::source_of(uint32_t node) const {
  if (!source_ || node == 0) return {};
  const Frame& frame = tables.stacks.frame_of(node);
  return source_->line(std::string(tables.strings.get(frame.file)), frame.line);
}

std::string Subject::note_of(uint32_t node, const DeviceAnalysis& device) const {
  return node == 0 ? no_stack_words(device, tables) : source_of(node);
}

static Row answer_row(const Subject& subject, const DeviceAnalysis& device,
                      const HolderLine& holder) {
  return share_row(holder.bytes, device.figures.peak_bytes,
                   {.text = subject.line_text(holder.node),
                    .note = subject.note_of(holder.node, device),
                    .is_code = true});
}

Section describe_host_peak(const Analysis& analysis, const Tables& tables,
                           const DescribeOptions& options) {
  Section out;
  const DeviceAnalysis* highest = nullptr;
  for (const DeviceAnalysis& device : analysis.devices) {
    if (!is_host_blocks(device_at(tables, device.device))) continue;
    if (!highest || device.figures.peak_bytes > highest->figures.peak_bytes) highest = &device;
  }
  if (!highest || highest->figures.peak_bytes == 0 || highest == main_device(analysis, tables))
    return out;
  out.add(Sentence{peak_sentence(analysis, tables, *highest)});
  const std::vector<HolderLine> holders = group_by_line(highest->holders_at_peak, tables);
  if (holders.empty()) return out;
  Table table = share_table("line");
  table.rows.push_back(answer_row({analysis, tables, options}, *highest, holders.front()));
  out.add(std::move(table));
  return out;
}

Section describe_peak(const Analysis& analysis, const Tables& tables,
                      const DescribeOptions& options, std::string_view nothing) {
  return peak_section({analysis, tables, options}, nothing);
}

Section peak_section(const Subject& subject, std::string_view nothing) {
  const Analysis& analysis = subject.analysis;
  const Tables& tables = subject.tables;
  Section out;
  for (Sentence& said : job_end_sentences(analysis, subject.options.working_folder))
    out.add(std::move(said));
  add_first_refusal(subject, &out);
  const DeviceAnalysis* device = main_device(analysis, tables);
  if (!device) {
    out.add(Sentence{std::string(nothing), Tone::kHeadline});
    return out;
  }
  out.add(Sentence{peak_sentence(analysis, tables, *device), Tone::kHeadline});
  if (const std::string text = analysis.ranks ? median_sentence(subject, *analysis.ranks) : "";
      !text.empty())
    out.add(Sentence{text, Tone::kStrong});
  // Of a line that calls model.fit() nobody learns anything where its layers are known.
  Table layers = layers_table(subject, *device, kAnswerLines);
  if (!layers.rows.empty()) {
    out.add(std::move(layers));
    return out;
  }
  std::vector<HolderLine> holders = group_by_line(device->holders_at_peak, tables);
  holders.resize(std::min(kAnswerLines, holders.size()));
  Table table = share_table("line");
  for (const HolderLine& holder : holders) {
    table.rows.push_back(answer_row(subject, *device, holder));
    if (holder.node != 0) table.rows.back().evidence = evidence_at_peak(*device, {holder.node});
    // What most of it is behind one call, such as a trainer's, its modules tell.
    if (2 * holder.bytes < device->figures.peak_bytes) continue;
    Table modules = modules_table(subject, *device, holder, kAnswerLines);
    modules.left_out = 0;
    if (!modules.rows.empty()) table.rows.back().details.emplace_back(std::move(modules));
  }
  if (!table.rows.empty()) out.add(std::move(table));
  return out;
}

namespace {

std::string place_of(const Finding& finding, const Tables& tables) {
  if (finding.device == kOfTheHost) return "host";
  return device_place(tables, device_at(tables, finding.device));
}

}  // namespace

Section findings_section(const Subject& subject) {
  List list{.label_width = 8};
  for (const Finding& finding : subject.analysis.findings) {
    Item item{.label = severity_name(finding.severity),
              .text = fmt::format("{}: {}.", place_of(finding, subject.tables), finding.title),
              .tone = tone_of(finding.severity),
              .evidence = evidence_of(finding, subject.analysis)};
    if (tells_growth_by_line(finding)) {
      if (finding.stack != 0) {
        const std::string source = subject.source_of(finding.stack);
        item.details.push_back(
            {subject.line_text(finding.stack) + (source.empty() ? "" : "  " + source), Tone::kDim});
      }
      for (std::string& text : finding_details(finding)) item.details.push_back({std::move(text)});
    }
    if (!finding.fix.empty())
      item.details.push_back({finding.fix + ".", Tone::kPlain, "Fix"});
    list.items.push_back(std::move(item));
  }
  Section out{"Findings"};
  if (!list.items.empty()) out.add(std::move(list));
  return out;
}

Section losses_section(const Subject& subject) {
  const std::vector<LossReason>& reasons = subject.analysis.loss.reasons;
  Section out{.title = "What was lost or not seen", .is_folded = true};
  // The answer names the first of them.
  if (reasons.size() <= kReasonsInSentence) return out;
  List list;
  for (const LossReason& reason : reasons) list.items.push_back({"", reason_text(reason)});
  out.add(std::move(list));
  return out;
}

Document describe_analysis(const Analysis& analysis, const Tables& tables,
                           const DescribeOptions& options) {
  const Subject subject{analysis, tables, options};
  const DeviceAnalysis* device = main_device(analysis, tables);
  Document out{.title = "Memory of " + analysis.source.path};
  out.add(answer_section(subject, device));
  out.add(ranks_section(subject));
  if (device) out.add(words_section(subject, *device));
  out.add(findings_section(subject));
  const bool is_end_lost = analysis.source.kind == SourceKind::kRecording &&
                           is_end_unknown(analysis.loss, tables, analysis.ends);
  if (analysis.score.value || analysis.score.hides_growth || !analysis.ends.failure.empty() ||
      is_end_lost)
    out.add(score_section(analysis.score));
  if (options.advice) out.add(advice_section(*options.advice));
  for (const DeviceAnalysis& each : analysis.devices) {
    for (Section& section : refusal_sections(subject, each)) out.add(std::move(section));
  }
  if (device) {
    out.add(categories_section(subject, *device));
    out.add(layers_section(subject, *device));
    out.add(lines_section(subject, *device));
    out.add(fragmentation_section(subject, *device));
    if (device->pool) out.add(pool_section(*device->pool));
    out.add(temporaries_section(subject, *device));
  }
  for (Section& section : other_device_sections(subject, device)) out.add(std::move(section));
  for (Section& section : driver_sections(subject)) out.add(std::move(section));
  out.add(devices_section(subject));
  for (Section& section : host_sections(subject)) out.add(std::move(section));
  out.add(machine_section(subject));
  out.add(processes_section(subject));
  out.add(threads_section(subject));
  out.add(losses_section(subject));
  out.add(file_section(analysis));
  return out;
}

}  // namespace gpumemprof
