// gpumemprof diff: what a second run, or a later step of one, needs more, and which lines.
#include "analysis/compare/diff.h"

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>

#include "analysis/analyze.h"
#include "analysis/compare/pick_device.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/progress.h"
#include "report/describe/facts.h"
#include "report/diff_report.h"
#include "trace/anonymizer.h"
#include "trace/holder_lines.h"

namespace gpumemprof {
namespace {

struct DiffArguments {
  std::string a, b;
  std::vector<uint64_t> steps;  // none, or that of A and that of B
  std::string device;
  std::string format;
  std::string output;
  std::string color = "auto";
  size_t rows = 10;
  bool anonymize = false;
  bool no_seal = false;
};

/// One of the two runs, read to its end.
struct Run {
  Analyzed analyzed;
  std::unique_ptr<PageFile> page;  // in its place, where a page is wanted
  const DeviceAnalysis* device = nullptr;
  bool is_by_role = false;  // as in DiffSide
  const WholeRun* whole = nullptr;  // the page's
  const Analysis& analysis() const { return whole ? whole->analysis() : analyzed.analysis; }
  const Tables& tables() const { return whole ? whole->tables() : analyzed.tables(); }
  std::vector<DeviceAnalysis> at_steps;  // by request
};

bool is_page(const DiffArguments& arguments) {
  return report_format(arguments.format, arguments.output) == "html";
}

/// One line for all that is read. Thread-safe.
class SharedProgress {
 public:
  explicit SharedProgress(size_t runs) : done_(runs) {}
  void update(size_t run, double done) {
    const std::lock_guard lock(mutex_);
    done_[run] = done;
    progress_.update(std::reduce(done_.begin(), done_.end()) / double(done_.size()));
  }

