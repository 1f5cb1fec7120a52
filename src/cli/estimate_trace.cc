#include "cli/estimate_trace.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/size.h"
#include "cli/active_python.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/trace_child.h"
#include "estimate/answer.h"
#include "estimate/merge.h"
#include "estimate/search.h"
#include "estimate/trace_prediction.h"
#include "report/estimate_report.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kLowBatch = 2, kHighBatch = 4;  // one sample is refused by batch normalisation
constexpr uint64_t kMostBatch = 1u << 24;
constexpr const char* kBatchWord = "{batch}";

/// One line of the table: what is traced anew for it.
struct LoopVariant {
  std::string optimizer = "adamw", precision = "fp32";
  std::string name() const { return optimizer + ", " + precision; }
};

std::vector<std::string> listed(const std::string& text, const std::string& default_word) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words.empty() ? std::vector{default_word} : words;
}

std::vector<LoopVariant> variants(const EstimateArguments& arguments) {
  std::vector<LoopVariant> result;
  for (const std::string& optimizer : listed(arguments.optimizer, "adamw")) {
    for (const std::string& precision : listed(arguments.precision, "fp32"))
      result.push_back({optimizer, precision});
  }
  return result;
}

/// Where traces come from: the subject, and how to trace it at a batch (0: the script's own).
class TraceSubject {
 public:
  virtual ~TraceSubject() = default;
  /// Errors: kUnsupported with the reason where it cannot be traced, kSystem.
  virtual Result<StepTrace> trace(uint64_t batch) = 0;
};

class ModelSubject : public TraceSubject {
 public:
  ModelSubject(const EstimateArguments& arguments, LoopVariant variant)
      : arguments_(arguments), variant_(std::move(variant)) {}

  Result<StepTrace> trace(uint64_t batch) override {
    auto folder = TraceFolder::make();
    if (!folder) return std::unexpected(folder.error());
    const nlohmann::json job = {{"model", arguments_.model},
                                {"batch", batch},
                                {"optimizer", variant_.optimizer},
                                {"precision", variant_.precision},
                                {"checkpointing", arguments_.checkpointing},
                                {"inference", arguments_.inference},
                                {"file", "model.trace"}};
    const std::string jobs =
        nlohmann::json::array({job}).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    auto status = run_traced({active_python(), "-m", "gpumemprof._estimate", folder->path(), jobs},
                             {{"GPUMEMPROF_ESTIMATE", ""}});
    if (!status) return std::unexpected(status.error());
    auto trace = trace_in(*folder, *status);
    if (!trace && folder->reason().empty()) {
      return fail(ErrorCode::kUnsupported, "the tracer did not start in " + active_python() +
                                               ": install gpumemprof and torch there, or set "
                                               "GPUMEMPROF_PYTHON to the Python to use");
    }
    return trace;
  }

 private:
  const EstimateArguments& arguments_;
  LoopVariant variant_;
};

class ScriptSubject : public TraceSubject {
 public:
  explicit ScriptSubject(const EstimateArguments& arguments) : arguments_(arguments) {}

  Result<StepTrace> trace(uint64_t batch) override {
    auto trace = trace_on("meta", batch);
    if (trace || trace.error().code != ErrorCode::kUnsupported || is_hopeless_) return trace;
    const std::string reason = trace.error().message;
    std::fprintf(stderr,
                 "gpumemprof: estimate: cannot be traced without memory: %s; two steps run on the "
                 "host's memory instead\n",
                 reason.c_str());
    auto on_host = trace_on("cpu", batch);
    if (!on_host) return on_host;
    on_host->facts.assumptions.push_back(
        "two real steps on the host's memory, since without memory: " + reason);
    return on_host;
  }

