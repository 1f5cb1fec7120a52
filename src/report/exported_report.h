// An estimate of an exported model, for people and as JSON
// (docs/schemas/estimate-exported.schema.json).
#pragma once

#include <string>

#include "estimate/exported_model.h"

namespace gpumemprof {

std::string exported_text(const ExportedAnswer& answer);
std::string exported_json(const ExportedAnswer& answer);

}  // namespace gpumemprof
