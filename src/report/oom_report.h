// What an out-of-memory message says, for people and for programs.
#pragma once

#include <string>

#include "analysis/oom_message/oom_verdict.h"

namespace gpumemprof {

/// Safe for a terminal whatever the log holds. `path` names the input.
std::string oom_text(const OomLog& log, const std::string& path, bool color);

/// Schema "gpumemprof.oom_message/1", docs/schemas/oom-message.schema.json: one object and a
/// newline.
std::string oom_json(const OomLog& log, const std::string& path, int indent = 1);

}  // namespace gpumemprof
