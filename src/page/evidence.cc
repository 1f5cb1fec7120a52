#include "page/answers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "report/user_code.h"

namespace gpumemprof {
namespace {

/// In quotes, as a filter reads it.
std::string in_filter_quotes(std::string_view text) {
  // A backslash right before the closing quote would hide it.
  while (text.ends_with('\\')) text.remove_suffix(1);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '\\';
    out += c;
  }
  return out + '"';
}

std::optional<uint32_t> moment_of(const EvidencePlace& evidence, const BlockTable& table) {
  if (evidence.when == EvidencePlace::When::kPeak) return table.peak;
  if (evidence.when == EvidencePlace::When::kLevel) {
    const uint32_t moment = table.first_with(evidence.number);
    return moment < table.moments() ? moment : table.peak;
  }
  if (evidence.when == EvidencePlace::When::kEvent) {
    if (table.moments() < 2 || evidence.number > table.moments() - 2) return std::nullopt;
    return static_cast<uint32_t>(evidence.number) + 1;
  }
  if (evidence.number >= table.refused.size()) return std::nullopt;
  return table.refused[evidence.number].moment;
}

/// In the order of EvidencePlace::View.
constexpr const char* kViewNames[] = {"holders", "space", "whatif"};

}  // namespace

std::string filter_of(const EvidencePlace& evidence, const Tables& tables) {
  if (!evidence.category.empty()) return "category:" + in_filter_quotes(evidence.category);
  if (!evidence.module.empty()) return "module:" + in_filter_quotes(evidence.module);
  std::string out;
  size_t terms = 0;
  for (const uint32_t node : evidence.lines) {
    const std::string term =
        "line:" + in_filter_quotes(headline_text(tables, headline_node(tables, node), ""));
    if (++terms > Filter::kMostTerms || out.size() + term.size() >= Filter::kMostBytes) break;
    out += (out.empty() ? "" : " ") + term;
  }
  return out;
}

nlohmann::ordered_json page_evidence(const EvidencePlace& evidence,
                                     const std::vector<PageDevice>& devices,
                                     const Tables& tables) {
  const auto device = std::ranges::find(devices, evidence.device, &PageDevice::index);
  if (device == devices.end()) return nullptr;
  nlohmann::ordered_json out = {{"view", kViewNames[static_cast<size_t>(evidence.view)]},
                                {"device", device - devices.begin()}};
  const BlockTable& table = *device->table;
  if (evidence.when == EvidencePlace::When::kLeft) {
    // What a program holds goes with its end.
    const uint32_t last = table.last_allocation();
    if (last == 0) return nullptr;
    out["from"] = 0, out["to"] = last;
  } else {
    const auto moment = moment_of(evidence, table);
    if (!moment) return nullptr;
    out["event"] = *moment;
  }
  const std::string filter = filter_of(evidence, tables);
  // Blocks that no filter can name are shown among all.
  if (!filter.empty() && filter.size() <= Filter::kMostBytes) out["filter"] = filter;
  return out;
}

}  // namespace gpumemprof
