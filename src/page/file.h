// One run, opened for the page: its tables, its report, and frequently used results.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/categories/categories.h"
#include "page/block_table.h"
#include "page/filter.h"
#include "page/key_levels.h"
#include "page/whole_run.h"
#include "page/worker.h"

namespace gpumemprof {

// What the page needs of a run beyond its blocks and tables: small, and kept in the index.

/// Annotations of a program beside the history of its memory, on one device.
struct PageAnnotation {
  uint32_t device = 0;  ///< index in Tables::devices
  uint32_t name = 0;    ///< StringTable id
  uint64_t time_ns = 0;
  bool is_begin = false;
};

struct PageFacts {
  nlohmann::ordered_json run;  ///< the file's part of the answer `run`, an object
  uint64_t start_time_ns = 0;  ///< of all devices: what times are told after; 0 without any
  bool has_addresses = false;
  std::vector<int64_t> streams;  ///< of all devices
  std::vector<CategoryMoment> moments;
  std::vector<PageAnnotation> annotations;
};

/// A memory of the run, as the page shows it.
struct PageDevice {
  uint32_t index = 0;  ///< in Tables::devices
  std::string name;
  bool has_times = false;              ///< else the times are numbers of events
  bool is_main = false;                ///< the answer, or the largest part of the sum that is
  bool has_requested_sizes = false;    ///< else they were rounded
  std::string why_no_categories;       ///< where no block's is known
  std::string why_unknown_before;      ///< what was before the first event; empty where it is known
  std::vector<uint32_t> stream_of;     ///< of BlockTable::streams, in PageFacts::streams
  std::unique_ptr<BlockTable> table;
};

struct PageLoad {
  PageReading reading = {};
  bool uses_index = false;  ///< reads what an earlier opening left, or leaves it
  std::function<void(double)> on_progress = {};
  std::function<void(std::string)> on_note = {};  ///< one line on an unusable index
};

/// Not thread-safe except for whole(): one thread gives the answers.
class PageFile {
 public:
  using Taken = std::shared_ptr<const std::vector<uint8_t>>;

  /// Reads the whole run, or its index. Samples and dumps have no devices, only a report. Errors:
  /// those of WholeRun::read().
  static Result<std::unique_ptr<PageFile>> load(const std::vector<std::string>& paths,
                                                const PageLoad& options);
  /// From now on `worker` builds the levels of long runs; it must end before this.
  void set_worker(Worker* worker);
  /// Writes an index if it is worth one. May run while answers are given.
  void leave_index() const;

  const PageFacts& facts() const { return facts_; }
  const Tables& tables() const { return *tables_; }
  const std::vector<PageDevice>& devices() const { return devices_; }
  const std::vector<std::string>& paths() const { return paths_; }
  /// The index in devices() of the device that a report calls by `analysis`; 0 if there is none.
  size_t device_of(const DeviceAnalysis* analysis) const;
  /// The moment right before a device's first event at or after a time.
  uint32_t moment_at(size_t device, uint64_t time_ns) const;

  /// The run itself, reread if the page was opened from its index. For one thread, possibly another
  /// than that of the answers. Errors: those of WholeRun::read().
  Result<WholeRun*> whole();

  /// The moments of a device at which its process's steps ended, in order; empty if none are known.
  std::vector<uint32_t> step_ends(size_t device) const;

  /// Live bytes over time by a dimension, built once. Null while being built.
  const KeyLevels* levels(size_t device, Dimension by, const Filter& filter);
  /// Per block number, 1 if it matches the filter. Null if all match.
  Taken taken(size_t device, const Filter& filter);
  /// Between answers: drops what was not requested lately.
  void forget_old();

 private:
  friend class PageIndex;
  static constexpr size_t kMostKept = 12;
  static constexpr uint32_t kFewMoments = 1 << 18;  // whose levels are made at once
  using Levels = std::shared_ptr<const KeyLevels>;
  struct Kept {
    uint64_t used = 0;
    std::future<Levels> coming;
    Levels levels;
  };
  struct KeptFilter {
    uint64_t used = 0;
    Taken taken;
  };

  Status take_run(std::vector<std::unique_ptr<BlockTable>> tables);
  Levels make_levels(size_t device, Dimension by, const Taken& taken) const;
  size_t main_device() const;
  /// Of the chart that the page begins with.
  Dimension first_dimension() const;
  void begin_first_levels();
  void set_first_levels(Levels levels);

  std::vector<std::string> paths_;
  PageReading reading_;
  std::string key_;  // of the files when they were read; empty: no index may be left
  std::unique_ptr<WholeRun> whole_;
  std::unique_ptr<Tables> own_tables_;  // of an index
  const Tables* tables_ = nullptr;
  PageFacts facts_;
  std::vector<PageDevice> devices_;
  std::shared_future<Levels> first_levels_;  // of the main device: what the page begins with
  Worker* worker_ = nullptr;
  std::map<std::tuple<size_t, Dimension, std::string>, Kept> levels_;
  std::map<std::pair<size_t, std::string>, KeptFilter> filters_;
  uint64_t uses_ = 0;
};

}  // namespace gpumemprof