 private:
  Result<StepTrace> trace_on(const char* target, uint64_t batch) {
    auto folder = TraceFolder::make();
    if (!folder) return std::unexpected(folder.error());
    std::vector<std::string> words = arguments_.command;
    for (std::string& word : words) {
      for (size_t at; batch != 0 && (at = word.find(kBatchWord)) != word.npos;)
        word.replace(at, std::string_view(kBatchWord).size(), std::to_string(batch));
    }
    auto status = run_traced(words, {{"GPUMEMPROF_ESTIMATE", folder->path()},
                                     {"GPUMEMPROF_ESTIMATE_TARGET", target},
                                     {"GPUMEMPROF_ESTIMATE_BATCH", std::to_string(batch)}});
    if (!status) return std::unexpected(status.error());
    is_hopeless_ = folder->ending_in(".armed").empty();
    return trace_in(*folder, *status);
  }

  const EstimateArguments& arguments_;
  bool is_hopeless_ = false;  // nothing of ours was in the process: another try would run it again
};

/// A loop at any batch: by two small traces where they merge, else by a trace at each batch.
class LoopAtBatches {
 public:
  explicit LoopAtBatches(TraceSubject& subject) : subject_(subject) {}

  Result<StepTrace> at(uint64_t batch) {
    if (!merged_ && !why_not_merged_) {
      if (auto done = merge(); !done) return std::unexpected(done.error());
    }
    if (!merged_) return subject_.trace(batch);
    StepTrace trace = merged_->at(batch);
    trace.facts.assumptions.push_back("sizes follow the batch as they do from " +
                                      std::to_string(kLowBatch) + " to " +
                                      std::to_string(kHighBatch));
    return trace;
  }

 private:
  Status merge() {
    auto low = subject_.trace(kLowBatch);
    if (!low) return std::unexpected(low.error());
    auto high = subject_.trace(kHighBatch);
    if (!high) return std::unexpected(high.error());
    auto merged = ScaledTrace::merge(std::move(*low), *high);
    if (merged) {
      merged_.emplace(std::move(*merged));
    } else {
      why_not_merged_ = merged.error().message;
    }
    return {};
  }

  TraceSubject& subject_;
  std::optional<ScaledTrace> merged_;
  std::optional<std::string> why_not_merged_;
};

Result<TraceScenario> scenario_of(const EstimateArguments& arguments) {
  TraceScenario scenario;
  if (arguments.device_constant.empty()) return scenario;
  auto bytes = parse_size(arguments.device_constant);
  if (!bytes) return std::unexpected(bytes.error());
  scenario.device_constant_bytes = *bytes;
  scenario.device_constant_source = "--device-constant";
  return scenario;
}

Status with_settings(const std::string& text, TraceScenario* scenario) {
  auto config = parse_settings(text, scenario->release);
  if (!config) return std::unexpected(config.error());
  scenario->config = std::move(*config);
  scenario->settings = text;
  return {};
}

/// The largest batch that fits, and the loop at it (at one sample where none does).
Result<StepTrace> at_largest_batch(TraceSubject& subject, const TraceScenario& scenario,
                                   uint64_t capacity_bytes, LargestBatch* largest) {
  LoopAtBatches loop(subject);
  std::optional<Error> error;
  largest->capacity_bytes = capacity_bytes;
  largest->batch = largest_batch_that(
      [&](uint64_t batch) {
        auto trace = loop.at(batch);
        if (!trace) error = trace.error();
        return trace && fits_into(*trace, scenario, capacity_bytes, largest->by_upper_end);
      },
      kMostBatch);
  if (error) return std::unexpected(*error);
  return loop.at(std::max<uint64_t>(1, largest->batch));
}

Result<StepTrace> main_trace(const EstimateArguments& arguments, TraceSubject& subject,
                             const TraceScenario& scenario, EstimateAnswer* answer) {
  if (arguments.batch == "auto") {
    answer->largest_batch.emplace();
    return at_largest_batch(subject, scenario, *answer->capacity_bytes, &*answer->largest_batch);
  }
  const uint64_t batch = arguments.batch.empty() ? 0 : std::stoul(arguments.batch);
  return subject.trace(batch == 0 && !arguments.model.empty() ? 32 : batch);
}

