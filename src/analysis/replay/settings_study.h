// Simulates other allocator settings, another device size or another release on the
// requests of a trace, beside what the recorded settings do with them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "allocator/process_room.h"
#include "allocator/replay.h"
#include "base/error.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// Below this share of recorded addresses a replay does not follow the recorded allocator well
/// enough to say what another setting would do.
inline constexpr double kLeastFidelity = 0.99;

/// What a replay of the recorded settings lacks to predict others.
enum class ReplayLack : uint8_t { kNothing, kAllocations, kFidelity };
ReplayLack lack_of(const ReplayResult& replay);

struct StudyOptions {
  std::vector<std::string> settings;  ///< each the whole text of PYTORCH_CUDA_ALLOC_CONF
  /// What the process can have of the device; absent: what it had in the recorded run where an
  /// out-of-memory event gives that away, else it never runs out.
  std::optional<uint64_t> capacity_bytes;
  bool never_runs_out = false;     ///< whatever the file gives away
  /// Of the settings; absent: the one that the replay found, or, of what only newer ones accept,
  /// the newest that the file may be of.
  std::optional<Release> release;
  bool sweep = false;              ///< also candidate_settings()
  bool force = false;              ///< predict below kLeastFidelity too
  unsigned threads = 2;
  std::function<void(double)> on_progress;  ///< from the calling thread; may be empty
  /// Looks on while a row is simulated, as a ReplayObserver, from any thread; may be empty. `row`:
  /// its index before a sweep is sorted.
  std::function<bool(size_t row, uint64_t event, const Simulator& simulator)> observer;
};

struct StudyRow {
  std::string settings;  ///< as given; empty: PyTorch's defaults
  Release release;
  std::optional<uint64_t> capacity_bytes;
  bool from_sweep = false;
  WhatIfResult result;
  /// kGarbageCollection, kMemoryFraction: only without a limit.
  std::vector<std::string> keys_without_effect;
  /// On a device that never runs out, of the recorded settings and of best_row(): the least memory
  /// with which no request is refused, at most kLeastMemoryError too high. The allocator then gives
  /// its cache back `retries_there` times.
  std::optional<uint64_t> least_memory_bytes;
  uint64_t retries_there = 0;
};

struct SettingsStudy {
  ReplayResult replay;          ///< of the recorded settings, from the recorded state
  std::vector<Release> equal_releases;  ///< the file may be of each of them; oldest first
  bool settings_known = false;  ///< the file has them; else PyTorch's defaults are assumed
  std::optional<uint64_t> recorded_peak_reserved_bytes;  ///< absent where the replay contradicts it
  uint64_t live_before_bytes = 0;  ///< rounded, of blocks that were live before the first event
  std::optional<ProcessRoom> room;  ///< at the first refusal
  bool is_in_that_room = false;     ///< the rows are simulated in it
  /// [0] is the recorded settings, then those that were named, then a sweep's, the best first.
  std::vector<StudyRow> rows;
};

/// Errors: kUsage where a setting is refused by the release; kUnsupported where it cannot be
/// simulated, where the trace has no allocation, or where the replay is below kLeastFidelity and
/// `force` is not set.
Result<SettingsStudy> study_settings(const AllocatorSnapshot& snapshot, size_t trace,
                                     const StudyOptions& options);

/// Whether a request is refused under the row's settings.
bool fails(const StudyRow& row);

inline constexpr double kLeastMemoryError = 0.005;

/// Less than this share of the reserved peak is not worth a setting.
inline constexpr double kLeastGain = 0.02;

/// The row to recommend: of those in which no request fails the one with the lowest reserved peak,
/// where the recorded settings fail or reserve kLeastGain more. Null where none is.
const StudyRow* best_row(const SettingsStudy& study);

}  // namespace gpumemprof
