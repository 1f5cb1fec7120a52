// The host's memory during the run: sums of processes and of the cgroup, by class.
#include "report/describe/describe.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/diff.h"
#include "analysis/host/host_memories.h"
#include "base/size.h"
#include "report/describe/facts.h"
#include "report/describe/sections.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostSums = 3;  // of processes that are shown with their classes
constexpr size_t kMostChartLines = 4;  // of a chart

/// Negative where more is known than is resident.
std::string host_signed(int64_t bytes) {
  return (bytes < 0 ? "-" : "") + format_bytes(magnitude(bytes));
}

Row host_row(size_t depth, std::string name, const HostTerm& term, std::string remark = "") {
  if (!term.bytes)
    return term_row(depth, std::move(name), "unknown", "because " + printable(term.why));
  return term_row(depth, std::move(name), format_bytes(*term.bytes), std::move(remark));
}

Row rest_row(const std::optional<int64_t>& rest, const char* name, const char* why) {
  if (!rest) return term_row(1, name, "unknown", std::string("because ") + why);
  return term_row(1, name, host_signed(*rest),
                  *rest < 0 ? "malloc counts memory that is not resident, too" : "");
}

/// What a walk through a process's page tables says.
void add_pages(const HostMoment& moment, Table* table) {
  const auto add = [&](Row row) { table->rows.push_back(std::move(row)); };
  add(host_row(0, "proportional (PSS)", moment.proportional,
               "a page shared by n processes counts 1/n"));
  add(host_row(1, "anonymous", moment.proportional_anonymous));
  add(host_row(1, "files", moment.proportional_file));
  add(host_row(1, "shared memory", moment.proportional_shared));
  if (moment.copied_file.bytes.value_or(0) != 0)
    add(host_row(0, "private copies of file pages", moment.copied_file,
                 printable(moment.most_copied_file)));
}

void add_parts_of_malloc(const HostIdentity& sum, Table* table) {
  table->rows.push_back(host_row(1, "in use in malloc", sum.malloc_live));
  table->rows.push_back(host_row(1, "free and kept by malloc", sum.malloc_kept));
  table->rows.push_back(host_row(1, "Python's arenas", sum.python_arenas));
  table->rows.push_back(
      rest_row(sum.rest_bytes, "the rest", "the resident memory is unknown"));
}

Table sum_table(const HostMoment& moment) {
  const HostIdentity sum = host_identity(moment);
  Table table = terms_table();
  const auto add = [&](Row row) { table.rows.push_back(std::move(row)); };
  add(host_row(0, "resident (RSS)", sum.resident));
  add(host_row(1, "pinned by the GPU's driver", sum.pinned));
  add(host_row(1, "other shared memory", sum.shared));
  add(host_row(1, "pages of files", sum.file));
  const bool is_one_sum = !sum.malloc_live.bytes && !sum.malloc_kept.bytes;
  if (is_one_sum && sum.rest_bytes) {
    add(rest_row(sum.rest_bytes, "malloc, Python's arenas and the rest", ""));
    table.rows.back().cells.push_back({"one sum, because " + sum.malloc_live.why});
  } else {
    add_parts_of_malloc(sum, &table);
  }
  if (moment.swapped.bytes.value_or(0) != 0) add(host_row(0, "in swap", moment.swapped));
  if (moment.registered.bytes.value_or(0) != 0)
    add(host_row(0, "own pages pinned by the driver", moment.registered));
  if (moment.proportional.bytes) add_pages(moment, &table);
  return table;
}

Table asked_table(const HostMoment& said) {
  const HostIdentity sum = host_identity(said);
  Table table = terms_table();
  const auto add = [&](Row row) { table.rows.push_back(std::move(row)); };
  add(host_row(0, "resident (RSS)", said.resident));
  add(host_row(1, "pinned by the GPU's driver", sum.pinned));
  if (said.pinned_cache.bytes) {
    add(host_row(2, "PyTorch's cache of pinned memory", said.pinned_cache));
    add(host_row(3, "in use", said.pinned_used));
  }
  add(host_row(1, "other shared memory", sum.shared));
  add(host_row(1, "pages of files", sum.file));
  add_parts_of_malloc(sum, &table);
  return table;
}

Table cgroup_table(const CgroupMoment& moment) {
  Table table = terms_table();
  const auto add = [&](Row row) { table.rows.push_back(std::move(row)); };
  add(host_row(0, "charged to the cgroup", moment.used,
               moment.limit.bytes ? "of " + format_bytes(*moment.limit.bytes) : "no limit"));
  add(host_row(1, "anonymous", moment.anonymous));
  Row file = host_row(1, "page cache", moment.file);
  if (moment.file.bytes && moment.reclaimable.bytes)
    file.cells.push_back(
        {fmt::format("{} on the lists that the kernel reclaims", format_bytes(*moment.reclaimable.bytes))});
  add(std::move(file));
  add(host_row(1, "shared memory and /dev/shm", moment.shared));
  add(host_row(1, "kernel", moment.kernel));
  add(rest_row(rest_of(moment), "not yet in a class", "a class is unknown"));
  if (moment.swapped.bytes.value_or(0) != 0) add(host_row(0, "in swap", moment.swapped));
  return table;
}

