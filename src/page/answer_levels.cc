// levels and times: the data of the chart of memory over time.
#include <algorithm>
#include <cstdlib>

#include "page/answers.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

Json keys_json(const KeyLevels& levels, Dimension by) {
  Json keys = Json::array();
  for (const KeyLevels::Key& key : levels.keys()) {
    keys.push_back({{"id", key.id}, {"label", key.label}, {"most_bytes", key.most_bytes}});
    // A number if it is one: an index in a list of `run`, or of a stack.
    if (by != Dimension::kModule && by != Dimension::kStream)
      keys.back()["id"] = std::strtoull(key.id.c_str(), nullptr, 10);
  }
  if (levels.has_other()) keys.back() = {{"id", -1}, {"label", "other"}, {"keys", levels.others()}};
  return keys;
}

}  // namespace

uint64_t since_start(const PageFile& file, uint64_t time_ns) {
  return time_ns - std::min(time_ns, file.facts().start_time_ns);
}

uint64_t time_of(const PageFile& file, const PageDevice& device, uint32_t moment) {
  const auto& times = device.table->times;
  if (times.size() == 0) return 0;
  return since_start(file, times[moment == 0 ? 0 : moment - 1]);
}

PageAnswer levels_answer(PageRequest& request) {
  const size_t device = request.device();
  const PageRequest::Window window = request.window();
  const uint32_t wanted = request.columns();
  const Dimension by = request.by(Dimension::kCategory);
  const Filter& filter = request.filter();
  if (request.is_refused()) return request.refusal();
  const KeyLevels* levels = request.file().levels(device, by, filter);
  if (levels == nullptr) return later_answer();
  const BlockTable& table = request.table();
  const auto columns = levels->columns(window.from, window.to, wanted);
  std::vector<uint32_t> begin, event;
  std::vector<uint64_t> total, values;
  for (const KeyLevels::Column& column : columns) {
    begin.push_back(column.from), event.push_back(column.range.most_at);
    total.push_back(column.range.most);
  }
  begin.push_back(window.to);
  for (const std::vector<uint64_t>& row : levels->values(event))
    values.insert(values.end(), row.begin(), row.end());
  Columns out;
  out.add("begin", begin), out.add("event", event);
  out.add("total", total);
  out.add("min", columns, [](const KeyLevels::Column& column) { return column.range.least; });
  out.add("last", columns, &KeyLevels::Column::last);
  out.add("values", values);
  const auto add_series = [&](const char* name, const SparseSeries& series) {
    if (!series.empty()) out.add(name, event, [&](uint32_t moment) { return series.at(moment); });
  };
  const PageDevice& of = request.file().devices()[device];
  if (of.table->times.size() != 0) {
    out.add("time_ns", event,
            [&](uint32_t moment) { return time_of(request.file(), of, moment); });
  }
  add_series("reserved", table.reserved);
  // Of all blocks: beside those of a filter they would say what is not so.
  if (filter.takes_all()) {
    add_series("pending", table.pending);
    if (!table.rounding.empty()) {
      std::vector<uint64_t> requested = total;
      for (size_t i = 0; i < event.size(); ++i) requested[i] -= table.rounding.at(event[i]);
      out.add("requested", requested);
    }
  }
  Json header = {{"from", window.from},
                 {"to", window.to},
                 {"by", request.text("by").empty() ? "category" : request.text("by")},
                 {"filter", filter.text()},
                 {"keys", keys_json(*levels, by)}};
  if (by == Dimension::kCategory && !table.is_told)
    header["unknown"] = {{"category", of.why_no_categories}};
  return columns_answer(out.finish(std::move(header)));
}

PageAnswer times_answer(PageRequest& request) {
  const size_t device = request.device();
  const PageRequest::Window window = request.window();
  const uint32_t columns = request.columns();
  if (request.is_refused()) return request.refusal();
  const PageDevice& of = request.file().devices()[device];
  const uint32_t moments = window.to - window.from;
  std::vector<uint32_t> event;
  const uint32_t count = std::min(columns, moments);
  for (uint32_t i = 0; i < count; ++i) {
    // The first and last are exact; the others are as far apart as possible.
    const uint64_t step = count == 1 ? 0 : uint64_t{moments - 1} * i / (count - 1);
    event.push_back(window.from + static_cast<uint32_t>(step));
  }
  Columns out;
  out.add("event", event);
  out.add("time_ns", event, [&](uint32_t moment) { return time_of(request.file(), of, moment); });
  return columns_answer(
      out.finish({{"from", window.from}, {"to", window.to}, {"is_exact", count == moments}}));
}

}  // namespace gpumemprof
