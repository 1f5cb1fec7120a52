#include "report/export/stack_exports.h"

#include <algorithm>

namespace gpumemprof {

Status export_folded(const std::vector<Holder>& holders, const Tables& tables,
                     const TextSink& sink) {
  return export_folded_paths(stack_paths(holders, tables), sink);
}

Status export_folded_paths(const FlamePaths& paths, const TextSink& sink) {
  std::string text;
  for (const FlamePath& path : paths.paths) {
    const char* before = "";
    for (uint32_t frame : path.frames) {
      std::string name(paths.names.get(frame));
      std::replace(name.begin(), name.end(), ';', ':');
      (text += before) += name;
      before = ";";
    }
    text += ' ' + std::to_string(path.bytes) + '\n';
    if (text.size() < kFlushBytes) continue;
    if (Status written = sink(text); !written) return written;
    text.clear();
  }
  return text.empty() ? Status{} : sink(text);
}

}  // namespace gpumemprof
