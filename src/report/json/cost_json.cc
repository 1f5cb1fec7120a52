#include "report/json/sections.h"

#include <nlohmann/json.hpp>

#include "report/json/parts.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

Json board_json(const std::optional<BoardPrice>& board) {
  if (!board) return nullptr;
  return {{"board", board->board},
          {"usable_bytes", board->usable_bytes},
          {"price_per_hour", board->price_per_hour},
          {"price_per_day", board->price_per_hour * kHoursOfADay}};
}

}  // namespace

Json cost_json(const Cost& cost) {
  Json out = {
      {"currency", text_or_null(cost.currency)},
      {"price_per_hour", cost.price ? Json(cost.price->per_hour) : Json()},
      {"price_per_day", cost.price ? Json(cost.price->per_hour * kHoursOfADay) : Json()},
      {"hours_per_day", kHoursOfADay},
      {"board_bytes", or_null(cost.board_bytes)},
      {"need_bytes", or_null(cost.need_bytes)},
      {"need_basis", cost.need_bytes ? Json(need_basis_name(cost.need_basis)) : Json()},
      {"refused_bytes", cost.refused_bytes},
      {"reserved_bytes", or_null(cost.reserved_bytes)},
      {"allocated_bytes", cost.need_bytes ? Json(cost.allocated_bytes) : Json()},
      {"waste_bytes", or_null(cost.waste_bytes())},
      {"waste_per_day", or_null(cost.per_day(cost.waste_bytes()))},
      {"boards", cost.boards},
      {"cheapest", board_json(cost.cheapest)},
      {"saving", nullptr}};
  if (const auto& saving = cost.saving) {
    out["saving"] = {{"kind", saving->kind},
                     {"bytes", saving->bytes},
                     {"basis", saving_basis_name(saving->basis)},
                     {"per_day", or_null(cost.per_day(saving->bytes))},
                     {"need_bytes", saving->need_bytes},
                     {"cheapest", board_json(saving->cheapest)}};
  }
  out["unknown"] = Json::object();
  for (const auto& [figure, why] : cost.unknown) out["unknown"][figure] = why;
  return out;
}

}  // namespace gpumemprof
