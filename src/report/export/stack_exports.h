// One device's stacks in the formats of other people's viewers. Which bytes: those live at the
// device's peak, those live at the end, and all that were ever allocated.
//
// All write through a sink in pieces, so that memory is for stacks, not for text.
#pragma once

#include "analysis/analysis.h"
#include "report/export/event_export.h"
#include "report/export/flame_paths.h"
#include "report/user_code.h"

namespace gpumemprof {

/// "outer;inner;innermost BYTES", a line a stack, largest first; a frame is "function (file:line)".
/// In frames `;` becomes `:`, and what cannot be printed U+FFFD. For flame graphs of any kind.
Status export_folded(const std::vector<Holder>& holders, const Tables& tables,
                     const TextSink& sink);
/// The same of paths that are grouped otherwise: "encoder;0;activation;forward (net.py:9) BYTES".
Status export_folded_paths(const FlamePaths& paths, const TextSink& sink);

/// A file of https://www.speedscope.app with three profiles, unit bytes: at the peak, at the end,
/// allocated. `version` is that of this program.
Status export_speedscope(const Analysis& analysis, const DeviceAnalysis& device,
                         const Tables& tables, std::string_view version, const TextSink& sink);

/// The same with one profile, of these holders or paths. `title` is the file's, `name` the
/// profile's.
Status export_speedscope(std::string_view title, std::string_view name,
                         const std::vector<Holder>& holders, const Tables& tables,
                         std::string_view version, const TextSink& sink);
Status export_speedscope_paths(std::string_view title, std::string_view name,
                               const FlamePaths& paths, std::string_view version,
                               const TextSink& sink);

/// A gzipped profile.proto of https://github.com/google/pprof. Sample types: inuse_objects and
/// inuse_space at the peak (the default), alloc_objects and alloc_space over the whole run,
/// end_objects and end_space. Sums beyond 2^63 - 1 are written as that.
Status export_pprof(const Analysis& analysis, const DeviceAnalysis& device, const Tables& tables,
                    std::string_view version, const TextSink& sink);

}  // namespace gpumemprof
