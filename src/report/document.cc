#include "report/document.h"

#include "report/words.h"

namespace gpumemprof {

std::string left_out_text(const Table& table) {
  return table.left_out == 0 ? "" : "and " + format_plural(table.left_out, "more " + table.noun);
}

}  // namespace gpumemprof
