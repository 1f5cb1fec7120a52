#include "cli/estimate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/size.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/trace_subjects.h"
#include "estimate/answer.h"
#include "estimate/configuration_answer.h"
#include "estimate/prices.h"
#include "estimate/trace_prediction.h"
#include "report/estimate_report.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kMostBatch = 1u << 24;
constexpr bool kByUpperEnd = true;  // the interval's, not the expected figure, must fit
constexpr size_t kMaxPriceBytes = 1u << 20;
constexpr uint64_t kDefaultBatch = 32;  // of a library's model

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

Result<TraceScenario> scenario_of(const EstimateArguments& arguments) {
  TraceScenario scenario;
  if (!arguments.calibration.empty()) {
    auto found = read_calibration(arguments.calibration);
    if (!found) return std::unexpected(found.error());
    scenario.device_constant_bytes = found->device_constant_bytes();
    scenario.device_constant_source = calibration_source(*found);
    scenario.product_workspace_bytes = found->product_workspace_bytes;
  }
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
  config->capacity_bytes = scenario->config.capacity_bytes;
  scenario->config = std::move(*config);
  scenario->settings = text;
  return {};
}

/// The rules of the PyTorch that traced, where they are known.
void use_release_of(const StepTrace& trace, TraceScenario* scenario) {
  const std::string& torch = trace.facts.torch;
  if (auto release = find_release(torch.substr(0, torch.find('+')))) scenario->release = *release;
}

/// What the device needs at most.
uint64_t most_needed(const StepTrace& trace, const TraceScenario& scenario) {
  const Prediction prediction = predict_from_trace(trace, scenario);
  return prediction.device ? prediction.device->high : 0;
}

/// Scaling leaves out what only large batches need, such as partial sums: the loop is traced at the
/// batch that scaling found, and where that does not fit at smaller ones, which are guessed from
/// `bytes_a_sample`. Nothing where it cannot be traced without memory.
std::optional<StepTrace> traced_where_it_fits(TraceSubject& subject, TraceScenario scenario,
                                              double bytes_a_sample, LargestBatch* largest,
                                              Progress* progress) {
  constexpr int kMostTraces = 24;        // each starts the program once
  constexpr uint64_t kNearEnough = 256;  // of that many samples one more or less
  subject.only_without_memory();
  const uint64_t capacity_bytes = largest->capacity_bytes;
  uint64_t fits = 0, fails = largest->batch + 1;
  std::optional<StepTrace> found;
  uint64_t next = largest->batch;
  for (int traces = 0; next > fits && next < fails && traces < kMostTraces; ++traces) {
    progress->note("tracing at " + std::to_string(next));
    auto trace = subject.trace(next);
    if (!trace) return std::nullopt;
    use_release_of(*trace, &scenario);
    const uint64_t needed = most_needed(*trace, scenario);
    if (fits_into(*trace, scenario, capacity_bytes, kByUpperEnd)) {
      fits = next, found = std::move(*trace);
      if (fails - fits <= fits / kNearEnough) break;
    } else {
      fails = next;
    }
    const double above = static_cast<double>(needed) - static_cast<double>(capacity_bytes);
    const double guess = static_cast<double>(next) - std::ceil(above / bytes_a_sample);
    const bool is_inside = bytes_a_sample > 0 && guess > static_cast<double>(fits) &&
                           guess < static_cast<double>(fails);
    next = is_inside && traces % 2 == 0 ? static_cast<uint64_t>(guess) : fits + (fails - fits) / 2;
  }
  if (found) largest->batch = fits;
  return found;
}

