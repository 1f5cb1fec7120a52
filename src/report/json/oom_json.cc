#include <nlohmann/json.hpp>

#include "report/json/parts.h"
#include "report/json/sections.h"
#include "report/oom_report.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

Json size_json(const PrintedSize& size) {
  return {{"text", size.text},
          {"bytes", size.bytes},
          {"least_bytes", size.least_bytes},
          {"most_bytes", size.most_bytes}};
}

Json verdict_json(const OomVerdict& verdict) {
  return {{"cause", cause_name(verdict.cause)},
          {"summary", verdict.summary},
          {"reasons", verdict.reasons},
          {"elsewhere", verdict.elsewhere},
          {"usable_bytes", range_json(verdict.usable_bytes)},
          {"shortage_bytes", range_json(verdict.shortage_bytes)},
          {"non_pytorch_bytes", range_json(verdict.non_pytorch_bytes)},
          {"others_bytes", range_json(verdict.others_bytes)}};
}

Json asked_at_json(const TracebackLine& at) {
  if (at.file.empty()) return nullptr;
  return {{"file", at.file},
          {"line", at.line},
          {"function", at.function},
          {"code", text_or_null(at.code)}};
}

Json message_json(const OomMessage& message, const OomLog& log) {
  Json figures = Json::object(), processes = Json::array(), advice = Json::array();
  for (const OomFigure& figure : oom_figures(message)) {
    figures[figure.key] = size_json(figure.size);
    figures[figure.key]["meaning"] = figure.meaning;
  }
  for (const ProcessUse& process : message.processes) {
    processes.push_back({{"pid", process.pid}, {"in_use", size_json(process.in_use)}});
  }
  const OomVerdict verdict = explain_oom(message, log);
  for (const OomAdvice& item : verdict.advice) {
    advice.push_back({{"text", item.text}, {"command", text_or_null(item.command)}});
  }
  return {{"framework", message.framework},
          {"backend", message.backend},
          {"wording", wording_name(message.wording)},
          {"offset", message.offset},
          {"line", message.line},
          {"rank", or_null(message.rank)},
          {"times", message.times},
          {"device", or_null(message.device)},
          {"allocator", text_or_null(message.allocator)},
          {"operation", text_or_null(message.operation)},
          {"shape", text_or_null(message.shape)},
          {"type", text_or_null(message.type)},
          {"asked_at", asked_at_json(message.asked_at)},
          {"is_failure", !message.is_no_failure},
          {"figures", figures},
          {"processes", processes},
          {"verdict", verdict_json(verdict)},
          {"pool", message.pool ? pool_json(*message.pool) : Json(nullptr)},
          {"advice", advice}};
}

}  // namespace

std::string oom_json(const OomLog& log, const std::string& path, int indent) {
  Json messages = Json::array();
  for (const OomMessage& message : log.messages) {
    messages.push_back(message_json(message, log));
  }
  const Json out = {
      {"schema", "gpumemprof.oom_message/1"},
      {"source", {{"path", path}, {"bytes", log.bytes_read}}},
      {"expandable_segments", log.expandable_segments_on ? Json("on") : Json(nullptr)},
      {"messages", messages},
      {"more_messages", log.more_messages}};
  return out.dump(indent, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace gpumemprof
