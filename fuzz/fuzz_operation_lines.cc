// The list of operations beside a recording, on any bytes: what is accepted stays within its
// tables.
#include <stdint.h>
#include <stdlib.h>

#include <string_view>

#include "recording/operation_lines.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  auto file = parse_operation_file({reinterpret_cast<const char*>(data), size});
  if (!file) {
    if (!file.error().offset || *file.error().offset > size + 1) abort();
    return 0;
  }
  for (const auto& stack : file->stacks) {
    for (uint32_t frame : stack) {
      if (frame >= file->frames.size()) abort();
    }
  }
  for (const auto& [name, stack] : file->operations) {
    if (stack != UINT32_MAX && stack >= file->stacks.size()) abort();
  }
  return 0;
}
