#include "report/json/findings_json.h"

#include <string>
#include <utility>
#include <vector>

#include "report/json/parts.h"
#include "report/words.h"

namespace gpumemprof {

nlohmann::ordered_json findings_json(const Analysis& analysis, const Tables& tables) {
  using Json = nlohmann::ordered_json;
  Json out = Json::array();
  for (const Finding& finding : analysis.findings) {
    Json evidence = Json::object(), stack = Json::array();
    for (const auto& [name, figure] : finding.evidence) evidence[name] = figure;
    for (const auto& [name, rate] : finding.rates) evidence[name] = rate;
    for (const auto& [name, text] : finding.facts) evidence[name] = printable(text);
    for (std::string& line : stack_lines(tables, finding.stack)) stack.push_back(std::move(line));
    Json one = {{"kind", finding.kind}};
    if (!finding.name.empty()) one["name"] = finding.name;
    one["severity"] = severity_name(finding.severity);
    one["title"] = finding.title;
    one["bytes"] = or_null(finding.bytes);
    one["confidence"] = finding.confidence;
    one["device"] = device_name(device_at(tables, finding.device));
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

}  // namespace gpumemprof
