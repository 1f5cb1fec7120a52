// The ranks of a job, side by side: which of them needs how much, what makes the difference, who
// ran out first, who is missing, who is waited for, and what splits the work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/tables.h"

namespace gpumemprof {

enum class RankEnd : uint8_t {
  kClean,        ///< exit() with 0, or the program says so itself
  kExitCode,     ///< another one
  kSignal,       ///< a signal ended it
  kOutOfMemory,  ///< of an error that nobody caught
  kUnknown,      ///< killed, or it still runs
};

struct OneRank {
  uint32_t rank = 0;
  uint32_t process = 0;    ///< index in Tables::processes: of the rank itself
  size_t processes = 1;    ///< that have this rank: what it started, and earlier tries
  size_t tries = 1;        ///< of these, not started by another one of them
  std::optional<uint16_t> device;  ///< its memory, index in Tables::devices; absent: none was used
  uint64_t peak_bytes = 0, peak_time_ns = 0;
  uint64_t at_job_peak_bytes = 0;  ///< all of its processes, when the ranks together held the most
  uint64_t steps = 0;
  std::optional<uint64_t> step_ns;  ///< the median of the times between ends of steps
  std::optional<int64_t> lag_ns;    ///< how long after the median rank it ends a step: the median
  uint64_t last_in = 0;             ///< collectives that it entered last
  uint64_t waited_for_ns = 0;       ///< by the others, in these
  uint64_t parameters = 0, parameter_bytes = 0;  ///< at its peak, those with names
  RankEnd end = RankEnd::kUnknown;
  int exit_code = 0;
  std::string signal;
};

/// A line of code at the peaks of the ranks.
struct RankLine {
  uint32_t node = 0;  ///< StackTable id; 0: no stack
  uint64_t bytes = 0, median_bytes = 0;  ///< of the rank with the highest peak; of all
};

/// The first request of the job that an allocator refused.
struct RankRefusal {
  uint32_t rank = 0;
  uint16_t device = 0;  ///< index in Tables::devices
  uint64_t size_bytes = 0;
  uint32_t stack = 0;
  bool ended_it = false;  ///< nobody caught the error
  uint64_t ranks = 1;     ///< that had a request refused
};

/// How the work is divided, and what says so.
struct Parallelism {
  std::string kind;      ///< "data", "sharded", "sharded optimizer", "tensor", "pipeline", "expert"
  std::string evidence;  ///< one sentence without a full stop
};

struct Straggler {
  uint32_t rank = 0;
  std::string evidence;
};

struct JobRanks {
  Launcher launcher = Launcher::kNone;
  std::optional<uint32_t> world_size;  ///< absent: no file tells it
  std::vector<OneRank> ranks;          ///< by number
  std::vector<uint32_t> missing;       ///< without a recording: the first kMostMissing
  uint64_t missing_count = 0;
  static constexpr size_t kMostMissing = 1000;
  size_t hosts = 0;

  /// Index in `ranks` of the one with the highest peak; absent where none used memory.
  std::optional<size_t> highest;
  uint64_t median_peak_bytes = 0, least_peak_bytes = 0;
  std::vector<RankLine> lines;  ///< what makes the difference to the median, largest first

  std::optional<uint64_t> job_peak_bytes;  ///< of all ranks at one moment
  uint64_t job_peak_ns = 0;
  std::string why_no_job_peak;

  std::optional<RankRefusal> first_refusal;
  uint64_t collectives = 0;  ///< that all recorded ranks entered
  std::vector<Straggler> stragglers;
  std::string why_no_stragglers;  ///< where it cannot be told
  std::vector<Parallelism> parallelism;
  std::string why_no_parallelism;  ///< where nothing of it follows
};

}  // namespace gpumemprof