ChartLine level_line(const Analysis& analysis, const HostRun& run, std::string name,
                     std::optional<uint64_t> HostLevel::*term) {
  std::vector<double> times_s, bytes;
  for (const HostLevel& level : run.levels) {
    const auto& value = level.*term;
    times_s.push_back(second_of(analysis, level.time_ns));
    bytes.push_back(value ? static_cast<double>(*value) : std::nan(""));
  }
  return chart_line(std::move(name), times_s, bytes);
}

ChartLine process_line(const Analysis& analysis, const HostRun& run, const HostProcess& process) {
  std::vector<double> times_s, bytes;
  const auto add = [&](uint64_t time_ns, double value) {
    times_s.push_back(second_of(analysis, time_ns)), bytes.push_back(value);
  };
  auto sample = run.levels.begin();
  for (size_t i = 0; i < process.levels.size(); ++i) {
    const uint64_t end_ns =
        i + 1 < process.levels.size() ? process.levels[i + 1].time_ns : process.last_time_ns;
    const auto resident = static_cast<double>(process.levels[i].resident);
    add(process.levels[i].time_ns, resident);
    for (; sample != run.levels.end() && sample->time_ns < end_ns; ++sample)  // found unchanged
      if (sample->time_ns > process.levels[i].time_ns) add(sample->time_ns, resident);
  }
  add(process.last_time_ns, static_cast<double>(process.last_resident_bytes));
  const auto later = std::ranges::upper_bound(run.levels, process.last_time_ns, {}, &HostLevel::time_ns);
  if (later != run.levels.end()) add(later->time_ns, std::nan(""));  // it had ended
  return chart_line(printable(name_of(process)), times_s, bytes);
}

/// Over time, in all processes by class, in each of the largest, and in the cgroup.
void add_host_charts(const Subject& subject, const HostRun& run, Section* out) {
  if (run.levels.size() < 2) return;
  const std::string where =
      subject.analysis.host->runs.size() > 1 && !run.host.empty() ? ", " + printable(run.host) : "";
  Chart classes{.title = "host memory of the run by class" + where};
  const auto add = [&](const char* name, std::optional<uint64_t> HostLevel::*term) {
    classes.lines.push_back(level_line(subject.analysis, run, name, term));
  };
  add("anonymous", &HostLevel::anonymous), add("pages of files", &HostLevel::file);
  add("shared memory, pinned included", &HostLevel::shared);
  if (std::ranges::any_of(run.levels, [](const HostLevel& one) { return one.pinned.value_or(0) != 0; }))
    add("pinned by the GPU's driver", &HostLevel::pinned);
  out->add(std::move(classes));
  if (run.processes.size() > 1) {
    const bool is_part = run.processes.size() > kMostChartLines;
    Chart processes{.title = "resident (RSS) by process" +
                             (is_part ? fmt::format(", the {} largest", kMostChartLines) : "") +
                             where};
    for (size_t i = 0; i < std::min(kMostChartLines, run.processes.size()); ++i)
      processes.lines.push_back(process_line(subject.analysis, run, run.processes[i]));
    out->add(std::move(processes));
  }
  if (!run.cgroup_highest || !run.cgroup_highest->limit.bytes) return;
  out->add(Chart{.title = "cgroup" + where,
                 .lines = {level_line(subject.analysis, run, "charged to the cgroup",
                                      &HostLevel::cgroup)},
                 .limit_bytes = run.cgroup_highest->limit.bytes});
}

/// Before the start the program's interpreter has not run: such a sample measures nothing of it.
bool was_sampled(const Subject& subject, const HostProcess& process) {
  return std::max(process.last_time_ns, process.most_resident_ns) >= subject.analysis.start_time_ns;
}

/// One maximum of all readings, whoever took it.
std::string resident_sentence(const Subject& subject, const HostRun& run) {
  const HostSum& sampled = *run.highest_resident;
  const std::string samples = format_plural(run.levels.size(), "sample");
  const auto most = std::ranges::max_element(run.processes, {}, &HostProcess::most_resident_bytes);
  const char* shared =
      sampled.processes == 1 ? "" : ", with shared pages counted in each of them";
  if (most == run.processes.end() ||
      format_bytes(most->most_resident_bytes) == format_bytes(sampled.bytes) ||
      most->most_resident_bytes < sampled.bytes) {
    return fmt::format("{} of the run had {} resident at most in {}, {}{}.",
                       format_plural(sampled.processes, "process"), format_bytes(sampled.bytes),
                       samples, moment_text(subject.analysis, sampled.time_ns), shared);
  }
  return fmt::format("{} had {} resident at most, by {}; in {} {} had {} at most{}.",
                     printable(name_of(*most)), format_bytes(most->most_resident_bytes),
                     moment_text(subject.analysis, most->most_resident_ns), samples,
                     run.processes.size() == 1 ? "it" : "the run's processes together",
                     format_bytes(sampled.bytes), shared);
}

