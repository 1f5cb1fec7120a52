// What `whatif` says: for people, for programs.
#pragma once

#include <string>
#include <vector>

#include "analysis/replay/settings_study.h"

namespace gpumemprof {

/// Which device of which file a study is about.
struct WhatIfSubject {
  std::string path;
  std::string device;          ///< "cuda:0"
  std::string version_hint;    ///< what the reader knows of the writer's release; may be empty
  bool other_devices = false;  ///< the file has more
};

/// How faithful the replay is first, then the table, what it cannot tell, and as the last line what
/// to put into the environment. Safe for a terminal.
std::string whatif_text(const SettingsStudy& study, const WhatIfSubject& subject);

/// Schema "gpumemprof.whatif/1", docs/schemas/whatif.schema.json.
std::string whatif_json(const SettingsStudy& study, const WhatIfSubject& subject);

/// What no figure of the study includes, a sentence each.
std::vector<std::string> whatif_limits(const SettingsStudy& study);

/// "export PYTORCH_ALLOC_CONF=…" for the best row; empty where none is better than the recorded
/// one, or where it does not differ in its settings.
std::string environment_line(const SettingsStudy& study);

}  // namespace gpumemprof