/// The largest batch that fits, and the loop at it (at one sample where none does).
Result<StepTrace> at_largest_batch(TraceSubject& subject, bool is_traced_here,
                                   TraceScenario scenario, uint64_t capacity_bytes,
                                   LargestBatch* largest) {
  Progress progress("largest batch");
  LoopAtBatches loop(subject);
  std::optional<Error> error;
  largest->capacity_bytes = capacity_bytes;
  largest->by_upper_end = kByUpperEnd;
  largest->batch = largest_batch_that(
      [&](uint64_t batch) {
        progress.note("trying " + std::to_string(batch));
        auto trace = loop.at(batch);
        if (!trace) error = trace.error();
        if (trace) use_release_of(*trace, &scenario);
        return trace && fits_into(*trace, scenario, capacity_bytes, kByUpperEnd);
      },
      kMostBatch);
  if (error) return std::unexpected(*error);
  if (is_traced_here && loop.is_scaled() && largest->batch > 1) {
    const uint64_t half = largest->batch / 2;
    auto whole = loop.at(largest->batch), part = loop.at(half);
    if (!whole || !part) return whole;
    const double bytes_a_sample = (static_cast<double>(most_needed(*whole, scenario)) -
                                   static_cast<double>(most_needed(*part, scenario))) /
                                  static_cast<double>(largest->batch - half);
    if (auto trace = traced_where_it_fits(subject, scenario, bytes_a_sample, largest, &progress))
      return std::move(*trace);
  }
  return loop.at(std::max<uint64_t>(1, largest->batch));
}

Result<StepTrace> main_trace(const EstimateArguments& arguments, TraceSubject& subject,
                             const TraceScenario& scenario, std::optional<uint64_t> capacity_bytes,
                             std::optional<LargestBatch>* largest) {
  if (arguments.batch == "auto") {
    largest->emplace();
    return at_largest_batch(subject, arguments.traces.empty(), scenario, *capacity_bytes,
                            &**largest);
  }
  const uint64_t batch = arguments.batch.empty() ? 0 : std::stoul(arguments.batch);
  return subject.trace(batch == 0 && !arguments.model.empty() ? kDefaultBatch : batch);
}

Status check_batch(const EstimateArguments& arguments) {
  const bool has_word = std::ranges::any_of(arguments.command, [](const std::string& word) {
    return word.find(kBatchWord) != word.npos;
  });
  const bool is_given = !arguments.batch.empty();
  if (has_word && !is_given)
    return fail(ErrorCode::kUsage, "the command has {batch}: give --batch");
  if (!arguments.command.empty() && is_given && !has_word) {
    return fail(ErrorCode::kUsage,
                "--batch needs {batch} in the command: -- python train.py --batch-size {batch}");
  }
  if (arguments.traces.size() == 1 && is_given)
    return fail(ErrorCode::kUsage,
                "a trace has one batch size: --batch needs two traces, at two batch sizes");
  if (arguments.traces.size() == 2 && !is_given)
    return fail(ErrorCode::kUsage, "with two traces, give --batch");
  if (arguments.traces.size() > 2)
    return fail(ErrorCode::kUsage, "--trace takes one file, or two at two batch sizes");
  return {};
}

Status check(const EstimateArguments& arguments) {
  const bool is_of_models = !arguments.optimizer.empty() || !arguments.precision.empty() ||
                            arguments.checkpointing || arguments.inference;
  if (arguments.model.empty() && is_of_models) {
    return fail(ErrorCode::kUsage,
                "--optimizer, --precision, --checkpointing and --inference go with --model and "
                "--config: a script decides these itself");
  }
  if (!arguments.option_typed.empty())
    return fail(ErrorCode::kUsage, arguments.option_typed + " goes with --config");
  if (arguments.on_host && arguments.command.empty())
    return fail(ErrorCode::kUsage, "--on-host goes with a command");
  return check_batch(arguments);
}

/// What one variant of the loop needs.
struct VariantAnswer {
  StepTrace trace;
  TraceScenario scenario;
  Prediction prediction;
  std::optional<LargestBatch> largest_batch;
};

Result<VariantAnswer> answer_variant(const EstimateArguments& arguments, const LoopVariant& variant,
                                     std::optional<uint64_t> capacity_bytes) {
  auto scenario = scenario_of(arguments);
  if (!scenario) return std::unexpected(scenario.error());
  VariantAnswer answer;
  const std::unique_ptr<TraceSubject> subject = subject_of(arguments, variant);
  auto trace = main_trace(arguments, *subject, *scenario, capacity_bytes, &answer.largest_batch);
  if (!trace) return std::unexpected(trace.error());
  use_release_of(*trace, &*scenario);
  // On a device that it fits into, the allocator makes do with what there is. Where it does not
  // fit, what it would need is of more use than where it fails.
  if (capacity_bytes && fits_into(*trace, *scenario, *capacity_bytes, kByUpperEnd)) {
    scenario->config = config_within(*scenario, *capacity_bytes, kByUpperEnd);
  }
  answer.prediction = predict_from_trace(*trace, *scenario);
  answer.trace = std::move(*trace);
  answer.scenario = std::move(*scenario);
  return answer;
}