Section run_section(const Subject& subject, const HostRun& run) {
  Section out{"Host memory"};
  const bool is_known = std::ranges::any_of(
      run.processes, [&](const HostProcess& one) { return was_sampled(subject, one); });
  if (run.highest_resident && !is_known) {
    out.add(Sentence{fmt::format(
        "How much was resident is unknown: the last sample of the run's processes was {}.",
        moment_text(subject.analysis, run.last_sample_with_processes_ns))});
  }
  if (run.highest_resident && is_known) {
    std::string text = resident_sentence(subject, run);
    if (run.highest_proportional) {
      // Rarer than samples: between two of them it may have been more.
      const uint64_t walks = run.highest_proportional->samples;
      text += fmt::format(
          " With shared pages counted once (PSS): {} in {}, {}, {}.",
          format_bytes(run.highest_proportional->bytes),
          format_plural(run.highest_proportional->processes, "process"),
          moment_text(subject.analysis, run.highest_proportional->time_ns),
          walks == 1 ? "the only measurement"
                     : fmt::format("the highest of {}", format_plural(walks, "measurement")));
    }
    out.add(Sentence{std::move(text)});
  }
  add_host_charts(subject, run, &out);
  for (size_t i = 0; i < std::min(kMostSums, run.processes.size()); ++i) {
    const HostProcess& process = run.processes[i];
    if (!was_sampled(subject, process)) continue;
    out.add(Sentence{fmt::format("{}, at the sample with most resident memory, {}:",
                                 printable(name_of(process)),
                                 moment_text(subject.analysis, process.highest.time_ns))});
    out.add(sum_table(process.highest));
    if (!process.highest.proportional.bytes && process.walked) {
      out.add(Sentence{fmt::format("By a walk through its page tables, {}:",
                                   moment_text(subject.analysis, process.walked->time_ns))});
      Table pages = terms_table();
      add_pages(*process.walked, &pages);
      out.add(std::move(pages));
    }
    if (process.asked.empty()) continue;
    const HostMoment& said =
        *std::ranges::max_element(process.asked, {}, [](const HostMoment& one) {
          return one.malloc_kept.bytes.value_or(0);
        });
    out.add(Sentence{fmt::format("As glibc's malloc and Python reported, {}:",
                                 moment_text(subject.analysis, said.time_ns))});
    out.add(asked_table(said));
  }
  List others;
  for (size_t i = kMostSums; i < run.processes.size(); ++i) {
    if (i - kMostSums == subject.options.table_rows) {
      others.items.push_back(
          {"", "and " + format_plural(run.processes.size() - i, "more process")});
      break;
    }
    const HostProcess& process = run.processes[i];
    others.items.push_back(
        {"", fmt::format("{}: {} resident at most", printable(name_of(process)),
                         format_bytes(process.most_resident_bytes))});
  }
  if (!others.items.empty()) out.add(std::move(others));
  // Without a limit it may be that of the whole machine.
  if (run.cgroup_highest && run.cgroup_highest->limit.bytes) {
    out.add(Sentence{fmt::format("The cgroup, when its use was highest, {}:",
                                 moment_text(subject.analysis, run.cgroup_highest->time_ns))});
    out.add(cgroup_table(*run.cgroup_highest));
  }
  if (run.limit_hits.value_or(0) != 0 || run.kills.value_or(0) != 0) {
    out.add(Sentence{fmt::format("The cgroup reached its limit {}; the kernel killed {} in it.",
                                 format_plural(run.limit_hits.value_or(0), "time"),
                                 format_plural(run.kills.value_or(0), "process")),
                     Tone::kWarning});
  }
  return out;
}

}  // namespace

std::string host_sum_text(const HostMoment& moment) {
  const HostIdentity sum = host_identity(moment);
  if (!sum.resident.bytes || !sum.rest_bytes) return {};
  std::string text = "host memory, " + format_bytes(*sum.resident.bytes) + " resident: ";
  for (const auto& [name, term] : {std::pair("pinned ", &sum.pinned),
                                   std::pair("shared ", &sum.shared),
                                   std::pair("files ", &sum.file)}) {
    if (term->bytes) text += name + format_bytes(*term->bytes) + ", ";
  }
  return text + "the rest " + host_signed(*sum.rest_bytes);
}

std::vector<Section> host_sections(const Subject& subject) {
  std::vector<Section> out;
  if (!subject.analysis.host) return out;
  for (const HostRun& run : subject.analysis.host->runs) out.push_back(run_section(subject, run));
  return out;
}

}  // namespace gpumemprof
