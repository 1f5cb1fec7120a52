#include "report/json/sections.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "analysis/host/host_findings.h"
#include "report/json/parts.h"
#include "report/words.h"

namespace gpumemprof {

using Json = nlohmann::ordered_json;

Json findings_json(const Analysis& analysis, const Tables& tables) {
  Json out = Json::array();
  for (const Finding& finding : analysis.findings) {
    Json evidence = Json::object(), stack = Json::array();
    for (const auto& [name, figure] : finding.evidence) evidence[name] = figure;
    for (const auto& [name, rate] : finding.rates) evidence[name] = rate;
    for (const auto& [name, text] : finding.facts) evidence[name] = printable(text);
    for (std::string& line : stack_lines(tables, finding.stack)) stack.push_back(std::move(line));
    Json one = {{"kind", finding_kind_name(finding.kind)}};
    if (!finding.name.empty()) one["name"] = finding.name;
    one["severity"] = severity_name(finding.severity);
    one["title"] = finding.title;
    one["bytes"] = or_null(finding.bytes);
    one["confidence"] = finding.confidence;
    one["device"] = finding.device == kOfTheHost ? "host"
                                                 : device_name(device_at(tables, finding.device));
    one["evidence"] = evidence;
    one["stack"] = stack;
    for (const FindingLine& line : finding.lines) {
      const std::vector<std::string> frames = stack_lines(tables, line.stack);
      one["lines"].push_back({{"frame", frames.empty() ? line.text : frames.front()},
                              {"bytes", line.bytes},
                              {"bytes_a_step", line.bytes_a_step}});
    }
    one["fix"] = text_or_null(finding.fix);
    out.push_back(std::move(one));
  }
  return out;
}

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

}  // namespace gpumemprof
