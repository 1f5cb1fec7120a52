// A report as data: what the page shows of it.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "report/document.h"

namespace gpumemprof {

/// All that the document says, in its order; charts are left to who draws. Texts are as they are:
/// who shows them makes them safe.
/// `evidence_json` says where the page shows it, null where it does not; none: nothing is said.
using EvidenceJson = std::function<nlohmann::ordered_json(const EvidencePlace&)>;
nlohmann::ordered_json document_json(const Document& document,
                                     const EvidenceJson& evidence_json = nullptr);

}  // namespace gpumemprof
