#include "analysis/replay/settings_study.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <tuple>

#include "analysis/replay/settings_text.h"
#include "base/parallel_for.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

std::string percent(double share) {
  const auto thousandths = static_cast<uint64_t>(share * 1000);  // rounded down: 99.96 % is not all
  return std::to_string(thousandths / 10) + '.' + std::to_string(thousandths % 10) + " %";
}

Status check_fidelity(const ReplayResult& replay, bool force) {
  const ReplayLack lack = lack_of(replay);
  if (lack == ReplayLack::kAllocations) {
    return fail(ErrorCode::kUnsupported,
                "no allocation was recorded, so there is nothing to replay: record history with "
                "torch.cuda.memory._record_memory_history() before the snapshot");
  }
  if (force || lack == ReplayLack::kNothing) return {};
  return fail(ErrorCode::kUnsupported, "the replay of the recorded settings gives only " +
                                           percent(replay.share_matched()) +
                                           " of the allocations their recorded address, too few to "
                                           "predict other settings; --force predicts anyway");
}

/// A row with its settings checked, not yet simulated.
struct Planned {
  StudyRow row;
  AllocatorConfig config;
};

Result<std::vector<Planned>> plan(const AllocatorSnapshot& snapshot, const AllocatorTrace& trace,
                                  const SettingsStudy& study, const StudyOptions& options) {
  std::vector<Planned> planned;
  const Release& found = study.replay.release;
  const auto add = [&](std::string settings, const AllocatorConfig& config, const Release& release,
                       bool from_sweep) {
    Planned& next = planned.emplace_back();
    next.row = {.settings = std::move(settings),
                .release = release,
                .from_sweep = from_sweep,
                .keys_without_effect = config.keys_without_effect};
    next.config = config;
    next.config.capacity_bytes = options.capacity_bytes;
    if (study.is_in_that_room) take_room(*study.room, trace.device_bytes, &next.config);
    next.row.capacity_bytes = next.config.capacity_bytes;
    const bool has_limit = next.config.memory_fraction && next.config.capacity_bytes;
    if (next.config.garbage_collection_threshold > 0 && !has_limit)
      next.row.keys_without_effect.emplace_back(kGarbageCollection);
    if (next.config.memory_fraction && !next.config.capacity_bytes)
      next.row.keys_without_effect.emplace_back(kMemoryFraction);
  };
  const std::string recorded = recorded_text(snapshot.settings);
  add(recorded, recorded_config(snapshot.settings, found), found, false);
  const Release release = options.release.value_or(found);
  if (options.settings.empty() && options.release && *options.release != found) {
    add(recorded, recorded_config(snapshot.settings, release), release, false);
  }
  for (const std::string& settings : options.settings) {
    Release by = release;
    Result<AllocatorConfig> config = parse_settings(settings, by);
    if (!config && !options.release) {
      by = study.equal_releases.back();
      config = parse_settings(settings, by);
    }
    if (!config) return std::unexpected(config.error());
    add(settings, *config, by, false);
  }
  if (options.sweep) {
    for (const std::string& settings :
         candidate_settings(trace, snapshot.settings, release,
                            {.has_capacity = options.capacity_bytes || study.is_in_that_room,
                             .has_limit = study.is_in_that_room && study.room->is_own_limit()})) {
      add(settings, *parse_settings(settings, release), release, true);
    }
  }
  return planned;
}

auto cost(const StudyRow& row) {
  return std::tuple(row.result.oom_before_first_event, row.result.num_ooms,
                    row.result.peak_reserved_bytes, row.result.num_alloc_retries);
}

void simulate(const AllocatorTrace& trace, const TraceStart& start, const StudyOptions& options,
              std::vector<Planned>* planned) {
  std::atomic<size_t> done = 0;
  const std::thread::id caller = std::this_thread::get_id();
  parallel_for(planned->size(), options.threads, [&](size_t i) {
    Planned& next = (*planned)[i];
    next.row.result =
        options.observer
            ? what_if(trace, next.config, next.row.release,
                      [&](uint64_t event, const Simulator& simulator) {
                        return options.observer(i, event, simulator);
                      })
            : what_if(trace, start, next.config, next.row.release);
    const size_t finished = ++done;
    if (options.on_progress && std::this_thread::get_id() == caller) {
      options.on_progress(static_cast<double>(finished) / static_cast<double>(planned->size()));
    }
  });
}

