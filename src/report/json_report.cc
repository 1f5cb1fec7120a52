#include "report/json_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/advice/tensorflow_advice.h"
#include "analysis/pass/layer_work.h"
#include "base/json_fields.h"
#include "report/describe/explanation.h"
#include "report/describe/facts.h"
#include "report/json/parts.h"
#include "report/json/sections.h"
#include "report/user_code.h"
#include "report/words.h"
#include "trace/followed_allocator.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostSteps = 50;  // those that left the most behind; the rest is summed

/// A wall-clock time, or null.
Json time_us(const Tables& tables, const Device& device, uint64_t time_ns) {
  const WallTime time = wall_time(process_at(tables, device.process), time_ns);
  return time.known ? Json(time.time_us) : Json(nullptr);
}

Json phase_json(Phase phase) {
  return phase == Phase::kUnknown ? Json(nullptr) : Json(phase_name(phase));
}

Json mode_json(ExecutionMode mode) {
  return mode == ExecutionMode::kUnknown ? Json(nullptr) : Json(mode_name(mode));
}

Json part_json(std::string_view part) {
  return part == phase_name(Phase::kUnknown) ? Json(nullptr) : Json(part);
}

/// For frameworks that name the operation of an allocation.
void add_work(Json* item, const StackWork& of_stack) {
  const Work& work = of_stack.work;
  (*item)["part"] = part_json(of_stack.where.part);
  (*item)["operation"] = text_or_null(work.operation);
  (*item)["phase"] = phase_json(work.phase);
  (*item)["mode"] = mode_json(work.mode);
  (*item)["module"] = text_or_null(of_stack.where.layer);
  (*item)["function"] = text_or_null(work.function);
  (*item)["xla_cluster"] = text_or_null(work.xla_cluster);
  (*item)["variable"] = text_or_null(work.variable);
}

Json work_json(const std::vector<Holder>& holders, const Tables& tables) {
  Json out = Json::array();
  for (const WorkHolder& group : group_by_work(holders, tables)) {
    out.push_back({{"bytes", group.bytes},
                   {"count", group.count},
                   {"phase", phase_json(group.phase)},
                   {"part", part_json(group.part)},
                   {"mode", mode_json(group.mode)},
                   {"module", text_or_null(group.layer)},
                   {"function", text_or_null(group.function)},
                   {"xla", group.is_xla}});
  }
  return out;
}

Json holders_json(const std::vector<Holder>& holders, const Tables& tables, bool has_work,
                  const HolderCategories& categories) {
  Json out = Json::array();
  WorkReader works(tables);
  for (const Holder& holder : holders) {
    Json item = {{"bytes", holder.bytes}, {"count", holder.count}, {"category", nullptr}};
    const uint32_t node = headline_node(tables, holder.stack);
    item["line"] = node == 0 ? Json(nullptr) : Json(frame_text(tables, node));
    item["stack"] = stack_json(tables, holder.stack);
    if (has_work) add_work(&item, stack_work_of(tables, holder.stack, &works));
    categories.add_json(holder.stack, tables, &item);
    out.push_back(std::move(item));
  }
  return out;
}

Json timeline_json(const Timeline& timeline) {
  Json out = levels_json(timeline);
  out["alloc_count"] = column_json(timeline, &TimelineBucket::alloc_count);
  out["alloc_bytes"] = column_json(timeline, &TimelineBucket::alloc_bytes);
  return out;
}

Json lifetimes_json(const DeviceAnalysis& device) {
  Json out = Json::array();
  for (size_t bin = 0; bin < device.lifetimes.size(); ++bin) {
    const LifetimeBin& freed = device.lifetimes[bin];
    if (freed.count == 0) continue;
    out.push_back({{"at_least_ns", bin == 0 ? 0 : uint64_t{1} << (bin - 1)},
                   {"count", freed.count},
                   {"bytes", freed.bytes}});
  }
  return out;
}

Json temporaries_json(const DeviceAnalysis& device, const Analysis& analysis,
                      const Tables& tables) {
  Json by_stack = Json::array();
  for (const Temporary& temporary : device.temporaries) {
    by_stack.push_back({{"count", temporary.count},
                        {"bytes", temporary.bytes},
                        {"stack", stack_json(tables, temporary.stack)}});
  }
  return {{"within_ns", analysis.temporary_ns},
          {"count", device.temporary_count},
          {"bytes", device.temporary_bytes},
          {"by_stack", by_stack}};
}

