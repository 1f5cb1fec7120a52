#include "estimate/exported_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gpumemprof {
namespace {

using Json = nlohmann::json;
constexpr uint64_t kMostPlanBytes = uint64_t{1} << 50;
constexpr size_t kMostEntries = 1 << 16;

std::unexpected<Error> not_understood() {
  return fail(ErrorCode::kSystem, "the output of the process that ran the model cannot be parsed");
}

bool is_size(const Json& value) { return value.is_number_unsigned() && value <= kMostPlanBytes; }

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Empty where there is no such list.
const Json& list_of(const Json& object, const char* key) {
  static const Json kNothing = Json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() && found->size() <= kMostEntries ? *found
                                                                                     : kNothing;
}

Status add_figure(const Json& one, ExportedAnswer* answer) {
  if (!one.is_object() || !one.contains("bytes") || !is_size(one["bytes"])) return not_understood();
  const bool is_measured = one.value("measured", Json(true)) == true;
  answer->figures.push_back(
      {text_of(one, "name"), one["bytes"].get<uint64_t>(), is_measured, text_of(one, "how")});
  return {};
}

Status add_input(const Json& one, ExportedAnswer* answer) {
  if (!one.is_object()) return not_understood();
  ExportedInput input{text_of(one, "name"), text_of(one, "type"), {}};
  for (const Json& size : list_of(one, "shape")) {
    if (!is_size(size)) return not_understood();
    input.sizes.push_back(size.get<uint64_t>());
  }
  answer->inputs.push_back(std::move(input));
  return {};
}

uint64_t bytes_of(const ExportedAnswer& answer, std::string_view name) {
  const ExportedFigure* figure = figure_of(answer, name);
  return figure ? figure->bytes : 0;
}

}  // namespace

const ExportedFigure* figure_of(const ExportedAnswer& answer, std::string_view name) {
  const auto found = std::ranges::find(answer.figures, name, &ExportedFigure::name);
  return found == answer.figures.end() ? nullptr : &*found;
}

Status add_measured(std::string_view json, ExportedAnswer* answer) {
  const Json read = Json::parse(json, nullptr, false);
  if (!read.is_object()) return not_understood();
  answer->runtime = text_of(read, "runtime");
  for (const Json& one : list_of(read, "figures")) {
    if (auto done = add_figure(one, answer); !done) return done;
  }
  for (const Json& one : list_of(read, "inputs")) {
    if (auto done = add_input(one, answer); !done) return done;
  }
  for (const Json& one : list_of(read, "unknown")) {
    if (one.is_string()) answer->unknown.push_back(one.get<std::string>());
  }
  return {};
}

void set_need(ExportedAnswer* answer) {
  const uint64_t weights = bytes_of(*answer, "weights") + bytes_of(*answer, "constants");
  const uint64_t inputs = bytes_of(*answer, "inputs");
  // Part of the weights may have gone into the arena when it was loaded: they are counted once.
  const uint64_t loaded = bytes_of(*answer, "arena_loaded");
  const uint64_t arena = std::max(loaded, bytes_of(*answer, "arena_peak")) - loaded;
  const uint64_t run = arena + bytes_of(*answer, "run_peak") + bytes_of(*answer, "planned");
  const uint64_t low = std::max(weights, loaded) + inputs + run;
  const uint64_t high = std::max(low, bytes_of(*answer, "resident_rise"));
  answer->need = PredictedBytes{low, low, high};
}

}  // namespace gpumemprof
