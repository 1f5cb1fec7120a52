#include "page/request.h"

#include <charconv>

#include "base/query.h"
#include "report/words.h"

namespace gpumemprof {

PageAnswer json_answer(const nlohmann::ordered_json& json) { return {.body = json_text(json)}; }

PageAnswer later_answer() { return {.is_later = true}; }

PageAnswer columns_answer(std::string columns) {
  return {.type = "application/octet-stream", .body = std::move(columns)};
}

PageAnswer error_answer(int status, std::string_view what, int64_t at) {
  nlohmann::ordered_json json = {{"error", printable(what)}};
  if (at >= 0) json["at"] = at;
  return {.status = status, .body = json_text(json)};
}

void PageRequest::refuse(std::string what, int64_t at) {
  if (is_refused()) return;
  refusal_ = std::move(what), at_ = at;
}

bool PageRequest::has(std::string_view name) const { return query_value(query_, name).has_value(); }

std::string PageRequest::text(std::string_view name) {
  return query_value(query_, name, Plus::kBlank).value_or(std::string());
}

uint64_t PageRequest::number(std::string_view name, uint64_t least, uint64_t most,
                             uint64_t otherwise) {
  const auto text = query_value(query_, name);
  if (!text) return otherwise;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  const bool is_number = error == std::errc() && end == text->data() + text->size();
  if (is_number && !text->empty() && value >= least && value <= most) return value;
  refuse(std::string(name) + " is not a number from " + std::to_string(least) + " to " +
         std::to_string(most));
  return otherwise;
}

size_t PageRequest::device() {
  const size_t devices = file_.devices().size();
  return devices == 0 ? 0 : static_cast<size_t>(number("device", 0, devices - 1, 0));
}

PageRequest::Window PageRequest::window() {
  const uint32_t moments = table().moments();
  Window window;
  window.from = static_cast<uint32_t>(number("from", 0, moments - 1, 0));
  window.to = static_cast<uint32_t>(number("to", 1, moments, moments));
  // Including the last event: what is live at the end belongs to it.
  if (window.to + 1 == moments) window.to = moments;
  if (window.to <= window.from) {
    refuse("from must be before to");
    window.to = window.from + 1;
  }
  return window;
}

uint32_t PageRequest::moment(std::string_view name, uint32_t otherwise) {
  if (query_value(query_, name) == "peak") return table().peak;
  return static_cast<uint32_t>(number(name, 0, table().moments() - 1, otherwise));
}

Dimension PageRequest::by(Dimension otherwise) {
  const auto text = query_value(query_, "by");
  if (!text) return otherwise;
  const auto known = dimension_of(*text);
  if (!known) refuse("by is none of category, module, line, stack, stream, process, thread, none");
  return known.value_or(otherwise);
}

const Filter& PageRequest::filter(std::string_view name) {
  auto parsed = Filter::parse(text(name));
  if (parsed)
    filter_ = std::move(*parsed);
  else
    refuse(parsed.error().message, static_cast<int64_t>(parsed.error().at));
  if (!is_refused()) need_steps(filter_, file_, device());
  return filter_;
}

void PageRequest::need_steps(const Filter& filter, const PageFile& file, size_t device) {
  if (!filter.steps_at() || !file.step_ends(device).empty()) return;
  refuse("no step ended in " + file.devices()[device].name +
             "'s history, so lifetimes in steps are unknown",
         static_cast<int64_t>(*filter.steps_at()));
}

}  // namespace gpumemprof
