// Helpers shared by the JSON builders.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "allocator/process_room.h"
#include "analysis/oom_message/byte_range.h"
#include "base/or_null.h"
#include "trace/tables.h"

namespace gpumemprof {

inline nlohmann::ordered_json text_or_null(std::string_view text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

inline nlohmann::ordered_json range_json(const std::optional<ByteRange>& range) {
  if (!range) return nullptr;
  return {{"least_bytes", range->least}, {"most_bytes", range->most}};
}

/// What a process could have of its device, and how that is known.
inline nlohmann::ordered_json room_json(const ProcessRoom& room) {
  return {{"bytes", room.bytes},
          {"least_bytes", room.least_bytes},
          {"most_bytes", room.most_bytes},
          {"basis", room_basis_name(room.basis)}};
}

/// Innermost frame first, a text each.
inline nlohmann::ordered_json stack_json(const Tables& tables, uint32_t stack) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (std::string& line : stack_lines(tables, stack)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace gpumemprof
