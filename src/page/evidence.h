// What a report's evidence is in the page: a part of its address, as docs/page-data.md has it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "page/file.h"
#include "report/document.h"

namespace gpumemprof {

/// Null where the page has no such device or moment.
nlohmann::ordered_json page_evidence(const EvidencePlace& evidence,
                                     const std::vector<PageDevice>& devices, const Tables& tables);

/// The filter that takes the blocks; as many lines as a filter may name.
std::string filter_of(const EvidencePlace& evidence, const Tables& tables);

}  // namespace gpumemprof
