// A run as the commands read it: its analysis, and its allocator's history.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/advice.h"
#include "analysis/analyze.h"
#include "report/json/document_json.h"

namespace gpumemprof {

/// How a file is read for the page.
struct PageReading {
  bool seal = true;
  std::shared_ptr<Anonymizer> names = nullptr;  ///< replaces names; null: they are shown
  AnalysisOptions analysis = {};                ///< its keeper and its progress are the page's own
  bool all_advice = false;  ///< of a recording of any length, else of one that is soon read again
  double sensitivity = 0.05;  ///< of samples
};

/// For one thread at a time.
class WholeRun {
 public:
  /// Reads the whole run; `keeper` gets every block, and may be null. Samples and dumps have no
  /// events, only document(). Errors: those of open_input(), analyze() and of the readers of
  /// samples and dumps.
  static Result<std::unique_ptr<WholeRun>> read(const std::vector<std::string>& paths,
                                                const PageReading& reading, BlockKeeper* keeper,
                                                const std::function<void(double)>& on_progress);

  const Analysis& analysis() const { return analyzed_.analysis; }
  const Tables& tables() const { return has_events() ? analyzed_.tables() : no_tables_; }
  const Input& input() const { return input_; }
  bool is_snapshot() const { return input_.snapshot() != nullptr; }
  bool has_events() const {
    return input_.kind() != InputKind::kSamples && input_.kind() != InputKind::kOomDump;
  }
  /// Null for a device without a report.
  const DeviceAnalysis* device(uint16_t index) const;
  /// As many as `analyze` names, also those that a report tells within another.
  size_t findings() const { return has_events() ? analysis().findings.size() : findings_; }
  /// It, or the sum that it is a part of, is the answer.
  bool is_main(uint16_t index) const;
  /// Else the times of its events are numbers of events.
  bool has_times(uint16_t index) const;

  /// The suggestions of practices, as PageReading::all_advice says; the run is read once more for
  /// them, once. Null if they are not wanted. Errors: those of the reader.
  Result<const AdviceReport*> advice();
  /// The run's report as data, with where the page shows it. Errors: those of advice().
  Result<nlohmann::ordered_json> document(const EvidenceJson& evidence_json);
  /// The allocator's own history, read once more from a recording that has one. Errors: those of
  /// allocator_history().
  Result<std::shared_ptr<const AllocatorSnapshot>> history();

 private:
  WholeRun(Input input, Analyzed analyzed, bool has_all_advice)
      : input_(std::move(input)), analyzed_(std::move(analyzed)), has_all_advice_(has_all_advice) {}
  Status read_without_events(double sensitivity);

  Input input_;
  Analyzed analyzed_;
  Tables no_tables_;
  bool has_all_advice_;
  std::optional<AdviceReport> advice_;
  nlohmann::ordered_json document_;  // where there are no events
  size_t findings_ = 0;              // likewise
  std::shared_ptr<const AllocatorSnapshot> history_;
};

}  // namespace gpumemprof
