#include "report/cost_text.h"

#include "report/describe/describe.h"
#include "report/render/text.h"

namespace gpumemprof {

std::string cost_text(const Cost& cost) {
  std::string text;
  for (const std::string& line : text_lines(describe_cost(cost), {})) text += line + '\n';
  return text;
}

}  // namespace gpumemprof