/// Between what is allocated at once and what is reserved where nothing is given back.
void find_least_memory(const AllocatorTrace& trace, const TraceStart& start,
                       const AllocatorConfig& config, StudyRow* row) {
  const uint64_t low = row->result.peak_allocated_bytes, high = row->result.peak_reserved_bytes;
  const auto error = std::max<uint64_t>(
      kMiB, static_cast<uint64_t>(static_cast<double>(high) * kLeastMemoryError));
  const auto least = least_capacity(trace, start, config, row->release, low, high, error);
  if (!least) return;
  row->least_memory_bytes = least->bytes, row->retries_there = least->num_alloc_retries;
}

void find_least_memory(const AllocatorSnapshot& snapshot, const AllocatorTrace& trace,
                       const TraceStart& start, const StudyOptions& options,
                       SettingsStudy* study) {
  StudyRow& first = study->rows.front();
  if (first.capacity_bytes || options.observer) return;
  std::vector<StudyRow*> rows{&first};
  if (const StudyRow* best = best_row(*study))
    rows.push_back(&study->rows[static_cast<size_t>(best - study->rows.data())]);
  parallel_for(rows.size(), options.threads, [&](size_t i) {
    StudyRow& row = *rows[i];
    find_least_memory(trace, start,
                      i == 0 ? recorded_config(snapshot.settings, row.release)
                             : *parse_settings(row.settings, row.release),
                      &row);
  });
}

}  // namespace

ReplayLack lack_of(const ReplayResult& replay) {
  if (replay.alloc_addresses == 0) return ReplayLack::kAllocations;
  return replay.share_matched() < kLeastFidelity ? ReplayLack::kFidelity : ReplayLack::kNothing;
}

Result<SettingsStudy> study_settings(const AllocatorSnapshot& snapshot, size_t index,
                                     const StudyOptions& options) {
  const AllocatorTrace& trace = snapshot.traces[index];
  const TraceStart start = trace_start(trace);
  SettingsStudy study;
  study.replay =
      replay_unknown_release(trace, start, snapshot.settings, snapshot.info.writer_version_hint,
                             &study.equal_releases);
  if (Status ok = check_fidelity(study.replay, options.force); !ok)
    return std::unexpected(ok.error());
  study.settings_known = snapshot.settings.known;
  study.live_before_bytes = study.replay.start.active_bytes;
  uint64_t reserved = 0;
  for (const AllocatorSegment& segment : trace.segments) reserved += segment.size_bytes;
  if (study.replay.impossible_events == 0 && study.replay.end.reserved_bytes == reserved) {
    study.recorded_peak_reserved_bytes = study.replay.peak_reserved.bytes;
  }
  study.room = room_at_first_refusal(trace, snapshot.settings, study.replay.release);
  study.is_in_that_room = study.room && !options.capacity_bytes && !options.never_runs_out;
  auto planned = plan(snapshot, trace, study, options);
  if (!planned) return std::unexpected(planned.error());
  simulate(trace, start, options, &*planned);
  for (const Planned& done : *planned) {
    if (!done.row.result.gave_up_at) continue;
    return fail(ErrorCode::kUnsupported,
                "simulating '" + done.row.settings +
                    "' takes more steps than any real trace; stopped at event " +
                    std::to_string(*done.row.result.gave_up_at + 1));
  }
  for (Planned& done : *planned) study.rows.push_back(std::move(done.row));
  const auto swept = std::ranges::find_if(study.rows, &StudyRow::from_sweep);
  std::stable_sort(swept, study.rows.end(),
                   [](const StudyRow& a, const StudyRow& b) { return cost(a) < cost(b); });
  find_least_memory(snapshot, trace, start, options, &study);
  return study;
}

bool fails(const StudyRow& row) {
  return row.result.oom_before_first_event || row.result.num_ooms != 0;
}

const StudyRow* best_row(const SettingsStudy& study) {
  const StudyRow& recorded = study.rows.front();
  const auto worth_it = static_cast<uint64_t>(
      static_cast<double>(recorded.result.peak_reserved_bytes) * (1 - kLeastGain));
  const StudyRow* best = nullptr;
  for (const StudyRow& row : study.rows) {
    if (&row == &recorded || fails(row)) continue;
    if (!fails(recorded) && row.result.peak_reserved_bytes > worth_it) continue;
    if (!best || cost(row) < cost(*best)) best = &row;
  }
  return best;
}

}  // namespace gpumemprof
