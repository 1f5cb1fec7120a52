// Of which files an index is, and where it lies.
#pragma once

#include <string>
#include <vector>

#include "page/whole_run.h"

namespace gpumemprof {

/// What is different as soon as the files are: their places, inodes, sizes, times and samples of
/// their bytes; also as soon as they are read in another way, as another build of this command asks,
/// or from another folder, as paths are told relative to it. Empty for what may have no index: a
/// recording that still grows, names that are replaced, and what cannot be looked at.
std::string index_key(const std::vector<std::string>& paths, const PageReading& reading = {});

/// What is different as soon as a file of these is longer or newer; empty where one cannot be
/// looked at. Cheap: reads none of them.
std::string files_stamp(const std::vector<std::string>& paths);
/// A program still writes a recording among them.
bool is_written(const std::vector<std::string>& paths);

/// Where the index of these files may lie, the best first: beside them, and in the user's cache
/// folder. Several paths have theirs in the cache alone.
std::vector<std::string> index_places(const std::vector<std::string>& paths);

inline constexpr const char* kIndexSuffix = ".page-index";

}  // namespace gpumemprof
