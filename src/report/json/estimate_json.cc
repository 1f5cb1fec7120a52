#include <nlohmann/json.hpp>

#include "report/estimate_report.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

Json peak_json(const std::optional<PredictedBytes>& peak) {
  if (!peak) return nullptr;
  return {{"expected_bytes", peak->expected}, {"low_bytes", peak->low}, {"high_bytes", peak->high}};
}

/// The four peaks under the names that the rest of the project has for them.
void add_peaks(const Prediction& prediction, Json* out) {
  (*out)["live"] = peak_json(prediction.live);
  (*out)["allocated"] = peak_json(prediction.allocated);
  (*out)["reserved"] = peak_json(prediction.reserved);
  (*out)["device"] = peak_json(prediction.device);
}

Json shares_json(const Prediction& prediction) {
  Json shares = Json::array();
  for (const PredictedShare& share : prediction.at_peak) {
    shares.push_back({{"name", share.name},
                      {"category", category_name(share.category)},
                      {"bytes", share.bytes}});
  }
  return shares;
}

Json categories_json(const Prediction& prediction) {
  uint64_t bytes[kCategories] = {};
  for (const PredictedShare& share : prediction.at_peak) {
    const auto index = static_cast<size_t>(share.category);
    bytes[index < kCategories ? index : 0] += share.bytes;
  }
  Json out = Json::object();
  for (size_t i = 0; i < kCategories; ++i) {
    if (bytes[i] != 0) out[category_name(static_cast<Category>(i))] = bytes[i];
  }
  return out;
}

Json boards_json(const EstimateAnswer& answer) {
  Json out = Json::array();
  for (const BoardFit& fit : answer.boards) {
    out.push_back({{"board", fit.board.name},
                   {"usable_bytes", fit.board.usable_bytes},
                   {"source", fit.board.source},
                   {"verdict", verdict_name(fit.verdict)}});
  }
  return out;
}

Json capacity_json(const EstimateAnswer& answer) {
  if (!answer.capacity_bytes) return nullptr;
  const auto need = bytes_that_must_fit(answer.prediction);
  return {{"usable_bytes", *answer.capacity_bytes},
          {"verdict", verdict_name(fits(need, *answer.capacity_bytes))}};
}

Json cheapest_json(const EstimateAnswer& answer) {
  if (!answer.cheapest) return nullptr;
  return {{"board", answer.cheapest->board},
          {"usable_bytes", answer.cheapest->usable_bytes},
          {"price_per_hour", answer.cheapest->price_per_hour},
          {"currency", answer.cheapest->currency}};
}

Json largest_json(const EstimateAnswer& answer) {
  if (!answer.largest_batch) return nullptr;
  return {{"batch", answer.largest_batch->batch},
          {"capacity_bytes", answer.largest_batch->capacity_bytes},
          {"by", answer.largest_batch->by_upper_end ? "high" : "expected"}};
}

Json table_json(const EstimateAnswer& answer) {
  Json out = Json::array();
  for (const PredictionRow& row : answer.table) {
    Json entry = {{"settings", row.settings}};
    add_peaks(row.prediction, &entry);
    entry["unknown"] = row.prediction.unknown;
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

std::string estimate_json(const EstimateAnswer& answer, int indent) {
  const Prediction& prediction = answer.prediction;
  Json assumptions = Json::array();
  for (const Assumption& assumption : prediction.assumptions) {
    assumptions.push_back({{"what", assumption.what}, {"source", assumption.source}});
  }
  Json out = {{"schema", "gpumemprof.estimate/1"},
              {"subject", answer.subject},
              {"setup", answer.setup},
              {"method", method_words(prediction.method).key},
              {"batch", prediction.batch == 0 ? Json(nullptr) : Json(prediction.batch)}};
  Json peaks = Json::object();
  add_peaks(prediction, &peaks);
  out["peaks"] = peaks;
  out["by_category"] = categories_json(prediction);
  out["at_peak"] = shares_json(prediction);
  out["largest_batch"] = largest_json(answer);
  out["capacity"] = capacity_json(answer);
  out["boards"] = boards_json(answer);
  out["cheapest"] = cheapest_json(answer);
  out["table"] = table_json(answer);
  out["assumptions"] = assumptions;
  out["unknown"] = prediction.unknown;
  return out.dump(indent, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace gpumemprof
