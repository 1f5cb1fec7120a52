// What a run costs, in words and with the arithmetic.
#pragma once

#include "estimate/cost.h"
#include "report/document.h"

namespace gpumemprof {

Section describe_cost(const Cost& cost);

}  // namespace gpumemprof
