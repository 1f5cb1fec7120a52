// Facts from a code object: names as UTF-8, and the line of an instruction.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "probe/python_frames.h"

namespace gpumemprof::probe {

/// A str object as UTF-8 in `out`; returns the number of bytes. Cut between characters if it does
/// not fit; a lone surrogate (a file name that is not UTF-8) becomes U+FFFD.
size_t python_string(const PythonLayout& layout, const void* str, char* out, size_t size);

/// The line of an instruction by the location table of 3.11 on (Objects/locations.md): 0 if the
/// table has none. Reads at most `size` bytes of `table`. `unit` counts 2-byte code units from the
/// start of the code.
uint32_t line_of_unit(const uint8_t* table, size_t size, int32_t first_line, int64_t unit);

/// The same by the tables before (Objects/lnotab_notes.txt): co_linetable of 3.10, co_lnotab of
/// 3.9. `at` counts bytes from the start of the code.
uint32_t line_of_byte(LineTable kind, const uint8_t* table, size_t size, int32_t first_line,
                      int64_t at);

/// The line of a place (place_of()) in `code`, whose instructions begin at `begin`
/// (below); 0: unknown.
uint32_t python_line(const PythonLayout& layout, const char* code, uint64_t begin,
                     uint64_t place);

/// Without a GIL (CPython 3.14) each thread but the first runs a copy of a function's instructions.
/// Where the instructions begin that a frame runs, for its place (place_of()). The list of copies
/// may be replaced by a longer one and freed by another thread: what is read of it counts only if
/// the instruction lies in the copy that it names. 0: not known.
uint64_t begin_of_code(const char* frame, const char* code, uint64_t place);

}  // namespace gpumemprof::probe