Status check(const EstimateArguments& arguments) {
  const bool has_word = std::ranges::any_of(arguments.command, [](const std::string& word) {
    return word.find(kBatchWord) != word.npos;
  });
  if (!arguments.command.empty() && has_word == arguments.batch.empty()) {
    return fail(ErrorCode::kUsage, has_word
                                       ? "the command has {batch}: say which with --batch"
                                       : "--batch needs {batch} in the command, where the batch "
                                         "goes: -- python train.py --batch-size {batch}");
  }
  const bool is_of_models = !arguments.optimizer.empty() || !arguments.precision.empty() ||
                            arguments.checkpointing || arguments.inference;
  if (!arguments.command.empty() && is_of_models) {
    return fail(ErrorCode::kUsage,
                "--optimizer, --precision, --checkpointing and --inference are of --model and "
                "--config: a script says it itself");
  }
  if (!arguments.options.empty()) return fail(ErrorCode::kUsage, "--set is of --config");
  return {};
}

Status fill(const EstimateArguments& arguments, EstimateAnswer* answer) {
  if (auto fine = check(arguments); !fine) return fine;
  auto scenario = scenario_of(arguments);
  if (!scenario) return std::unexpected(scenario.error());
  if (!arguments.capacity.empty()) {
    auto bytes = parse_size(arguments.capacity);
    if (!bytes) return std::unexpected(bytes.error());
    answer->capacity_bytes = *bytes;
  }
  const bool is_model = !arguments.model.empty();
  const std::vector<LoopVariant> all = is_model ? variants(arguments) : std::vector<LoopVariant>(1);
  for (const LoopVariant& variant : all) {
    ModelSubject model(arguments, variant);
    ScriptSubject script(arguments);
    TraceSubject& subject = is_model ? static_cast<TraceSubject&>(model) : script;
    EstimateAnswer own = *answer;
    auto trace = main_trace(arguments, subject, *scenario, &own);
    if (!trace) return std::unexpected(trace.error());
    // The rules of the PyTorch that traced, where they are known.
    if (auto release = find_release(trace->facts.torch.substr(0, trace->facts.torch.find('+'))))
      scenario->release = *release;
    const Prediction prediction = predict_from_trace(*trace, *scenario);
    const bool is_first = &variant == &all.front();
    if (is_first) {
      answer->largest_batch = own.largest_batch;
      answer->prediction = prediction;
    }
    if (all.size() > 1) answer->table.push_back({variant.name(), prediction});
    for (const std::string& settings : is_first ? arguments.settings : std::vector<std::string>{}) {
      TraceScenario other = *scenario;
      if (auto done = with_settings(settings, &other); !done) return done;
      answer->table.push_back({settings, predict_from_trace(*trace, other)});
    }
    if (is_first && is_model)
      answer->setup = (arguments.inference ? "inference, " + variant.precision
                                           : "training, " + variant.name()) +
                      (arguments.checkpointing ? ", checkpointing" : "");
    if (is_first && !is_model)
      answer->setup = trace->facts.optimizer.empty() ? "" : "training, " + trace->facts.optimizer;
  }
  answer->boards = fit_on_boards(answer->prediction, known_boards());
  return {};
}

}  // namespace

int estimate_by_tracing(const EstimateArguments& arguments) {
  EstimateAnswer answer;
  answer.subject = arguments.model;
  for (const std::string& word : arguments.command)
    answer.subject += (answer.subject.empty() ? "" : " ") + word;
  if (auto done = fill(arguments, &answer); !done)
    return report_error(answer.subject, done.error());
  const std::string text =
      arguments.format == "json" ? estimate_json(answer) : estimate_text(answer);
  auto output = Output::open(arguments.output, {});
  if (!output) return report_error("", output.error());
  if (auto done = output->write(text); !done) return report_output_error(*output, done.error());
  if (auto done = output->close(); !done) return report_output_error(*output, done.error());
  return kExitOk;
}

}  // namespace gpumemprof
