// Which bug it is, and its fix: a table of rules on evidence.
#pragma once

#include "analysis/finding_kind.h"
#include "analysis/leaks/leak_evidence.h"

namespace gpumemprof {

/// The name where no rule's evidence is there: the line and the holder are all that is known.
inline constexpr const char* kGrowth = "growth";
/// What TensorFlow keeps itself, and in several memories: tensors, malloc's blocks, mappings.
inline constexpr const char* kRetraced = "function_retraced";
inline constexpr const char* kKernelsKept = "kernels_kept";

struct LeakName {
  const char* name;   ///< "loss_kept_with_graph"; what `name` of a finding of a leak is
  const char* title;  ///< what happens, to follow "this line keeps …: "
  const char* fix;    ///< one sentence without a full stop
  FindingKind kind = FindingKind::kLeak;
};

/// Whether nearly all that holds it are tensors whose graph has all that it saved.
bool keeps_whole_graphs(const LeakEvidence& evidence);

/// Whether the name says that what is kept is a KV cache.
bool is_kv_cache(const LeakName& name);
/// Whether all that the leak keeps is one, by who holds it or how it grows: most of it by its
/// category leaves the rest to be something else.
bool is_all_kv_cache(const LeakName& name, const LeakEvidence& evidence);

/// Whether what is kept after the last step may be wanted: it has no graph, and nothing keeps it that
/// is a bug by itself.
bool may_be_result(const LeakName& name, const LeakEvidence& evidence);

/// The first rule whose evidence is there; kGrowth where none is.
const LeakName& name_leak(const LeakEvidence& evidence);

}  // namespace gpumemprof
