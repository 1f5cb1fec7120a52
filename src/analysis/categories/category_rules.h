// The rules by which a block of a PyTorch program gets its category, from what is known of its life
// when it ends.
#pragma once

#include <cstdint>

#include "analysis/categories/attribution.h"

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
  kWeightCopy,
};
inline constexpr size_t kCategories = 12;
/// "parameter", "optimizer state", "KV cache", …, "unknown": what reports call them.
const char* category_name(Category category);

/// Why a block has no category.
enum class WhyUnknown : uint8_t {
  kNone,
  kSetUp,
  kSavedAgain,
  kSaved,
  kKeptResult,
  kKeptFromBackward,
  kKeptFromStep,
  kNotFreed,
  kOutside,
};
inline constexpr size_t kWhyUnknown = 9;
/// One sentence for reports, without a full stop; "" for kNone.
const char* why_unknown_text(WhyUnknown why);

/// Nothing that belongs to one step lives through two.
inline constexpr uint32_t kLastsForSteps = 2;

/// All that the rules look at.
struct BlockLife {
  uint64_t role = 0;  ///< a StorageRole, 0 where none was told
  /// All that has a role was looked at while the block lived, and nobody told one of it.
  bool has_been_looked_at = false;
  bool is_weight_copy = false;  ///< copied from or into a parameter, or from a buffer
  /// Autograd saved it. Constant: it requires no gradient for all that.
  bool is_saved = false, is_output = false, has_history = false, is_constant = false;
  uint32_t passes_saved_in = 0;  ///< backward passes, or steps, for which it was saved
  uint32_t steps = 0;            ///< steps of the program that ended during its life
  uint32_t calls = 0;            ///< calls of models that began during its life
  /// The backward pass, the optimizer's step, or the recomputation that it was allocated in ended
  /// during its life.
  bool outlived_backward = false, outlived_optimizer = false, outlived_recomputation = false;
  bool is_freed = false;  ///< by the program, not at its end
  bool is_freed_in_backward = false;  ///< while an autograd node ran
  bool is_freed_in_call = false;      ///< by a thread whose last allocation was a model's call's
  bool site_grows = false;            ///< each call allocates more there than the one before
  bool site_keeps = false;            ///< of more than one earlier call some lived when it allocated
  bool site_replaces = false;         ///< a call there frees what the last one made, for more
  /// It lived into the next call, as something of each of several layers did.
  bool may_be_state = false;
  bool is_told_cache = false;         ///< a leak was named a KV cache, and its stack is of it
  bool is_made_again = false;         ///< its stack allocated in another step too
  bool is_before_calls = false;       ///< made before the first call of a model in its step
  bool was_state = false;             ///< of an optimizer that has let go of it
  /// On a GPU, of a workspace's size, and the only one of that size that its stack made.
  bool may_be_workspace = false;
};

struct Verdict {
  Category category = Category::kUnknown;
  WhyUnknown why = WhyUnknown::kNone;
  bool operator==(const Verdict&) const = default;
};
/// A model's call.
bool is_in_call(WorkPhase phase);
/// What a call without gradients leaves at this place for the next one and replaces by more.
bool is_cache_site(const BlockLife& life);
Verdict verdict_of(const Attribution& made_in, const BlockLife& life);

}  // namespace gpumemprof
