// Where a path has some of its parts, written with "/": a path of Windows has "\" there.
#pragma once

#include <algorithm>
#include <string>
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

/// "<cell 271823389>" of "/tmp/ipykernel_12/271823389.py", the file of a notebook's cell: by its
/// text, the same in every process. Empty for any other file.
inline std::string cell_name(std::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  if (slash == path.npos || !path.ends_with(".py")) return {};
  std::string_view folder = path.substr(0, slash);
  folder.remove_prefix(folder.find_last_of("/\\") + 1);  // npos + 1 is 0
  if (!folder.starts_with("ipykernel_")) return {};
  const std::string_view cell = path.substr(slash + 1, path.size() - slash - 4);
  const bool is_number = cell.find_first_not_of("0123456789") == cell.npos;
  return is_number && !cell.empty() ? "<cell " + std::string(cell) + ">" : std::string();
}

}  // namespace gpumemprof
