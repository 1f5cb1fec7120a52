// export --to perfetto-tar.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trace/anonymizer.h"

namespace gpumemprof {

/// Every process of `paths` as a trace of its own, in one archive. What cannot be read is named and
/// left out. `names` may be null. The exit code.
int export_perfetto_archive(const std::vector<std::string>& paths, const std::string& output_path,
                            const std::shared_ptr<Anonymizer>& names);

}  // namespace gpumemprof
