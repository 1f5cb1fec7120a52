#include <nlohmann/json.hpp>

#include "analysis/replay/snapshot_device.h"
#include "report/describe/facts.h"
#include "report/diff_report.h"
#include "report/json/parts.h"
#include "report/user_code.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

Json timeline_json(const DiffSide& side) {
  if (side.device == nullptr) return nullptr;
  const Timeline& timeline = side.device->timeline;
  const uint64_t start = std::min(side.analysis->start_time_ns, timeline.start_ns());
  return {{"after_start_ns", timeline.start_ns() - start},
          {"bucket_ns", timeline.bucket_ns()},
          {"min_bytes", column_json(timeline, &TimelineBucket::min_bytes)},
          {"max_bytes", column_json(timeline, &TimelineBucket::max_bytes)}};
}

Json side_json(const DiffSide& side) {
  const Analysis& analysis = *side.analysis;
  Json reasons = Json::array();
  for (const LossReason& reason : analysis.loss.reasons) reasons.push_back(reason.reason);
  Json out = {{"path", analysis.source.path},
              {"kind", source_kind_name(analysis.source.kind)},
              {"events", analysis.events},
              {"device", nullptr},
              {"process", nullptr},
              {"basis", nullptr},
              {"peak_bytes", 0},
              {"peak_event_index", nullptr},
              {"end_bytes", 0},
              {"timeline", timeline_json(side)},
              {"moment", nullptr},
              {"lost",
               {{"events", analysis.loss.events},
                {"bytes", analysis.loss.bytes},
                {"more_than_counted", analysis.loss.is_open_ended()},
                {"reasons", reasons}}}};
  if (side.moment) {
    const DiffMoment& at = *side.moment;
    const uint64_t start = std::min(analysis.start_time_ns, at.time_ns);
    out["moment"] = {{"kind", "step_end"},
                     {"step", at.step},
                     {"time_ns", at.time_ns},
                     {"seconds_after_start", static_cast<double>(at.time_ns - start) * 1e-9},
                     {"event_index", at.event},
                     {"step_peak_bytes", at.step_peak_bytes ? Json(*at.step_peak_bytes) : Json()}};
  }
  if (side.device == nullptr) return out;
  const Device& memory = device_at(*side.tables, side.device->device);
  const DeviceFigures& figures = side.device->figures;
  out["device"] = memory_name(*side.device, *side.tables);
  out["process"] = process_at(*side.tables, memory.process).pid;
  out["basis"] = has_requested_sizes(*side.device, *side.tables) ? "requested" : "allocated";
  out["peak_bytes"] = figures.peak_bytes;
  const SnapshotDevice* history = side.device->snapshot.get();
  const bool is_before =
      history ? !history->peak_event : is_peak_before_events(analysis, *side.device);
  if (figures.peak_bytes != 0 && !is_before) out["peak_event_index"] = figures.peak_event;
  out["end_bytes"] = bytes_before_exit(*side.device);
  return out;
}

Json change_json(uint64_t a_bytes, uint64_t b_bytes) {
  return {{"a_bytes", a_bytes},
          {"b_bytes", b_bytes},
          {"delta_bytes", static_cast<int64_t>(b_bytes - a_bytes)}};
}

/// a_bytes, b_bytes and delta_bytes are those at the peak.
void add_figures(Json* out, const DiffRow& row) {
  out->update(change_json(row.a.peak_bytes, row.b.peak_bytes));
  out->update({{"change", change_name(row.change())},
               {"a_count", row.a.peak_count},
               {"b_count", row.b.peak_count},
               {"a_end_bytes", row.a.end_bytes},
               {"b_end_bytes", row.b.end_bytes},
               {"delta_end_bytes", row.end_delta()},
               {"a_total_bytes", row.a.total_bytes},
               {"b_total_bytes", row.b.total_bytes}});
}

/// Each row as `subject(row, tables)` names it, and its figures.
template <class Subject>
Json rows_json(const Diff& diff, const DiffRows& rows, const Subject& subject) {
  Json out = Json::array();
  for (const DiffRow& row : rows) {
    out.push_back(subject(row, *(row.from_b ? diff.b : diff.a).tables));
    add_figures(&out.back(), row);
  }
  return out;
}

Json stack_subject(const DiffRow& row, const Tables& tables) {
  return {{"stack", stack_lines(tables, row.node)}};
}

Json line_subject(const DiffRow& row, const Tables& tables) {
  return {{"line", row.node == 0 ? Json(nullptr) : Json(frame_text(tables, row.node))}};
}

Json function_subject(const DiffRow& row, const Tables& tables) {
  if (row.node == 0) return {{"function", nullptr}, {"file", nullptr}};
  const Frame& frame = tables.stacks.frame_of(row.node);
  return {{"function", tables.strings.get(frame.function)},
          {"file", aligned_file(tables.strings.get(frame.file))}};
}

/// Null where neither run names a layer.
Json layers_json(const Diff& diff) {
  if (diff.by_layer.empty()) return nullptr;
  return rows_json(diff, diff.by_layer, [&](const DiffRow& row, const Tables&) -> Json {
    const Diff::LayerPart& of = diff.layers[row.node];
    return {{"layer", text_or_null(of.layer)},
            {"part", of.part == "unknown" ? Json(nullptr) : Json(of.part)}};
  });
}

/// Null where they are not known of both.
Json groups_json(const Diff& diff, const DiffRows& rows, const char* key,
                 const std::string& why_not) {
  if (!why_not.empty()) return nullptr;
  Json out = rows_json(diff, rows, [&](const DiffRow& row, const Tables&) -> Json {
    return {{key, text_or_null(diff.groups[row.node])}};
  });
  for (Json& item : out) item["a_total_bytes"] = item["b_total_bytes"] = nullptr;
  return out;
}

}  // namespace

std::string diff_json(const Diff& diff, int indent) {
  const auto peak = [](const DiffSide& side) {
    return side.device == nullptr ? 0 : side.device->figures.peak_bytes;
  };
  const auto end = [](const DiffSide& side) {
    return side.device == nullptr ? 0 : bytes_before_exit(*side.device);
  };
  Json out = {{"schema", "gpumemprof.diff/1"},
              {"a", side_json(diff.a)},
              {"b", side_json(diff.b)},
              {"peak", change_json(peak(diff.a), peak(diff.b))},
              {"end", change_json(end(diff.a), end(diff.b))},
              {"by_line", rows_json(diff, diff.by_line, line_subject)},
              {"moved_lines", diff.moved_lines},
              {"by_function", rows_json(diff, diff.by_function, function_subject)},
              {"by_stack", rows_json(diff, diff.by_stack, stack_subject)},
              {"by_layer", layers_json(diff)},
              {"by_category", groups_json(diff, diff.by_category, "category", diff.why_no_categories)},
              {"by_module", groups_json(diff, diff.by_module, "module", diff.why_no_modules)},
              {"notes", diff_caveats(diff)}};
  if (!diff.why_no_categories.empty()) out["unknown"]["by_category"] = diff.why_no_categories;
  if (!diff.why_no_modules.empty()) out["unknown"]["by_module"] = diff.why_no_modules;
  return out.dump(indent, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace gpumemprof
