// Answers with many numbers: a JSON header, and columns as they are in memory, so that the page
// reads them without parsing. docs/page-data.md has the format.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpumemprof {

inline constexpr uint32_t kNone = UINT32_MAX;  ///< an id or an event that there is not

/// Text of a file for JSON: bytes that are not UTF-8 are replaced.
std::string json_text(const nlohmann::ordered_json& json);

/// Collects columns, then writes them after their header. Little endian, like every supported
/// machine.
class Columns {
 public:
  void add(std::string_view name, std::span<const uint8_t> values);
  void add(std::string_view name, std::span<const uint16_t> values);
  void add(std::string_view name, std::span<const uint32_t> values);
  /// Bytes and times: as f64. Larger values become 2^53, and the header counts them.
  void add(std::string_view name, std::span<const uint64_t> values);
  /// What `get` is of each of `rows`.
  template <class Rows, class Get>
  void add(std::string_view name, const Rows& rows, Get get) {
    std::vector<std::decay_t<decltype(std::invoke(get, *std::begin(rows)))>> values;
    for (const auto& row : rows) values.push_back(std::invoke(get, row));
    add(name, std::span<const typename decltype(values)::value_type>(values));
  }
  /// "GMPC", the header's length, `header` with "columns", the arrays. An object, or null for {}.
  std::string finish(nlohmann::ordered_json header) const;

 private:
  void add_bytes(std::string_view name, const char* type, size_t length, const void* data,
                 size_t bytes);

  nlohmann::ordered_json columns_ = nlohmann::ordered_json::object();
  std::string arrays_;  // each at a multiple of 8
  uint64_t clamped_ = 0;
};

}  // namespace gpumemprof
