#include "report/findings_json.h"

#include "report/words.h"

namespace gpumemprof {

nlohmann::ordered_json findings_json(const Analysis& analysis, const Tables& tables) {
  using Json = nlohmann::ordered_json;
  Json out = Json::array();
  for (const Finding& finding : analysis.findings) {
    Json evidence = Json::object(), stack = Json::array();
    for (const auto& [name, figure] : finding.evidence) evidence[name] = figure;
    for (std::string& line : stack_lines(tables, finding.stack)) stack.push_back(std::move(line));
    out.push_back({{"kind", finding.kind},
                   {"severity", severity_name(finding.severity)},
                   {"title", finding.title},
                   {"bytes", finding.bytes ? Json(*finding.bytes) : Json(nullptr)},
                   // Every figure is counted or replayed, none is guessed.
                   {"confidence", 1.0},
                   {"device", device_name(device_at(tables, finding.device))},
                   {"evidence", evidence},
                   {"stack", stack},
                   {"fix", finding.fix.empty() ? Json(nullptr) : Json(finding.fix)}});
  }
  return out;
}

}  // namespace gpumemprof
