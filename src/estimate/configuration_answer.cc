#include "estimate/configuration_answer.h"

#include <algorithm>

#include "estimate/prices.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kMostBatch = 1u << 24;

/// Takes "batch auto" out of the options.
bool take_auto_batch(std::vector<SetupOption>* options) {
  return std::erase_if(*options, [](const SetupOption& o) {
           return o.first == "batch" && o.second == "auto";
         }) != 0;
}

Result<std::vector<PredictionRow>> settings_table(const ModelShape& shape,
                                                  const TrainingSetup& asked) {
  std::vector<PredictionRow> rows;
  const bool megatron = shape.code == ModelCode::kMegatron;
  std::vector<TrainingPrecision> precisions = {TrainingPrecision::kFp32, TrainingPrecision::kBf16};
  if (!megatron) precisions.push_back(TrainingPrecision::kAmpBf16);
  for (OptimizerKind optimizer : {OptimizerKind::kAdam, OptimizerKind::kAdam8bit,
                                  OptimizerKind::kAdafactor, OptimizerKind::kMomentum}) {
    for (TrainingPrecision precision : precisions) {
      for (RecomputeMode recompute : {RecomputeMode::kNone, RecomputeMode::kFull}) {
        TrainingSetup setup = asked;
        setup.optimizer = optimizer;
        setup.precision = precision;
        setup.recompute = recompute;
        auto prediction = predict_closed_form(shape, setup);
        if (!prediction) return std::unexpected(prediction.error());
        rows.push_back({std::string(optimizer_name(optimizer)) + ", " + precision_name(precision) +
                            ", checkpointing " + recompute_name(recompute),
                        std::move(*prediction)});
      }
    }
  }
  return rows;
}

Status add_prices(std::string_view text, EstimateAnswer* answer) {
  auto prices = parse_prices(text);
  auto cheapest =
      prices ? cheapest_that_fits(answer->prediction, *prices) : std::unexpected(prices.error());
  if (!cheapest) {
    Error error = cheapest.error();
    if (!error.message.starts_with("the price list"))
      error.message = "the price list " + error.message;
    return std::unexpected(error);
  }
  answer->prices_given = true;
  answer->cheapest = *cheapest;
  return {};
}

}  // namespace

Result<uint64_t> largest_batch_that_fits(const ModelShape& shape, TrainingSetup setup,
                                         uint64_t capacity_bytes) {
  std::optional<Error> error;
  const uint64_t batch = largest_batch_that(
      [&](uint64_t candidate) {
        setup.batch = candidate;
        auto prediction = predict_closed_form(shape, setup);
        if (!prediction && !error) error = prediction.error();
        return prediction &&
               fits(bytes_that_must_fit(*prediction), capacity_bytes) == FitVerdict::kFits;
      },
      kMostBatch);
  if (batch == 0 && error) return std::unexpected(*error);
  return batch;
}

Result<EstimateAnswer> answer_configuration(std::string_view config,
                                            const ConfigurationRequest& request) {
  auto read = read_configuration(config);
  if (!read) return std::unexpected(read.error());
  std::vector<SetupOption> options = request.options;
  const bool search = take_auto_batch(&options);
  if (search && !request.capacity_bytes) {
    return fail(ErrorCode::kUsage, "give a capacity to find the largest batch that fits");
  }
  auto setup = training_setup(read->values, read->shape, options);
  if (!setup) return std::unexpected(setup.error());
  setup->measured_source = request.device_constant_source;
  EstimateAnswer answer;
  answer.subject = request.subject + " (" + read->shape.family + ")";
  if (search) {
    auto batch = largest_batch_that_fits(read->shape, *setup, *request.capacity_bytes);
    if (!batch) return std::unexpected(batch.error());
    answer.largest_batch = LargestBatch{*batch, *request.capacity_bytes, true};
    setup->batch = std::max<uint64_t>(1, *batch);
  }
  answer.setup = setup_words(*setup);
  auto prediction = predict_closed_form(read->shape, *setup);
  if (!prediction) return std::unexpected(prediction.error());
  answer.prediction = std::move(*prediction);
  answer.boards = fit_on_boards(answer.prediction, known_boards());
  answer.capacity_bytes = request.capacity_bytes;
  if (request.table) {
    if (setup->inference)
      return fail(ErrorCode::kUsage, "the table covers training settings, not inference");
    auto table = settings_table(read->shape, *setup);
    if (!table) return std::unexpected(table.error());
    answer.table = std::move(*table);
  }
  if (!request.prices.empty()) {
    if (auto done = add_prices(request.prices, &answer); !done)
      return std::unexpected(done.error());
  }
  return answer;
}

uint64_t largest_batch_that(absl::FunctionRef<bool(uint64_t)> fits, uint64_t most) {
  uint64_t good = 0, bad = 1;
  while (bad <= most && fits(bad)) {
    good = bad;
    bad = std::min(2 * bad, most + 1);
    if (good == most) return most;
  }
  while (bad - good > 1) {
    const uint64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace gpumemprof
