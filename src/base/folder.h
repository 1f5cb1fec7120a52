// The names in a folder.
#pragma once

#include <dirent.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpumemprof {

/// see(name) of each entry, "." and ".." too, in no order. False, with errno, where it cannot be
/// read.
bool each_name(const std::string& folder, const auto& see) {
  DIR* dir = opendir(folder.c_str());
  if (!dir) return false;
  while (const dirent* entry = readdir(dir)) see(std::string_view(entry->d_name));
  closedir(dir);
  return true;
}

/// The first `most` names that are wanted, sorted; none where the folder cannot be read.
std::vector<std::string> names_in(const std::string& folder, const auto& is_wanted,
                                  size_t most = SIZE_MAX) {
  std::vector<std::string> names;
  each_name(folder, [&](std::string_view name) {
    if (names.size() < most && is_wanted(name)) names.emplace_back(name);
  });
  std::ranges::sort(names);
  return names;
}

/// How many entries there are but for those that begin with a dot; 0 where it cannot be read.
inline size_t entry_count(const std::string& folder) {
  size_t count = 0;
  each_name(folder, [&](std::string_view name) { count += !name.starts_with('.'); });
  return count;
}

}  // namespace gpumemprof
