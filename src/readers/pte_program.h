// Programs of ExecuTorch: the memory that was planned for them, which is in the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace gpumemprof {

struct PteMethod {
  std::string name;
  std::vector<uint64_t> planned_bytes;  ///< of each buffer of the plan
  std::vector<std::string> delegates;   ///< whose own memory is in no plan
  uint64_t total_planned_bytes() const;
};

struct PteProgram {
  std::vector<PteMethod> methods;
  uint64_t constant_bytes = 0;  ///< weights, and what delegates are given: segments and inline data
};

/// Errors: kBadInput with the byte, kSystem.
Result<PteProgram> read_pte_program(File& file);

}  // namespace gpumemprof
