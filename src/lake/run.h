// A run as the tables of a lake (docs/lake.md): the blocks that the page shows, and the figures of
// analyze, from one pass.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lake/batch.h"
#include "page/block_table.h"
#include "page/whole_run.h"

namespace gpumemprof {

/// A memory of the run: one device of one process.
struct LakeMemory {
  uint32_t device = 0;  ///< index in Tables::devices
  bool has_times = false;
  std::unique_ptr<BlockTable> table;
};

/// Not thread-safe while it is read; rows may then be filled from any thread.
class LakeRun {
 public:
  /// Reads the whole run. Errors: those of WholeRun::read(); kUnsupported for samples and dumps,
  /// which have no allocations.
  static Result<std::unique_ptr<LakeRun>> read(const std::vector<std::string>& paths,
                                               const PageReading& reading,
                                               const std::function<void(double)>& on_progress);
  /// As `analyze --format json` prints it. Errors: those of the reader.
  Result<std::string> report();
  const std::vector<LakeMemory>& memories() const { return memories_; }
  const WholeRun& whole() const { return *whole_; }
  /// Null for a table that there is not. `memory` counts only for tables that have one. The run
  /// must outlive them.
  std::unique_ptr<LakeRows> rows(std::string_view table, size_t memory) const;

 private:
  std::unique_ptr<WholeRun> whole_;
  std::vector<LakeMemory> memories_;
};

// Each table by itself.
std::unique_ptr<LakeRows> interval_rows(const LakeRun& run, size_t memory);
std::unique_ptr<LakeRows> category_rows(const LakeRun& run, size_t memory);
std::unique_ptr<LakeRows> sample_rows(const LakeRun& run, size_t memory);
std::unique_ptr<LakeRows> step_rows(const LakeRun& run, size_t memory);
std::unique_ptr<LakeRows> slice_rows(const LakeRun& run, size_t memory);
std::unique_ptr<LakeRows> rank_rows(const LakeRun& run);
std::unique_ptr<LakeRows> stack_rows(const LakeRun& run);

/// The ends of the program's steps, as a memory counts moments, oldest first.
struct StepEnd {
  uint32_t moment = 0;
  const CategoryMoment* said = nullptr;
};
std::vector<StepEnd> step_ends(const LakeRun& run, const LakeMemory& memory);
/// When a moment was; absent before the first event, and where the events have no times.
std::optional<uint64_t> time_of(const LakeMemory& memory, uint32_t moment);

}  // namespace gpumemprof
