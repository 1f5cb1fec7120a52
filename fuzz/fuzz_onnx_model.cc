// ONNX models and programs of ExecuTorch on any bytes: errors are one line, and
// what is read adds up.
#include <stdint.h>
#include <stdlib.h>

#include <string>

#include "readers/memory_file.h"
#include "readers/onnx_model.h"
#include "readers/pte_program.h"
#include "work_limit.h"

using namespace gpumemprof;

namespace {

void check_error(const Error& error) {
  if (error.message.find('\n') != std::string::npos) abort();
}

void check_onnx(MemoryFile& file) {
  const auto model = read_onnx_model(file);
  if (!model) return check_error(model.error());
  uint64_t sum = 0;
  for (const auto& [type, bytes] : model->weight_bytes_by_type) sum += bytes;
  if (sum != model->weight_bytes || model->external_bytes > sum) abort();
  if (const auto shapes = resolve_onnx_inputs(*model, 2, {}); shapes) {
    if (shapes->size() != model->inputs.size()) abort();
  }
}

void check_pte(MemoryFile& file) {
  const auto program = read_pte_program(file);
  if (!program) return check_error(program.error());
  for (const PteMethod& method : program->methods) {
    if (method.total_planned_bytes() > uint64_t{1} << 50) abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  MemoryFile file(std::string(reinterpret_cast<const char*>(data), size));
  check_onnx(file);
  check_pte(file);
  return 0;
}
