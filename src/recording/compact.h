// Takes the holes out of a file that is finished.
#pragma once

#include "base/file.h"

namespace gpumemprof {

/// Writes header and chunks of a finished file without the gaps between them to PATH.tmp and
/// renames it over the file, where that makes the file at least a fifth shorter. True where it did.
/// A death on the way leaves the file as it was. Errors: kSystem, kBadInput where there is no
/// footer or something is damaged.
Result<bool> compact_file(File& file);

}  // namespace gpumemprof
