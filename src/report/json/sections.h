// The sections of JSON reports, a function for each (docs/schemas).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "analysis/advice.h"
#include "analysis/analysis.h"
#include "analysis/driver/device_use.h"
#include "analysis/replay/snapshot_device.h"
#include "estimate/cost.h"
#include "readers/bfc_pool.h"
#include "trace/tables.h"

namespace gpumemprof {

// The part of the JSON report that says what memory is.

/// Adds categories, modules and phases at the peak, and categories over time, to a device's object;
/// where they are not known, why to `unknown`.
void add_categories_json(const DeviceAnalysis& device, const Tables& tables,
                         nlohmann::ordered_json* out, nlohmann::ordered_json* unknown);

/// The categories of one stack's bytes at the moment of `holders`.
class HolderCategories {
 public:
  explicit HolderCategories(const std::vector<CategoryHolder>& holders);
  /// Adds "category", that of most of its bytes or null, where there are several "categories", and
  /// "module" and "phase" where they are known.
  void add_json(uint32_t stack, const Tables& tables, nlohmann::ordered_json* item) const;

 private:
  absl::flat_hash_map<uint32_t, std::vector<CategoryHolder>> by_stack_;
};

/// Ends of steps and phases, at which categories_at_moments are taken.
nlohmann::ordered_json moments_json(const Analysis& analysis, const Tables& tables);

/// What a run costs, for programs: "cost" in docs/schemas/analysis.schema.json and
/// advice.schema.json.
nlohmann::ordered_json cost_json(const Cost& cost);

/// The driver's allocations and their sum, as JSON.
/// Null where the driver was not recorded.
nlohmann::ordered_json driver_json(const Analysis& analysis, const Tables& tables);

// How the recorded program ended, for programs.

/// "end" of docs/schemas/analysis.schema.json.
nlohmann::ordered_json ends_json(const ProgramEnds& ends);
/// "end.caught" of the same: requests that were refused and did not end the program.
nlohmann::ordered_json caught_refusals_json(const Analysis& analysis, const Tables& tables);

// Findings, the score and the patterns of memory over time, for programs.

/// `findings` of schema "gpumemprof.analysis/1".
nlohmann::ordered_json findings_json(const Analysis& analysis, const Tables& tables);
/// {"value", "parts"}, and "reason" where there is no value.
nlohmann::ordered_json score_json(const Score& score);
nlohmann::ordered_json patterns_json(const std::vector<SeriesPattern>& patterns);

// The host's memory during a run, as JSON.

/// "host_memory" of docs/schemas/analysis.schema.json; null where no samples tell of it.
nlohmann::ordered_json host_json(const Analysis& analysis);

/// Use of the machine's memory, as JSON.
/// "device_samples" of docs/schemas/analysis.schema.json.
nlohmann::ordered_json machine_json(const DeviceUse& use);

/// The state of one of TensorFlow's pools, for programs.
/// `pool` of the schemas "gpumemprof.oom_message/1" and "gpumemprof.analysis/1". Of chunks by size
/// and by operation the 1,000 with the most bytes.
nlohmann::ordered_json pool_json(const BfcPool& pool);

// A job's ranks in JSON.

/// `ranks` of gpumemprof.analysis/1; null where it is no job.
nlohmann::ordered_json ranks_json(const Analysis& analysis, const Tables& tables);

// The parts of the analysis of a snapshot that recordings do not have, for programs.

/// Puts into a device of json_report() what the replay knows: peaks in requested and allocated
/// bytes with indexes in the device's own trace, the end as the segments have it, replay,
/// fragmentation, ooms. `unknown` gains a reason for each that is null.
void add_snapshot_json(const DeviceAnalysis& device, const Analysis& analysis, const Tables& tables,
                       nlohmann::ordered_json* out, nlohmann::ordered_json* unknown);

/// The axis, and the levels that only a replay knows.
void add_snapshot_timeline(const SnapshotDevice& snapshot, nlohmann::ordered_json* timeline);

/// "gpumemprof.advice/1": what to change, as order_advice(), then what is unknown.
nlohmann::ordered_json advice_root(const AdviceReport& report, const Tables& tables);
/// The same as text; `cost` in a member of its own, may be null.
std::string advice_json(const AdviceReport& report, const Tables& tables,
                        const Cost* cost = nullptr);

}  // namespace gpumemprof
