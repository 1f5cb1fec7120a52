// Removes the holes from a finished file.
#pragma once

#include <string>

#include "base/file.h"

namespace gpumemprof {

/// Writes header and chunks of a finished file without gaps to PATH.tmp and renames it over the
/// file, if that makes the file at least a fifth shorter. Returns whether it did: not where the file
/// was removed or replaced meanwhile. If the process dies, the file is unchanged. Errors: kSystem,
/// kBadInput without a footer or with damage.
Result<bool> compact_file(File& file);

/// Whether `path` names that file now.
bool same_file(const std::string& path, const FileIdentity& file);

}  // namespace gpumemprof
