// What `estimate` says: for people, for programs. The same for every way of estimating.
#pragma once

#include <string>

#include "estimate/answer.h"
#include "estimate/exported_model.h"

namespace gpumemprof {

/// The peaks with their intervals first, then what the memory is, where it fits, what was assumed
/// and what is not known. Safe for a terminal. `columns`: of the terminal that shows it, or 0.
std::string estimate_text(const EstimateAnswer& answer, size_t columns = 0);

/// Schema "gpumemprof.estimate/1", docs/schemas/estimate.schema.json. One object and a newline;
/// `indent` < 0 writes it on one line.
std::string estimate_json(const EstimateAnswer& answer, int indent = 1);

/// How the figures were come by: for programs, and for people.
struct MethodWords {
  const char* key;
  const char* words;
};
MethodWords method_words(EstimateMethod method);

std::string exported_text(const ExportedAnswer& answer);
std::string exported_json(const ExportedAnswer& answer);

}  // namespace gpumemprof
