// Helpers shared by the JSON builders.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "allocator/process_room.h"
#include "analysis/oom_message/byte_range.h"
#include "analysis/statistics/timeline.h"
#include "base/json_fields.h"
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

inline nlohmann::ordered_json column_json(const Timeline& timeline,
                                          uint64_t TimelineBucket::*figure) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const TimelineBucket& bucket : timeline.buckets()) out.push_back(bucket.*figure);
  return out;
}

inline nlohmann::ordered_json levels_json(const Timeline& timeline) {
  return {{"start_ns", timeline.start_ns()},
          {"bucket_ns", timeline.bucket_ns()},
          {"min_bytes", column_json(timeline, &TimelineBucket::min_bytes)},
          {"max_bytes", column_json(timeline, &TimelineBucket::max_bytes)},
          {"last_bytes", column_json(timeline, &TimelineBucket::last_bytes)}};
}

/// Innermost frame first, a text each.
inline nlohmann::ordered_json stack_json(const Tables& tables, uint32_t stack) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (std::string& line : stack_lines(tables, stack)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace gpumemprof