Json step_json(const StepSum& sum, bool is_one) {
  Json out = Json::object();
  if (is_one) out = {{"step", sum.step}, {"first_event_index", sum.first_event}};
  out["alloc_count"] = sum.alloc_count, out["alloc_bytes"] = sum.alloc_bytes;
  out["live_count"] = sum.alloc_count - sum.free_count;
  out["live_bytes"] = sum.net_bytes();
  return out;
}

/// All of it adds up to the device's own sums.
Json steps_json(const StepSums& steps) {
  Json largest = Json::array();
  StepSum rest = steps.others();
  for (const StepSum& sum : steps.by_net_bytes()) {
    if (largest.size() < kMostSteps) {
      largest.push_back(step_json(sum, true));
      continue;
    }
    rest.alloc_count += sum.alloc_count, rest.alloc_bytes += sum.alloc_bytes;
    rest.free_count += sum.free_count, rest.freed_bytes += sum.freed_bytes;
  }
  return {{"count", steps.count()},
          {"largest", largest},
          {"other_steps", step_json(rest, false)},
          {"without_step", step_json(steps.without_step(), false)}};
}

/// The peaks: which of them are known depends on what the framework says of sizes.
void add_peaks(Json* out, Json* unknown, const DeviceAnalysis& device, const Device& memory,
               const Analysis& analysis, const Tables& tables) {
  const DeviceFigures& figures = device.figures;
  const bool requested = memory.size_is_requested;
  const bool reached = figures.peak_bytes != 0 && !is_peak_before_events(analysis, device);
  const Json when = reached ? time_us(tables, memory, figures.peak_time_ns) : Json(nullptr);
  const Json event = reached ? Json(figures.peak_event) : Json(nullptr);
  const Json bytes = figures.peak_bytes;
  const uint64_t start = std::min(analysis.start_time_ns, figures.peak_time_ns);
  (*out)["peak"] = {
      {"basis", requested ? "requested" : "allocated"},
      {"requested_bytes", requested ? bytes : Json(nullptr)},
      {"allocated_bytes", bytes},
      {"exact", is_exact(analysis, device)},
      {"upper_bound_bytes", or_null(device.most_held_bytes)},
      {"blocks", figures.peak_count},
      {"event_index", event},
      {"time_us", when},
      {"time_ns", reached ? Json(figures.peak_time_ns) : Json(nullptr)},
      {"seconds_after_start",
       reached ? Json(static_cast<double>(figures.peak_time_ns - start) * 1e-9) : Json(nullptr)}};
  (*out)["peak_allocated"] = {
      {"allocated_bytes", bytes}, {"event_index", event}, {"time_us", when}};
  if (!device.most_held_bytes) {
    (*unknown)["peak.upper_bound_bytes"] =
        !is_exact(analysis, device)   ? why_not_exact(analysis, device)
        : analysis.source.can.threads ? "the oldest events were dropped to save disk (--max-disk)"
                                      : "the file does not say which thread did what";
  }
  const bool totals = figures.has_totals != 0;
  (*out)["peak_reserved"] = {
      {"reserved_bytes", totals ? Json(figures.peak_reserved_bytes) : Json(nullptr)},
      {"event_index", totals ? Json(figures.peak_reserved_event) : Json(nullptr)},
      {"time_us", totals ? time_us(tables, memory, figures.peak_reserved_time_ns) : Json(nullptr)}};
  // The CPU allocator hands out what is asked for (c10/core/CPUAllocator.cpp reports nbytes), so
  // there both are known.
  if (!requested) {
    (*unknown)["requested_bytes"] = "this framework reports rounded sizes, not requested ones";
  }
  if (!totals) {
    const char* why = "the framework reports no running totals for this device";
    (*unknown)["reserved_bytes"] = (*unknown)["end.framework_allocated_bytes"] = why;
  }
  if (reached && when.is_null()) (*unknown)["time_us"] = "the wall clock was not recorded";
}

Json end_json(const DeviceFigures& figures, bool requested, Json* unknown) {
  const Json bytes = figures.live_bytes;
  (*unknown)["end.active_bytes"] = "a recording does not mark blocks that wait for a stream";
  (*unknown)["end.segments"] = "segments are not recorded";
  return {{"requested_bytes", requested ? bytes : Json(nullptr)},
          {"allocated_bytes", bytes},
          {"active_bytes", nullptr},
          {"reserved_bytes",
           figures.has_totals ? Json(figures.framework_reserved_bytes) : Json(nullptr)},
          {"framework_allocated_bytes",
           figures.has_totals ? Json(figures.framework_allocated_bytes) : Json(nullptr)},
          {"segments", nullptr},
          {"blocks", figures.live_count}};
}

