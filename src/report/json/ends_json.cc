#include "report/json/sections.h"

#include <utility>

#include "report/describe/end_words.h"
#include "report/json/parts.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

Json refusal_json(const RefusedRequest& refused) {
  Json holders = Json::array();
  for (const HolderAtRefusal& one : refused.holders)
    holders.push_back({{"bytes", one.bytes}, {"count", one.count}, {"stack", one.stack}});
  const auto limit = reserve_limit(refused);
  return {{"pid", refused.process.pid == 0 ? Json() : Json(refused.process.pid)},
          {"host", text_or_null(refused.process.host)},
          {"rank", or_null(refused.rank)},
          {"asked_by_pid",
           refused.raised_again_from == 0 ? Json() : Json(refused.raised_again_from)},
          {"device", text_or_null(refused.device)},
          {"requested_bytes", refused.requested ? Json(refused.requested->bytes) : Json()},
          {"live_bytes", or_null(refused.live_bytes)},
          {"live_at_refusal_bytes", refused.told        ? Json(refused.told->live_bytes)
                                    : refused.allocated ? Json(refused.allocated->bytes)
                                                        : Json()},
          {"live_at_refusal_basis", refused.told        ? Json("event")
                                    : refused.allocated ? Json("message")
                                                        : Json()},
          {"largest_served_bytes", refused.told && refused.told->largest_served_bytes != 0
                                       ? Json(refused.told->largest_served_bytes)
                                       : Json()},
          {"limit_bytes", limit ? Json(limit->bytes) : Json()},
          {"limit_basis", !limit              ? Json()
                          : limit->is_exact() ? Json("process")
                                              : Json("message")},
          {"address_space_bytes", or_null(refused.address_space_bytes)},
          {"address_space_peak_bytes", or_null(refused.address_space_peak_bytes)},
          {"address_space_limit_bytes", or_null(refused.address_space_limit_bytes)},
          {"host_free_bytes", or_null(refused.host_free_bytes)},
          {"was_caught", refused.was_caught},
          {"message", refused.message},
          {"stack", refused.stack},
          {"holders", std::move(holders)},
          {"dump", refused.folder}};
}

}  // namespace

Json ends_json(const ProgramEnds& ends) {
  Json runs = Json::array(), refused = Json::array();
  for (const ProgramEnd& run : ends.runs) {
    runs.push_back({{"command", run.command},
                    {"pid", run.pid},
                    {"state", run_state_name(run.state)},
                    {"exit_code", or_null(run.exit_code)},
                    {"signal", text_or_null(run.signal)},
                    {"kernel_kills", or_null(run.kernel_kills)},
                    {"kernel_kills_of", !run.kernel_kills         ? Json()
                                        : run.kills_are_of_cgroup ? Json("cgroup")
                                                                  : Json("machine")},
                    {"memory_limit_bytes", or_null(run.memory_limit_bytes)}});
  }
  for (const RefusedRequest& one : ends.refused) refused.push_back(refusal_json(one));
  Json uncaught = Json::array();
  for (const UncaughtError& one : ends.uncaught) {
    uncaught.push_back({{"pid", one.process.pid},
                        {"host", text_or_null(one.process.host)},
                        {"rank", or_null(one.rank)},
                        {"kind", one.kind},
                        {"message", one.message},
                        {"stack", one.stack}});
  }
  Json unfinished = Json::array();
  for (const UnfinishedProcess& one : ends.unfinished) {
    unfinished.push_back({{"pid", one.pid},
                          {"rank", or_null(one.rank)},
                          {"command", one.command},
                          {"last_event_ns", one.last_event_ns}});
  }
  return {{"failure", text_or_null(ends.failure)},
          {"runs", runs},
          {"running_pids", ends.running_pids},
          {"unfinished", unfinished},
          {"uncaught", uncaught},
          {"refused", refused}};
}

Json caught_refusals_json(const Analysis& analysis, const Tables& tables) {
  Json out = Json::array();
  for (const DeviceAnalysis& device : analysis.devices) {
    const Device& memory = device_at(tables, device.device);
    for (const Refusal& one : caught_refusals(analysis, device)) {
      out.push_back({{"pid", process_at(tables, memory.process).pid},
                     {"device", device_name(memory)},
                     {"requested_bytes", one.size_bytes},
                     {"live_bytes", one.live_bytes},
                     {"went_on", went_on_after(one, analysis, tables, device)},
                     {"stack", stack_json(tables, one.stack)}});
    }
  }
  return out;
}

}  // namespace gpumemprof
