// gpumemprof export: the events, or the stacks, for other people's viewers and scripts.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "analysis/analyze.h"
#include "analysis/compare/pick_device.h"
#include "cli/commands.h"
#include "cli/export.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/progress.h"
#include "cli/python_program.h"
#include "report/describe/facts.h"
#include "report/export/event_export.h"
#include "report/export/flame_paths.h"
#include "report/export/stack_exports.h"
#include "report/words.h"
#include "trace/anonymizer.h"

namespace gpumemprof {
namespace {

struct ExportArguments {
  std::vector<std::string> paths;
  std::string to;
  std::string at;
  std::string by;
  std::string device;
  std::string output;
  bool anonymize = false;
  bool no_seal = false;
};

bool is_stack_format(const std::string& to) {
  return to == "folded" || to == "speedscope" || to == "pprof";
}

/// By libraries that Python has, in a child that reads the run itself.
int export_tables(const ExportArguments& arguments) {
  if (arguments.output.empty() || arguments.output == "-")
    return wrong_usage(arguments.to == "parquet"
                       ? "--to parquet writes a folder: give --output FOLDER"
                       : "--to sqlite writes a file: give --output FILE");
  std::vector<std::string> words = {arguments.to, arguments.output};
  if (!arguments.no_seal) words.emplace_back("seal");
  if (arguments.anonymize) words.emplace_back("anonymize");
  words.emplace_back("--");
  words.insert(words.end(), arguments.paths.begin(), arguments.paths.end());
  return become_child("lake", words);
}

/// The moment of DeviceAnalysis::holders_before_exit.
uint32_t after_last_allocation(const PageFile& page, size_t index, bool is_snapshot) {
  const uint32_t last = page.devices()[index].table->moments() - 1;
  if (is_snapshot) return last;
  const std::vector<Device>& memories = page.tables().devices;
  uint64_t last_ns = 0;
  for (const PageDevice& device : page.devices()) {
    if (memories[device.index].process != memories[page.devices()[index].index].process) continue;
    const uint32_t moment = device.table->last_allocation();
    if (moment != 0) last_ns = std::max(last_ns, device.table->times[moment - 1]);
  }
  return std::min(last, page.moment_at(index, last_ns + 1));
}

/// The page, opened at what was live at the moment.
int export_page(const ExportArguments& arguments, const std::string& subject) {
  const MomentArgument at = *parse_moment(arguments.at);  // checked before
  AnalysisOptions options;
  const bool is_requested = at.kind == MomentArgument::kRequested;
  if (is_requested) options.moments.push_back(at.request);
  auto file = load_page_file(
      arguments.paths,
      {.reading = {.seal = !arguments.no_seal,
                   .names = arguments.anonymize ? std::make_shared<Anonymizer>() : nullptr,
                   .analysis = std::move(options)}});
  if (!file) return report_error(subject, file.error());
  const PageFile& page = **file;
  const auto whole = (*file)->whole();
  if (!whole) return report_error(subject, whole.error());
  const Analysis& analysis = (*whole)->analysis();
  auto device = pick_device(analysis, page.tables(), arguments.device);
  if (device && *device == nullptr)
    device = fail(ErrorCode::kUsage, "nothing was allocated: no stack to export");
  if (!device) return report_error(subject, device.error());
  const size_t index = page.device_of(*device);
  OneFileOptions shown{.start = "device=" + std::to_string(index)};
  if (at.kind == MomentArgument::kEnd)
    shown.wanted = {index, page.devices()[index].table->moments() - 1};
  if (at.kind == MomentArgument::kLastAllocation)
    shown.wanted = {index, after_last_allocation(page, index, (*whole)->is_snapshot())};
  if (is_requested) {
    const auto moment = requested_moment(**device, analysis, at.request);
    if (!moment) return report_error(subject, moment.error());
    shown.wanted = {index, page.moment_at(index, (*moment)->time_ns)};
  }
  if (shown.wanted) shown.start += "&moment=" + std::to_string(shown.wanted->moment);
  const Loss loss = analysis.loss;
  std::vector<std::unique_ptr<PageFile>> files;
  files.push_back(std::move(*file));
  PageService service(std::move(files), GPUMEMPROF_VERSION);
  const int written = write_page(service, arguments.output, shown);
  return written == kExitOk ? say_losses(subject, loss) : written;
}

/// What a format of stacks is made from. Not movable once read: `device` points into `analyzed`.
struct Stacks {
  Analyzed analyzed;
  const DeviceAnalysis* device = nullptr;
  MomentArgument at;
  const LiveMoment* moment = nullptr;  // where `at` asks for one
  std::vector<Holder> totals;          // the device's, largest first, where `at` asks for them
  std::optional<FlamePaths> paths;     // where they are grouped by something else than the stack

