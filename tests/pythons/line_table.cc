// The probe's reading of code objects, for a test that compares it with the interpreter's own.
#include <cstring>

#include "probe/python_code.h"

using namespace gpumemprof::probe;

extern "C" unsigned line_of_unit(const unsigned char* table, unsigned long size, int first_line,
                                 long unit) {
  return gpumemprof::probe::line_of_unit(table, size, first_line, unit);
}

extern "C" unsigned line_of_byte(unsigned kind, const unsigned char* table, unsigned long size,
                                 int first_line, long at) {
  return gpumemprof::probe::line_of_byte(static_cast<LineTable>(kind), table, size, first_line, at);
}