std::string why_not_replayed(const Tables& tables, const Device& memory) {
  if (const FollowedAllocator* known = allocator_of(tables, memory)) {
    if (!known->why_not.empty())
      return "a recording without its allocator's history: " + known->why_not;
  }
  return "only the history of PyTorch's CUDA allocator is replayed";
}

Json device_json(const DeviceAnalysis& device, const Analysis& analysis, const Tables& tables) {
  const Device& memory = device_at(tables, device.device);
  const DeviceFigures& figures = device.figures;
  Json unknown = Json::object(), events = Json::object();
  for (size_t a = 1; a < kActionCount; ++a) {
    events[action_name(static_cast<Action>(a))] = figures.actions[a];
  }
  Json out = {
      {"device", memory_name(device, tables)}, {"backend", backend_name(memory)},
      {"layer", layer_name(memory.layer)},     {"process", process_at(tables, memory.process).pid},
      {"process_index", memory.process},       {"events", events}};
  if (device.snapshot && !device.snapshot->is_recorded) {
    out["process"] = out["process_index"] = nullptr;
    unknown["process"] = unknown["process_index"] = "a snapshot does not name its process";
  }
  if (device.snapshot) {
    add_snapshot_json(device, analysis, tables, &out, &unknown);
  } else {
    add_peaks(&out, &unknown, device, memory, analysis, tables);
    out["end"] = end_json(figures, memory.size_is_requested, &unknown);
    out["replay"] = nullptr;
    unknown["replay"] = why_not_replayed(tables, memory);
  }
  const bool has_work = is_tensorflow(memory);
  out["framework"] = framework_name(memory);
  // Only where several allocators share a device do they have names.
  if (!memory.name.empty() && device.parts.empty()) out["allocator_name"] = memory.name;
  if (!device.parts.empty()) {
    for (uint16_t part : device.parts) {
      out["parts"].push_back(device_name(device_at(tables, part)));
    }
  }
  out["holders_at_peak"] = holders_json(device.holders_at_peak, tables, has_work,
                                        HolderCategories(device.categories.at_peak));
  out["holders_at_end"] = holders_json(device.holders_at_end, tables, has_work,
                                       HolderCategories(device.categories.at_end));
  if (has_work) {
    out["work_at_peak"] = work_json(device.holders_at_peak, tables);
    out["work_at_end"] = work_json(device.holders_at_end, tables);
  }
  if (!device.steps.empty()) out["steps"] = steps_json(device.steps);
  const uint64_t allocs = action_count(figures, Action::kAlloc);
  out["total"] = {{"alloc_count", allocs},
                  {"alloc_bytes", figures.total_bytes},
                  {"alloc_per_second", or_null(rate_per_second(allocs, analysis, device))},
                  {"bytes_per_second",
                   or_null(rate_per_second(figures.total_bytes, analysis, device))},
                  {"unmatched_frees", figures.unmatched_frees},
                  {"repeated_allocs", figures.repeated_allocs}};
  if (const std::string why = why_no_times(analysis, device); !why.empty())
    unknown["total.alloc_per_second"] = unknown["total.bytes_per_second"] = why;
  out["temporaries"] = temporaries_json(device, analysis, tables);
  out["lifetimes"] = lifetimes_json(device);
  out["timeline"] = timeline_json(device.timeline);
  if (device.snapshot) add_snapshot_timeline(*device.snapshot, &out["timeline"]);
  add_categories_json(device, tables, &out, &unknown);
  out["patterns"] = patterns_json(device.patterns);
  if (device.pool) out["pool"] = pool_json(*device.pool);
  out["unknown"] = unknown;
  return out;
}

Json processes_json(const Analysis& analysis, const Tables& tables) {
  Json out = Json::array();
  for (size_t i = 0; i < tables.processes.size(); ++i) {
    const Process& process = tables.processes[i];
    const ProcessAnalysis sums =
        i < analysis.processes.size() ? analysis.processes[i] : ProcessAnalysis{};
    out.push_back({{"pid", process.pid},
                   {"parent_pid", process.parent_pid},
                   {"rank", process.rank ? Json(*process.rank) : Json()},
                   {"start_ticks", process.start_ticks},
                   {"host", process.host},
                   {"command", process.command},
                   {"python_version", text_or_null(process.python_version)},
                   {"stacks", process.stacks},
                   {"exited_cleanly", process.exited_cleanly},
                   {"events", sums.events},
                   {"alloc_count", sums.alloc_count},
                   {"alloc_bytes", sums.alloc_bytes},
                   {"unmatched_frees", sums.unmatched_frees}});
  }
  return out;
}

