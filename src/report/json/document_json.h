// A report as data: what the page shows of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/document.h"

namespace gpumemprof {

/// All that the document says, in its order; charts are left to who draws. Texts are as they are:
/// who shows them makes them safe.
nlohmann::ordered_json document_json(const Document& document);

}  // namespace gpumemprof
