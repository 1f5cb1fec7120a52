// The parts of the page about a snapshot that recordings do not have.
#pragma once

#include <string>

#include "analysis/analysis.h"

namespace gpumemprof {

/// Sections, in HTML: why memory ran out, and what keeps free memory from going back at the peak.
/// `folder` as in HtmlOptions::working_folder. Nothing of the file becomes markup.
std::string snapshot_sections(const DeviceAnalysis& device, const Tables& tables,
                              std::string_view folder);

/// All findings as boxes; empty where there is none.
std::string findings_section(const Analysis& analysis, const Tables& tables);

}  // namespace gpumemprof
