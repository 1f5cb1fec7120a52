// The probe's reading of code objects, for a test that compares it with the interpreter's own.
#include <cstring>

#include "probe/python_code.h"

extern "C" unsigned line_of_unit(const unsigned char* table, unsigned long size, int first_line,
                                 long unit) {
  return gpumemprof::probe::line_of_unit(table, size, first_line, unit);
}
