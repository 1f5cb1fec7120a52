#include "report/score_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/json/parts.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json score_json(const Score& score) {
  Json parts = Json::object();
  for (const ScorePart& part : score.parts) {
    parts[part.name] = {
        {"value", or_null(part.value)}, {"weight", part.weight}, {"reason", part.reason}};
  }
  Json out = {{"value", or_null(score.value)}, {"parts", parts}};
  if (!score.value) {
    out["reason"] = score.reason.empty() ? "not computed for this input" : score.reason;
  }
  return out;
}

Json patterns_json(const std::vector<SeriesPattern>& patterns) {
  Json out = Json::array();
  for (const SeriesPattern& pattern : patterns) {
    Json evidence = Json::object();
    for (const auto& [name, value] : pattern.evidence) {
      if (std::isfinite(value)) evidence[name] = value;
    }
    out.push_back({{"pattern_type", pattern.pattern_type},
                   {"severity", severity_name(pattern.severity)},
                   {"description", pattern.description},
                   {"evidence", evidence}});
  }
  return out;
}

std::string score_sentence(const Score& score) {
  if (!score.value) return "Score: none, because " + score.reason + ".";
  std::string parts;
  for (const ScorePart& part : score.parts) {
    if (!part.value) continue;
    parts += fmt::format("{}{} {:.1f}", parts.empty() ? "" : ", ", part.name, *part.value);
  }
  return fmt::format("Score: {:.1f} of 10 ({}).", *score.value, parts);
}

}  // namespace gpumemprof
