// export --to snapshot.
#pragma once

#include <string>
#include <vector>

namespace gpumemprof {

/// Writes the snapshot in `paths` again as PyTorch does. Refuses what holds no segments. The exit
/// code.
int export_as_snapshot(const std::vector<std::string>& paths, const std::string& output_path,
                       bool seal);

}  // namespace gpumemprof