 private:
  std::mutex mutex_;
  std::vector<double> done_;
  Progress progress_{"reading"};
};

Status read_analyzed(const std::string& path, AnalysisOptions options,
                     const DiffArguments& arguments, const std::shared_ptr<Anonymizer>& names,
                     const std::function<void(double)>& on_progress, Analyzed* analyzed) {
  auto input = open_input({path}, {.seal = !arguments.no_seal, .on_progress = [&](double done) {
                                     on_progress(done / 2);
                                   }});
  if (!input) return std::unexpected(input.error());
  if (names) input->anonymize(names);
  ProgramEnds ends = read_program_ends({path});
  if (names) take_names_away(&ends);
  options.ends = &ends;
  options.depth = AnalysisDepth::kHolders;
  options.on_progress = [&](double done) { on_progress((1 + done) / 2); };
  auto read = analyze(*input, options);
  if (!read) return std::unexpected(read.error());
  *analyzed = std::move(*read);
  return {};
}

/// Into `run`, which must not move afterwards. `steps`: at whose ends to look.
Status read_run(const std::string& path, const std::vector<uint64_t>& steps,
                const DiffArguments& arguments, const std::shared_ptr<Anonymizer>& names,
                const std::function<void(double)>& on_progress, Run* run) {
  AnalysisOptions options;
  for (uint64_t step : steps) options.moments.push_back({MomentRequest::kStepEnd, step});
  if (is_page(arguments)) {
    auto page = load_page_file(
        {path}, {.reading = {.seal = !arguments.no_seal,
                             .names = names,
                             .analysis = std::move(options)}});
    if (!page) return std::unexpected(page.error());
    run->page = std::move(*page);
    const auto whole = run->page->whole();
    if (!whole) return std::unexpected(whole.error());
    run->whole = *whole;
  } else if (auto read = read_analyzed(path, std::move(options), arguments, names, on_progress,
                                       &run->analyzed);
             !read) {
    return read;
  }
  auto device = pick_device(run->analysis(), run->tables(), arguments.device);
  if (!device) return std::unexpected(device.error());
  run->device = *device;
  return {};
}

/// A program beside another's worker, or one rank beside another, has no line in common with it: the
/// higher peak stays, and the other run's process is one with the same role.
void match_roles(Run* first, Run* second) {
  if (first->device == nullptr || second->device == nullptr) return;
  const ProcessRole a = role_of(*first->device, first->tables());
  const ProcessRole b = role_of(*second->device, second->tables());
  if (is_same_role(a, b)) return;
  const bool is_first = first->device->figures.peak_bytes > second->device->figures.peak_bytes;
  for (Run* const run : {is_first ? second : first, is_first ? first : second}) {
    const auto* matching =
        main_device_of_role(run->analysis(), run->tables(), run == second ? a : b);
    if (matching == nullptr) continue;
    run->device = matching, run->is_by_role = true;
    return;
  }
}

/// The run, or the end of one of its steps. Stays valid as long as `run`.
Result<DiffSide> side_of(Run* run, const std::vector<uint64_t>& steps, size_t request) {
  DiffSide side{&run->analysis(), &run->tables(), run->device, {}, run->is_by_role};
  if (steps.empty()) return side;
  run->at_steps.reserve(steps.size());
  if (run->device == nullptr) return fail(ErrorCode::kUsage, "nothing was allocated");
  if (!run->device->live_moments[request].is_reached) {
    return fail(ErrorCode::kUsage, no_such_step_text(*run->device, steps[request]));
  }
  const LiveMoment& moment = run->device->live_moments[request];
  run->at_steps.push_back(at_moment(*run->device, moment));
  side.device = &run->at_steps.back();
  side.moment = diff_moment(*run->device, moment, steps[request]);
  return side;
}

std::string render(const DiffSide& a, const DiffSide& b, const DiffArguments& arguments) {
  if (report_format(arguments.format, arguments.output) == "json")
    return diff_json(diff_runs(a, b, DiffStacks::kEvery));
  const DiffOptions options{.color = report_color(arguments.color, arguments.output),
                            .columns = report_columns(arguments.output),
                            .rows = arguments.rows,
                            .working_folder = working_folder()};
  return fitted_to_terminal(diff_text(diff_runs(a, b, DiffStacks::kLive), options),
                            arguments.output);
}

/// Where a side is looked at: its device of the page and, of a step, the moment of its end.
struct PagePlace {
  size_t device = 0;
  std::optional<uint32_t> moment;
};
PagePlace place_of(const Run& run, const DiffSide& side) {
  PagePlace out{.device = run.page->device_of(run.device)};
  if (side.moment) out.moment = run.page->moment_at(out.device, side.moment->time_ns);
  return out;
}

/// Both runs, or both steps of one, on the page that compares them. `second`: null for one run.
int write_diff_page(Run& first, const DiffSide& a, Run* second, const DiffSide& b,
                    const std::string& output) {
  const PagePlace place_a = place_of(first, a), place_b = place_of(second ? *second : first, b);
  const size_t other = second != nullptr ? 1 : 0;
  OneFileOptions options;
  options.comparison = {.device = place_a.device,
                        .other = other,
                        .other_device = place_b.device,
                        .event = place_a.moment,
                        .other_event = place_b.moment};
  options.start = "tab=compare&device=" + std::to_string(place_a.device) +
                  "&other=" + std::to_string(other) +
                  "&other_device=" + std::to_string(place_b.device);
  if (place_a.moment) options.start += "&at_a=" + std::to_string(*place_a.moment);
  if (place_b.moment) options.start += "&at_b=" + std::to_string(*place_b.moment);
  std::vector<std::unique_ptr<PageFile>> files;
  files.push_back(std::move(first.page));
  if (second != nullptr) files.push_back(std::move(second->page));
  PageService service(std::move(files), GPUMEMPROF_VERSION);
  return write_page(service, output, options);
}

int diff(const DiffArguments& arguments) {
  if (arguments.b.empty() && arguments.steps.empty())
    return wrong_usage("give a second run, or two steps of one run: --steps A B");
  const auto names = arguments.anonymize ? std::make_shared<Anonymizer>() : nullptr;
  const bool is_one = arguments.b.empty();
  const std::vector<uint64_t>& steps = arguments.steps;
  std::vector<uint64_t> of_a, of_b;
  if (!steps.empty()) of_a = {steps[0]}, of_b = {steps[1]};
  if (is_one) of_a = steps;
  Run first, second;
  auto progress = std::make_unique<SharedProgress>(is_one ? 1 : 2);
  const auto read = [&](const std::string& path, const std::vector<uint64_t>& of, size_t run,
                        Run* into) {
    return read_run(path, of, arguments, names,
                    [&, run](double done) { progress->update(run, done); }, into);
  };
  // At the same time, but for a folder that is sealed meanwhile and for names that both share.
  const bool is_after = names || is_page(arguments) || arguments.a == arguments.b;
  const auto policy = is_after ? std::launch::deferred : std::launch::async | std::launch::deferred;
  auto second_read = std::async(policy, [&]() -> Status {
    return is_one ? Status{} : read(arguments.b, of_b, 1, &second);
  });
  if (auto done = read(arguments.a, of_a, 0, &first); !done) {
    return report_error(arguments.a, done.error());
  }
  if (auto done = second_read.get(); !done) return report_error(arguments.b, done.error());
  progress.reset();
  if (!is_one && arguments.device.empty()) match_roles(&first, &second);
  const auto a = side_of(&first, of_a, 0);
  if (!a) return report_error(arguments.a, a.error());
  const auto b = is_one ? side_of(&first, of_a, 1) : side_of(&second, of_b, 0);
  if (!b) return report_error(is_one ? arguments.a : arguments.b, b.error());
  if (is_page(arguments))
    return write_diff_page(first, *a, is_one ? nullptr : &second, *b, arguments.output);
  std::vector<std::string> inputs{arguments.a};
  if (!is_one) inputs.push_back(arguments.b);
  return write_output(render(*a, *b, arguments), arguments.output, inputs);
}

}  // namespace

void add_diff_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<DiffArguments>();
  CLI::App* command = app.add_subcommand("diff", "compare two runs, or two steps, line by line");
  add_value(command, "A", "DIR|FILE", arguments->a,
            "the run to compare with: a recording, a snapshot or a profile")
      ->required();
  add_value(command, "B", "DIR|FILE", arguments->b, "the other run; optional with --steps");
  add_value(command, "--steps", "A B", arguments->steps,
            "compare live memory at the end of these two steps, of A and of B (or both of A "
            "if B is omitted); steps are numbered from 0")
      ->expected(2);
  add_value(command, "--device", "NAME", arguments->device,
            "cpu, cuda:1, …; PID/cuda:1 or 'rank 1/cuda:1' for one process (default: each run's main "
            "device, of processes with the same role)");
  add_format_option(command, &arguments->format, true);
  add_output_option(command, &arguments->output);
  add_defaulted(command, "--rows", "N", arguments->rows, "text: rows per table")
      ->check(CLI::PositiveNumber);
  add_color_option(command, &arguments->color);
  command->add_flag(
      "--anonymize", arguments->anonymize,
      "replace names of files, functions, hosts and commands, except those of public packages");
  command->add_flag("--no-seal", arguments->no_seal, "do not compress the files of a recording");
  command->callback([arguments, &context] { context.exit_code = diff(*arguments); });
}

}  // namespace gpumemprof
