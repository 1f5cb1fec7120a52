
#include <nlohmann/json.hpp>

#include "report/json/parts.h"
#include "report/json/sections.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

Json advice_object(const Advice& advice, const Tables& tables) {
  Json one;
  one["kind"] = advice.kind;
  one["bytes"] = advice.bytes;
  one["basis"] = saving_basis_name(advice.basis);
  one["cost"] = text_or_null(advice.cost);
  one["title"] = advice.title;
  one["fix"] = advice.fix;
  one["device"] = advice.device < tables.devices.size() && advice.peak_bytes != 0
                      ? Json(device_name(tables.devices[advice.device]))
                      : Json();
  one["peak_bytes"] = advice.peak_bytes != 0 ? Json(advice.peak_bytes) : Json();
  if (advice.changed_peak_bytes != 0) one["changed_peak_bytes"] = advice.changed_peak_bytes;
  if (advice.makes_fit) one["makes_fit"] = true;
  one["stack"] = stack_lines(tables, advice.stack);
  one["evidence"] = Json::object();
  for (const auto& [name, value] : advice.evidence) one["evidence"][name] = value;
  one["step_ns"] = advice.step_ns ? Json(*advice.step_ns) : Json();
  one["changed_step_ns"] = advice.changed_step_ns ? Json(*advice.changed_step_ns) : Json();
  if (!advice.not_measured.empty()) one["not_measured"] = advice.not_measured;
  return one;
}

}  // namespace

Json advice_root(const AdviceReport& report, const Tables& tables) {
  Json root;
  root["schema"] = "gpumemprof.advice/1";
  root["applies"] = report.applies;
  if (!report.failure.empty()) root["failure"] = report.failure;
  root["advice"] = Json::array();
  for (const Advice& one : report.advice) root["advice"].push_back(advice_object(one, tables));
  root["unknown"] = Json::object();
  for (const auto& [kind, why] : report.unknown) root["unknown"][kind] = why;
  return root;
}

std::string advice_json(const AdviceReport& report, const Tables& tables, const Cost* cost) {
  Json root = advice_root(report, tables);
  if (cost) root["cost"] = cost_json(*cost);
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace gpumemprof
