// The rules by which a block of a PyTorch program gets its category, from what is known of its life
// when it ends.
#pragma once

#include <cstdint>

#include "analysis/attribution.h"

namespace gpumemprof {

enum class Category : uint8_t {
  kUnknown,
  kParameter,
  kBuffer,
  kGradient,
  kOptimizerState,
  kActivation,
  kInput,
  kTemporary,
  kKvCache,
  kWorkspace,
  kFrameworkOther,
};
inline constexpr size_t kCategories = 11;
/// "parameter", "optimizer state", "KV cache", …, "unknown": what reports call them.
const char* category_name(Category category);

/// All that the rules look at.
struct BlockLife {
  uint64_t role = 0;  ///< a StorageRole, 0 where none was told
  bool is_saved = false, is_output = false, has_history = false;  ///< autograd saved it
  uint32_t steps_saved_in = 0;  ///< steps of the program in which it was saved
  uint32_t steps = 0;           ///< steps of the program that ended during its life
  uint32_t calls = 0;           ///< calls of models that began during its life
  /// The backward pass, the optimizer's step, or the recomputation that it was allocated in ended
  /// during its life.
  bool outlived_backward = false, outlived_optimizer = false, outlived_recomputation = false;
  bool is_freed = false;
  bool is_freed_in_backward = false;  ///< while an autograd node ran
  bool site_grows = false;            ///< each call allocates more there than the one before
  bool is_made_again = false;         ///< of forward: its stack allocated in a later step too
};
Category category_of(const Attribution& made_in, const BlockLife& life);

}  // namespace gpumemprof
