// Runs of a program, as it is and with one change each, for `advise -- COMMAND`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/advice.h"
#include "analysis/analysis.h"
#include "base/error.h"

namespace gpumemprof {

/// A run that has ended, and where its recording is.
struct TrialRun {
  std::string folder;
  std::string failure;  ///< how the program ended; empty: well
};

class AdviseTrials {
 public:
  /// Recordings go into `folder`. `steps` > 0: the program is ended after so many.
  AdviseTrials(std::vector<std::string> command, std::string folder, uint64_t steps)
      : command_(std::move(command)), folder_(std::move(folder)), steps_(steps) {}

  /// Runs the program recorded, with `change` (python/gpumemprof/_recorded/trying.py has their
  /// names) or as it is. What it prints goes to our standard error where `is_shown`, else nowhere.
  /// A program that fails is no error: what it did until then may be recorded. Errors: kSystem.
  Result<TrialRun> record(const std::string& name, const std::string& change, bool is_shown);

  /// Puts measured figures in place of simulated ones, where the change can be made from outside;
  /// `not_measured` has the reason where a run failed or never came to make its change. What turns
  /// out to save nothing stays, at zero bytes.
  void measure(const Analysis& base, const Tables& tables, AdviceReport* report);

 private:
  void measure_one(const Analysis& base, const Tables& tables, const std::string& change,
                   Advice* advice);

  const std::vector<std::string> command_;
  const std::string folder_;
  const uint64_t steps_;
  unsigned trials_ = 0;  // that were begun
};

}  // namespace gpumemprof