  const std::vector<Holder>& holders() const {
    if (moment != nullptr) return moment->holders;
    return at.kind == MomentArgument::kLastAllocation ? device->holders_before_exit
           : at.kind == MomentArgument::kEnd          ? device->holders_at_end
           : at.kind == MomentArgument::kTotal        ? totals
                                                      : device->holders_at_peak;
  }
  LiveSet live() const {
    if (moment != nullptr) return live_at(*moment);
    return at.kind == MomentArgument::kEnd              ? live_at_end(*device)
           : at.kind == MomentArgument::kLastAllocation ? live_after_last_allocation(*device)
                                                        : live_at_peak(*device);
  }
};

Status read_stacks(Input& input, const ExportArguments& arguments, Stacks* stacks) {
  Progress progress("reading");
  AnalysisOptions options{.depth = AnalysisDepth::kHolders};
  options.on_progress = [&](double share) { progress.update(share); };
  stacks->at = *parse_moment(arguments.at);  // checked before
  const bool is_requested = stacks->at.kind == MomentArgument::kRequested;
  if (is_requested) options.moments.push_back(stacks->at.request);
  auto analyzed = analyze(input, options);
  if (!analyzed) return std::unexpected(analyzed.error());
  stacks->analyzed = std::move(*analyzed);
  const Analysis& analysis = stacks->analyzed.analysis;
  auto device = pick_device(analysis, stacks->analyzed.tables(), arguments.device);
  if (!device) return std::unexpected(device.error());
  if (*device == nullptr) {
    return fail(ErrorCode::kUsage, "nothing was allocated: no stack to export");
  }
  if (is_requested) {
    auto moment = requested_moment(**device, analysis, stacks->at.request);
    if (!moment) return std::unexpected(moment.error());
    stacks->moment = *moment;
  }
  stacks->device = *device;
  if (stacks->at.kind == MomentArgument::kTotal) {
    stacks->totals = stacks->device->totals;
    std::ranges::sort(stacks->totals, comes_first);
  }
  if (arguments.by.empty() || arguments.by == "stack") return {};
  const auto by = static_cast<FlameGrouping>(
      std::ranges::find(kGroupingNames, arguments.by) - kGroupingNames.begin());
  auto paths = flame_paths(stacks->live(), by, stacks->analyzed.tables());
  if (!paths) return std::unexpected(paths.error());
  stacks->paths = std::move(*paths);
  return {};
}

Status export_stacks(const Stacks& stacks, const ExportArguments& arguments, const TextSink& sink) {
  const Analysis& analysis = stacks.analyzed.analysis;
  const Tables& tables = stacks.analyzed.tables();
  const std::string title = peak_sentence(analysis, tables, *stacks.device);
  const std::string name = moment_words(stacks.at);
  if (arguments.to == "pprof") {
    return export_pprof(analysis, *stacks.device, tables, GPUMEMPROF_VERSION, sink);
  }
  if (arguments.to == "folded") {
    return stacks.paths ? export_folded_paths(*stacks.paths, sink)
                        : export_folded(stacks.holders(), tables, sink);
  }
  if (stacks.paths) {
    return export_speedscope_paths(title, name + ", by " + arguments.by, *stacks.paths,
                                   GPUMEMPROF_VERSION, sink);
  }
  if (!arguments.at.empty()) {
    return export_speedscope(title, name, stacks.holders(), tables, GPUMEMPROF_VERSION, sink);
  }
  return export_speedscope(analysis, *stacks.device, tables, GPUMEMPROF_VERSION, sink);
}

Status export_every_event(EventSource& source, const std::string& to, const TextSink& sink) {
  Progress progress("exporting");
  const auto on_progress = [&](double share) { progress.update(share); };
  if (to == "csv") return export_events(source, ExportFormat::kCsv, sink, on_progress);
  if (to == "jsonl") return export_events(source, ExportFormat::kJsonLines, sink, on_progress);
  return export_perfetto(source, sink, on_progress);
}

/// What the chosen format cannot do, or nothing.
std::string wrong_use(const ExportArguments& arguments) {
  if (arguments.anonymize && arguments.to == "snapshot") {
    return "--anonymize does not apply to --to snapshot, which writes the snapshot unchanged";
  }
  const bool has_moment =
      arguments.to == "folded" || arguments.to == "speedscope" || arguments.to == "html";
  if (!arguments.at.empty() && !has_moment)
    return "--at goes with --to folded, speedscope and html";
  if (const auto at = parse_moment(arguments.at); !at) {
    return at.error().message;
  } else if (at->kind == MomentArgument::kTotal) {
    if (arguments.to == "html") return "--at total goes with folded and speedscope";
    if (!arguments.by.empty() && arguments.by != "stack") {
      return "--at total works only by stack: categories are known only for live memory";
    }
  }
  if (!arguments.by.empty() && arguments.to != "folded" && arguments.to != "speedscope") {
    return "--by goes with --to folded and speedscope";
  }
  if (!arguments.device.empty() && !is_stack_format(arguments.to) && arguments.to != "html") {
    return "--device goes with folded, speedscope, pprof and html: the others contain every device";
  }
  return "";
}

/// Opens the output only here: what is written may come to nothing before. The exit code.
int write_export(const ExportArguments& arguments, const std::string& subject,
                 const std::function<Status(const TextSink&)>& write) {
  auto output = Output::open(arguments.output, arguments.paths);
  if (!output) return report_error("", output.error());
  bool output_failed = false;
  const Status done = write([&](std::string_view text) {
    Status written = output->write(text);
    output_failed = !written;
    return written;
  });
  if (!done)
    return output_failed ? report_output_error(*output, done.error())
                         : report_error(subject, done.error());
  if (auto closed = output->close(); !closed) return report_output_error(*output, closed.error());
  return kExitOk;
}

/// One line for what the read file has and the written one has not.
void say_what_is_missing(const std::string& path, const AllocatorSnapshot& snapshot) {
  std::string missing;
  const auto add = [&](const std::string& what) {
    missing += (missing.empty() ? "" : "; ") + what;
  };
  for (const LossReason& part : snapshot.not_kept)
    add(std::to_string(part.events) + ' ' + part.reason);
  for (const LossReason& loss : snapshot.loss.reasons)
    add((loss.is_counted() ? std::to_string(loss.events) + ' ' : "") + loss.reason);
  if (missing.empty()) return;
  std::fprintf(stderr, "%s: %s: not written: %s\n", tool_name(), printable(path).c_str(),
               printable(missing).c_str());
}

/// As PyTorch writes it. Refuses what holds no segments.
int export_as_snapshot(const ExportArguments& arguments, const std::string& subject) {
  auto input = open_input_showing_progress(arguments.paths, !arguments.no_seal);
  if (!input) return report_error(subject, input.error());
  const auto history = allocator_history(*input);
  if (!history) return report_error(subject, history.error());
  const AllocatorSnapshot& snapshot = **history;
  Progress progress("exporting");
  const int code = write_export(arguments, subject, [&](const TextSink& sink) {
    return export_snapshot(snapshot, sink, [&](double share) { progress.update(share); });
  });
  if (code != kExitOk) return code;
  say_what_is_missing(arguments.paths[0], snapshot);
  return snapshot.loss.has_every_event() ? kExitOk : kExitToolFailed;
}

/// A table of events has a column for either size, a curve of levels has one.
FollowedSource::Sizes sizes_of(const std::string& to) {
  return to == "perfetto" ? FollowedSource::Sizes::kRequested : FollowedSource::Sizes::kAllocated;
}

int export_source(const ExportArguments& arguments) {
  if (arguments.to.empty())
    return wrong_usage(
        "--to is required: jsonl, csv, perfetto, perfetto-tar, parquet, sqlite, pprof, speedscope, "
        "folded, html or snapshot (see gpumemprof export --help)");
  const std::string subject = arguments.paths.size() == 1 ? arguments.paths[0] : "";
  if (const std::string wrong = wrong_use(arguments); !wrong.empty()) return wrong_usage(wrong);
  const bool is_binary = arguments.to == "pprof" || arguments.to.starts_with("perfetto") ||
                         arguments.to == "snapshot";
  if (is_binary && arguments.output.empty() && isatty(STDOUT_FILENO) == 1)
    return wrong_usage(arguments.to + " is binary: give --output FILE or a pipe");
  if (arguments.to == "parquet" || arguments.to == "sqlite") return export_tables(arguments);
  if (arguments.to == "html") return export_page(arguments, subject);
  if (arguments.to == "perfetto-tar")
    return export_perfetto_archive(
        arguments.paths, arguments.output,
        arguments.anonymize ? std::make_shared<Anonymizer>() : nullptr);
  if (arguments.to == "snapshot") return export_as_snapshot(arguments, subject);
  auto input = open_input_showing_progress(arguments.paths, !arguments.no_seal);
  if (!input) return report_error(subject, input.error());
  if (arguments.anonymize) input->anonymize(std::make_shared<Anonymizer>());
  Stacks stacks;
  std::unique_ptr<EventSource> source;
  if (is_stack_format(arguments.to)) {
    if (auto read = read_stacks(*input, arguments, &stacks); !read) {
      return report_error(subject, read.error());
    }
  } else {
    auto opened = input->events(sizes_of(arguments.to));
    if (!opened) return report_error(subject, opened.error());
    source = std::move(*opened);
  }
  const int code = write_export(arguments, subject, [&](const TextSink& sink) {
    return stacks.device != nullptr ? export_stacks(stacks, arguments, sink)
                                    : export_every_event(*source, arguments.to, sink);
  });
  if (code != kExitOk) return code;
  return say_losses(subject, source ? source->loss() : stacks.analyzed.analysis.loss);
}

}  // namespace

void add_export_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = app.add_subcommand("export", "write events or stacks for other tools");
  add_value(command, "path", "DIR|FILE...", arguments->paths,
            "recordings: folders or .gmp files; several are read as one")
      ->required();
  command
      ->add_option("--to", arguments->to,
                   "all events: jsonl, csv, perfetto, perfetto-tar (one trace per process, in "
                   "an archive); all allocations as tables: parquet (a lake), sqlite; the stacks of "
                   "one device: pprof, speedscope, folded, html (the page, opened at its holders); "
                   "a PyTorch snapshot: snapshot")
      ->check(CLI::IsMember({"jsonl", "csv", "perfetto", "perfetto-tar", "parquet", "sqlite",
                             "pprof", "speedscope", "folded", "html", "snapshot"}));
  add_value(command, "--at", "peak|last-alloc|end|total|MOMENT", arguments->at,
            "folded, speedscope, html: what was live at the peak (the default), right after the "
            "last allocation (last-alloc), at the end, when the exit has freed what it frees (end), "
            "at the end of a step (step:3), at a time after the first event (1.5s, 250ms), or "
            "total: allocated over the whole run");
  command
      ->add_option("--by", arguments->by,
                   "folded, speedscope: paths by stack (the default), by line of your code, by module or by "
                   "category")
      ->check(CLI::IsMember({"stack", "line", "module", "category"}));
  add_value(command, "--device", "NAME", arguments->device,
            "device: cpu, cuda:1, …; PID/cuda:1 or 'rank 1/cuda:1' for one process (default: the "
            "main device)");
  add_value(command, "-o,--output", "FILE", arguments->output,
            "write to this file instead of standard output; with parquet, a folder");
  command->add_flag(
      "--anonymize", arguments->anonymize,
      "replace names of files, functions, hosts and commands, except those of public packages");
  command->add_flag("--no-seal", arguments->no_seal, "do not compress the files of the recording");
  command->callback([arguments, &context] { context.exit_code = export_source(*arguments); });
}

}  // namespace gpumemprof
