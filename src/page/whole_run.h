// A run as the commands read it: its analysis, and what its allocator told.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/advice.h"
#include "analysis/analyze.h"

namespace gpumemprof {

/// For one thread at a time.
class WholeRun {
 public:
  /// Reads all of it; `keeper` is told of every block, and may be null. Errors: those of
  /// open_input() and analyze().
  static Result<std::unique_ptr<WholeRun>> read(const std::vector<std::string>& paths,
                                                BlockKeeper* keeper,
                                                const std::function<void(double)>& on_progress);

  const Analysis& analysis() const { return analyzed_.analysis; }
  const Tables& tables() const { return analyzed_.tables(); }
  Input& input() { return input_; }
  bool is_snapshot() const { return input_.snapshot() != nullptr; }
  /// Null for what no report tells of.
  const DeviceAnalysis* device(uint16_t index) const;

  /// What reports say of the run, as data. Reads a recording once more where advice is to be had.
  /// Errors: those of the reader.
  Result<nlohmann::ordered_json> document();
  /// What the allocator told of itself, read once more where a recording has it. Errors: those of
  /// allocator_history().
  Result<std::shared_ptr<const AllocatorSnapshot>> history();

 private:
  WholeRun(Input input, Analyzed analyzed)
      : input_(std::move(input)), analyzed_(std::move(analyzed)) {}

  Input input_;
  Analyzed analyzed_;
  std::shared_ptr<const AllocatorSnapshot> history_;
};

}  // namespace gpumemprof