Json threads_json(const Analysis& analysis, const Tables& tables) {
  Json out = Json::array();
  for (size_t i = 0; i < std::min(analysis.threads.size(), tables.threads.size()); ++i) {
    const Thread& thread = tables.threads[i];
    out.push_back({{"tid", thread.tid},
                   {"name", thread.name},
                   {"process", process_at(tables, thread.process).pid},
                   {"alloc_count", analysis.threads[i].alloc_count},
                   {"alloc_bytes", analysis.threads[i].alloc_bytes}});
  }
  return out;
}

Json advice_json(const AdviceReport& report) {
  Json out = Json::array();
  for (const Advice& one : report.advice) {
    Json evidence = Json::object();
    for (const auto& [name, bytes] : one.evidence) evidence[name] = bytes;
    out.push_back({{"kind", "tensorflow_" + one.kind},
                   {"severity", "info"},
                   {"title", one.title},
                   {"bytes", one.bytes},
                   {"evidence", evidence},
                   {"fix", one.fix}});
  }
  return out;
}

/// Findings of a snapshot's replay, then TensorFlow advice.
Json all_findings(const Analysis& analysis, const Tables& tables) {
  Json findings = findings_json(analysis, tables);
  for (Json& advice : advice_json(advise_tensorflow(analysis, tables)))
    findings.push_back(std::move(advice));
  return findings;
}

}  // namespace

std::string json_report(const Analysis& analysis, const Tables& tables, int indent,
                        const AdviceReport* advice, const Cost* cost) {
  Json devices = Json::array(), sums = Json::array();
  Json reasons = Json::array(), notes = Json::array();
  for (const DeviceAnalysis& device : analysis.devices) {
    devices.push_back(device_json(device, analysis, tables));
  }
  for (const DeviceAnalysis& sum : analysis.sums) {
    sums.push_back(device_json(sum, analysis, tables));
  }
  for (const LossReason& reason : analysis.loss.reasons) {
    reasons.push_back({{"reason", reason.reason},
                       {"events", reason.is_counted() ? Json(reason.events) : Json(nullptr)}});
  }
  for (const std::string& text : caveats(analysis, tables)) notes.push_back(text);
  Json out = {
      {"schema", "gpumemprof.analysis/1"},
      {"source",
       {{"path", analysis.source.path},
        {"kind", source_kind_name(analysis.source.kind)},
        {"bytes", analysis.source.bytes},
        {"writer_version_hint", analysis.source.writer_version_hint},
        {"events", analysis.events},
        {"events_read", analysis.events_read},
        {"start_ns", analysis.start_time_ns},
        {"end_ns", analysis.last_time_ns}}},
      {"explanation", nullptr},
      {"explanation_figures", Json::object()},
      {"devices", devices},
      {"moments", moments_json(analysis, tables)},
      {"sums", sums},
      {"device_samples", analysis.machine ? machine_json(*analysis.machine) : Json(nullptr)},
      {"host_memory", host_json(analysis)},
      {"ranks", ranks_json(analysis, tables)},
      {"processes", processes_json(analysis, tables)},
      {"threads", threads_json(analysis, tables)},
      {"driver", driver_json(analysis, tables)},
      {"findings", all_findings(analysis, tables)},
      {"notes", notes},
      {"lost",
       {{"events", analysis.loss.events},
        {"bytes", analysis.loss.bytes},
        {"more_than_counted", analysis.loss.is_open_ended()},
        {"reasons", reasons}}},
      {"end", ends_json(analysis.ends)},
      {"score", score_json(analysis.score)}};
  out["end"]["caught"] = caught_refusals_json(analysis, tables);
  if (const DeviceAnalysis* device = main_device(analysis, tables)) {
    const PeakExplanation why = explain_peak(analysis, tables, *device, "", advice);
    out["explanation"] = why.text;
    for (const auto& [name, value] : why.figures) out["explanation_figures"][name] = value;
  }
  if (advice) out["advice"] = advice_root(*advice, tables);
  if (cost) out["cost"] = cost_json(*cost);
  return out.dump(indent, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace gpumemprof
