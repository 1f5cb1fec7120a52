// One run, opened for the page: its analysis, its tables, and what of it is asked for often.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/advice.h"
#include "analysis/analyze.h"
#include "page/block_table.h"
#include "page/filter.h"
#include "page/key_levels.h"

namespace gpumemprof {

/// A memory of the run, as the page shows it.
struct PageDevice {
  uint16_t index = 0;  ///< in Tables::devices
  std::string name;
  bool has_times = false;                    ///< else the times are numbers of events
  const DeviceAnalysis* analysis = nullptr;  ///< null for what no report tells of
  std::unique_ptr<BlockTable> table;
  std::vector<uint32_t> stream_of;  ///< of BlockTable::streams, in PageFile::streams()
};

/// How a file is read for the page.
struct PageReading {
  bool seal = true;
  std::shared_ptr<Anonymizer> names = nullptr;  ///< replaces names; null: they are shown
  AnalysisOptions analysis = {};                ///< its keeper and its progress are the page's own
  bool all_advice = false;  ///< of a recording of any length, else of one that is soon read again
  double sensitivity = 0.05;  ///< of samples
};

/// Not thread-safe: answers are given by one thread.
class PageFile {
 public:
  /// Reads all of it. Of samples and dumps there are no devices: what reports say of them is all.
  /// Errors: those of open_input() and analyze().
  static Result<std::unique_ptr<PageFile>> load(const std::vector<std::string>& paths,
                                                std::function<void(double)> on_progress,
                                                PageReading reading = {});

  const Analysis& analysis() const { return analyzed_.analysis; }
  const Tables& tables() const { return has_events() ? analyzed_.tables() : no_tables_; }
  const std::vector<PageDevice>& devices() const { return devices_; }
  /// Of all devices: what times are told after. 0 where there are none.
  uint64_t start_time_ns() const { return start_time_ns_; }
  bool has_addresses() const { return input_.snapshot() || analysis().source.can.addresses; }
  const std::vector<int64_t>& streams() const { return streams_; }  ///< of all devices
  InputKind kind() const { return input_.kind(); }
  bool has_events() const {
    return kind() != InputKind::kSamples && kind() != InputKind::kOomDump;
  }
  /// The index in devices() of what a report calls by `analysis`; 0 where there is none.
  size_t device_of(const DeviceAnalysis* analysis) const;
  /// Of a device: the moment right before the first event at or after a time.
  uint32_t moment_at(size_t device, uint64_t time_ns) const;
  const AdviceReport* advice() const { return has_advice_ ? &advice_ : nullptr; }
  Input& input() { return input_; }
  const std::vector<std::string>& paths() const { return input_.paths(); }

  /// What reports say of the run, as data.
  const nlohmann::ordered_json& document();

  /// What the allocator told of itself, read once more where a recording has it. Errors: those of
  /// allocator_history().
  Result<std::shared_ptr<const AllocatorSnapshot>> history();

  /// What is live over time by a dimension, made once.
  const KeyLevels& levels(size_t device, Dimension by, const Filter& filter);
  /// By number of the block: 1 where the filter takes it. Null where it takes all.
  const std::vector<uint8_t>* taken(size_t device, const Filter& filter);
  /// Between answers: drops what was not requested lately.
  void forget_old();

 private:
  static constexpr size_t kMostKept = 12;
  struct Kept {
    uint64_t used = 0;
    std::unique_ptr<KeyLevels> levels;
  };
  struct KeptFilter {
    uint64_t used = 0;
    std::unique_ptr<std::vector<uint8_t>> taken;
  };

  Status read_without_events(double sensitivity);

  PageFile(Input input, Analyzed analyzed)
      : input_(std::move(input)), analyzed_(std::move(analyzed)) {}

  Input input_;
  Analyzed analyzed_;
  Tables no_tables_;
  std::shared_ptr<const AllocatorSnapshot> history_;
  AdviceReport advice_;
  bool has_advice_ = false;
  nlohmann::ordered_json document_;
  std::vector<PageDevice> devices_;
  std::vector<int64_t> streams_;
  std::map<std::tuple<size_t, Dimension, std::string>, Kept> levels_;
  std::map<std::pair<size_t, std::string>, KeptFilter> filters_;
  uint64_t uses_ = 0, start_time_ns_ = 0;
};

}  // namespace gpumemprof