std::string setup_of(const EstimateArguments& arguments, const LoopVariant& variant,
                     const LoopFacts& facts) {
  if (arguments.model.empty()) return facts.optimizer.empty() ? "" : "training, " + facts.optimizer;
  const std::string what =
      arguments.inference ? "inference, " + variant.precision : "training, " + variant.name();
  return what + (arguments.checkpointing ? ", checkpointing" : "");
}

Status add_prices(const std::string& path, EstimateAnswer* answer) {
  if (path.empty()) return {};
  auto text = read_small_file(path, kMaxPriceBytes);
  if (!text) return std::unexpected(text.error());
  auto prices = parse_prices(*text);
  if (!prices) return std::unexpected(prices.error());
  auto cheapest = cheapest_that_fits(answer->prediction, *prices);
  if (!cheapest) return std::unexpected(cheapest.error());
  answer->prices_given = true;
  answer->cheapest = *cheapest;
  return {};
}

/// All but the prices.
Status fill(const EstimateArguments& arguments, EstimateAnswer* answer) {
  if (auto fine = check(arguments); !fine) return fine;
  const auto capacity = read_capacity(arguments.capacity);
  if (!capacity) return std::unexpected(capacity.error());
  answer->capacity_bytes = *capacity;
  const std::vector<LoopVariant> all =
      arguments.model.empty() ? std::vector<LoopVariant>(1) : variants(arguments);
  for (const LoopVariant& variant : all) {
    auto found = answer_variant(arguments, variant, answer->capacity_bytes);
    if (!found) return std::unexpected(found.error());
    if (all.size() > 1) answer->table.push_back({variant.name(), found->prediction});
    if (&variant != &all.front()) continue;
    answer->prediction = found->prediction;
    answer->largest_batch = found->largest_batch;
    answer->setup = setup_of(arguments, variant, found->trace.facts);
    for (const std::string& settings : arguments.settings) {
      TraceScenario other = found->scenario;
      if (auto done = with_settings(settings, &other); !done) return done;
      answer->table.push_back({settings, predict_from_trace(found->trace, other)});
    }
  }
  answer->boards = fit_on_boards(answer->prediction, known_boards());
  return {};
}

/// What an error is about: the script where it was traced, else the program that was to be started.
std::string blamed(const EstimateArguments& arguments, ErrorCode code) {
  const std::vector<std::string>& words = arguments.command;
  const auto script =
      std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".py"); });
  return code == ErrorCode::kUnsupported && script != words.end() ? *script : words[0];
}

}  // namespace

int estimate_by_tracing(const EstimateArguments& arguments) {
  EstimateAnswer answer;
  answer.subject = arguments.traces.empty() ? arguments.model : arguments.traces[0];
  for (const std::string& word : arguments.command)
    answer.subject += (answer.subject.empty() ? "" : " ") + word;
  if (auto done = fill(arguments, &answer); !done) {
    const bool is_usage = done.error().code == ErrorCode::kUsage && arguments.command.empty();
    return report_error(is_usage                    ? "estimate"
                        : arguments.command.empty() ? answer.subject
                                                    : blamed(arguments, done.error().code),
                        done.error());
  }
  if (auto done = add_prices(arguments.prices, &answer); !done)
    return report_error(arguments.prices, done.error());
  const std::string& path = arguments.output;
  const std::string text =
      arguments.format == "json"
          ? estimate_json(answer)
          : fitted_to_terminal(estimate_text(answer, report_columns(path)), path);
  std::vector<std::string> inputs = arguments.traces;
  if (!arguments.prices.empty()) inputs.push_back(arguments.prices);
  if (!arguments.calibration.empty()) inputs.push_back(arguments.calibration);
  return write_output(text, path, inputs);
}

}  // namespace gpumemprof
