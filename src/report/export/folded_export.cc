#include "report/export/stack_exports.h"

#include <algorithm>

namespace gpumemprof {

// Stack by stack: the paths of a million deep ones are gigabytes.
Status export_folded(const std::vector<Holder>& holders, const Tables& tables,
                     const TextSink& sink) {
  std::string text;
  std::vector<std::string> names(tables.stacks.frame_count());  // by frame id, made when needed
  std::vector<uint32_t> path;
  for (const Holder& holder : holders) {
    path.clear();
    for (uint32_t node = holder.stack; node != 0; node = tables.stacks.node(node).parent) {
      path.push_back(tables.stacks.node(node).frame);
    }
    if (path.empty()) text += kNoStack;
    for (size_t i = path.size(); i-- > 0;) {
      std::string& name = names[path[i] < names.size() ? path[i] : 0];
      if (name.empty()) {
        name = viewer_frame(tables, tables.stacks.frame(path[i]));
        std::replace(name.begin(), name.end(), ';', ':');
      }
      text += name;
      if (i != 0) text += ';';
    }
    text += ' ' + std::to_string(holder.bytes) + '\n';
    if (text.size() < kFlushBytes) continue;
    if (Status written = sink(text); !written) return written;
    text.clear();
  }
  return text.empty() ? Status{} : sink(text);
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
