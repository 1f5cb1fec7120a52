// Where a path has some of its parts, written with "/": a path of Windows has "\" there.
#pragma once

#include <algorithm>
#include <string_view>

namespace gpumemprof {

inline bool is_same_in_path(char of_path, char of_part) {
  return of_path == of_part || (of_path == '\\' && of_part == '/');
}

/// As path.find(part).
inline size_t find_in_path(std::string_view path, std::string_view part) {
  if (!path.contains('\\')) return path.find(part);
  const auto found = std::ranges::search(path, part, is_same_in_path);
  return found.empty() ? path.npos : static_cast<size_t>(found.begin() - path.begin());
}

/// As path.rfind(part).
inline size_t rfind_in_path(std::string_view path, std::string_view part) {
  if (!path.contains('\\')) return path.rfind(part);
  const auto found = std::ranges::find_end(path, part, is_same_in_path);
  return found.empty() ? path.npos : static_cast<size_t>(found.begin() - path.begin());
}

inline bool path_has(std::string_view path, std::string_view part) {
  return find_in_path(path, part) != path.npos;
}

inline bool path_ends_with(std::string_view path, std::string_view end) {
  return path.size() >= end.size() &&
         std::ranges::equal(path.substr(path.size() - end.size()), end, is_same_in_path);
}

}  // namespace gpumemprof
