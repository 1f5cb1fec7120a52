// Where traces come from: a library's model, the user's script, or files.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "cli/estimate.h"
#include "estimate/merge.h"
#include "estimate/step_trace.h"

namespace gpumemprof {

inline constexpr const char* kBatchWord = "{batch}";  ///< in a command: the batch goes here

/// One line of the table: what is traced anew for it.
struct LoopVariant {
  std::string optimizer = "adamw", precision = "fp32";
  std::string name() const { return optimizer + ", " + precision; }
};

/// The subject of an estimate, and how to trace it at a batch.
class TraceSubject {
 public:
  virtual ~TraceSubject() = default;
  /// `batch` 0: the subject's own. Errors: kUnsupported with the reason where it cannot be traced,
  /// kSystem, kBadInput.
  virtual Result<StepTrace> trace(uint64_t batch) = 0;
  /// From here on it makes no step in earnest: it is going to be asked many times.
  virtual void only_without_memory() {}
};

/// `arguments` must outlive it.
std::unique_ptr<TraceSubject> subject_of(const EstimateArguments& arguments,
                                         const LoopVariant& variant);

/// A loop at any batch: by two small traces where they merge, else by a trace at each batch.
class LoopAtBatches {
 public:
  explicit LoopAtBatches(TraceSubject& subject) : subject_(subject) {}
  Result<StepTrace> at(uint64_t batch);
  bool is_scaled() const { return merged_.has_value(); }

 private:
  Status merge();
  TraceSubject& subject_;
  std::optional<ScaledTrace> merged_;
  bool cannot_merge_ = false;
};

}  // namespace gpumemprof
