// The key of an index, and its places.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "page/whole_run.h"

namespace gpumemprof {

/// Changes whenever the files do: their paths, inodes, sizes, times and samples of their content;
/// also with another build of this command, or another working directory, because paths are shown
/// relative to it. Empty if there can be no index: for a recording that still grows, replaced
/// names, and unreadable files.
/// `reader`: the file of the code that reads them.
std::string index_key(const std::vector<std::string>& paths, const PageReading& reading = {},
                      const std::string& reader = "/proc/self/exe");

/// Differs as soon as one of these files is longer or newer; empty if one cannot be examined.
/// Cheap: reads none of them.
std::string files_stamp(const std::vector<std::string>& paths);
/// A program still writes a recording among them.
bool is_written(const std::vector<std::string>& paths);

/// The possible places of these files' index, best first: beside them, and in the user's cache
/// folder. For several paths only the cache.
std::vector<std::string> index_places(const std::vector<std::string>& paths);

/// Where something of this kind that was made of the files is kept in the user's cache folder;
/// empty if there is none.
std::string in_cache(const std::vector<std::string>& paths, std::string_view kind);

inline constexpr const char* kIndexSuffix = ".page-index";

}  // namespace gpumemprof
