#include "analysis/analyze.h"

#include <algorithm>
#include <utility>

#include "allocator/config.h"
#include "analysis/categories/block_keeper.h"
#include "analysis/categories/snapshot_categories.h"
#include "analysis/driver/device_truth.h"
#include "analysis/driver/device_use.h"
#include "analysis/finding.h"
#include "analysis/host/host_findings.h"
#include "analysis/host/host_memories.h"
#include "analysis/leaks/leak_findings.h"
#include "analysis/oom_message/oom_pool.h"
#include "analysis/pass/followed_pass.h"
#include "analysis/ranks/find_ranks.h"
#include "analysis/ranks/nccl_communicators.h"
#include "analysis/replay/snapshot_analysis.h"
#include "analysis/replay/snapshot_findings.h"
#include "analysis/replay/told_refusals.h"
#include "analysis/series/recording_patterns.h"
#include "readers/bfc_dump/read.h"
#include "recording/holders_file.h"
#include "recording/samples_file.h"

namespace gpumemprof {
namespace {

using Histories = std::vector<AllocatorSnapshot>;

void move_to(int64_t offset_us, std::optional<int64_t>* time_us) {
  if (*time_us) **time_us += offset_us;
}

/// Single moments are told as wall-clock time; the clock of a recording is the machine's.
void tell_wall_clock(int64_t offset_us, SnapshotDevice* device) {
  move_to(offset_us, &device->peak_time_us);
  move_to(offset_us, &device->peak_allocated_time_us);
  move_to(offset_us, &device->peak_reserved_time_us);
  for (OomExplanation& oom : device->ooms) move_to(offset_us, &oom.time_us);
}

/// see(history, index in it, index in `tables`) of each device that was followed.
template <class See>
void each_followed(const Histories& histories, const Tables& tables, const See& see) {
  for (const AllocatorSnapshot& history : histories) {
    for (size_t i = 0; i < history.traces.size(); ++i) {
      const auto known = std::ranges::find(tables.devices, history.tables.devices[i]);
      see(history, i, static_cast<uint16_t>(known - tables.devices.begin()));
    }
  }
}

/// The program told something of a followed device, but not what all of it is.
bool asks_for_rules(const Histories& histories, const Tables& tables, Analysis* analysis) {
  const auto is_asked = [](const CategoryHolder& holder) {
    return holder.category == Category::kUnknown;
  };
  constexpr auto kNotKnown = static_cast<size_t>(Category::kUnknown);
  bool asks = false;
  each_followed(histories, tables, [&](const AllocatorSnapshot&, size_t, uint16_t index) {
    const DeviceAnalysis* device = find_device(*analysis, index);
    if (device == nullptr || !device->categories.is_known) return;
    const DeviceCategories& known = device->categories;
    asks |= std::ranges::any_of(known.at_peak, is_asked) ||
            std::ranges::any_of(known.at_end, is_asked) ||
            std::ranges::any_of(known.timeline,
                                [](const CategoryBytes& at) { return at[kNotKnown] != 0; });
  });
  return asks;
}

std::map<uint16_t, std::vector<RuledBlock>> rules_of(const Histories& histories,
                                                     const Tables& tables) {
  std::map<uint16_t, std::vector<RuledBlock>> rules;
  each_followed(histories, tables, [&](const AllocatorSnapshot& of, size_t i, uint16_t device) {
    rules[device] = rules_of_trace(of, i, trace_start(of.traces[i]));
  });
  return rules;
}

/// Else there is nothing to read again for.
bool decides_any(const std::map<uint16_t, std::vector<RuledBlock>>& rules) {
  return std::ranges::any_of(rules, [](const auto& of_device) {
    return std::ranges::any_of(of_device.second,
                               [](const RuledBlock& block) { return block.rule != 0; });
  });
}

/// What only the allocator's history tells.
void fill_followed(const Histories& histories, const Tables& tables, const AnalysisOptions& options,
                   Analysis* analysis) {
  const bool is_whole = options.depth == AnalysisDepth::kWhole;
  each_followed(histories, tables, [&](const AllocatorSnapshot& history, size_t i, uint16_t index) {
    DeviceAnalysis* device = find_device(*analysis, index);
    if (device == nullptr) return;
    const TraceStart start = trace_start(history.traces[i]);
    std::optional<uint64_t> peak_event;
    if (device->figures.peak_bytes != 0) peak_event = device->own_peak_event;
    auto told = std::make_shared<SnapshotDevice>(
        is_whole ? replay_device(history, i, start, peak_event,
                                 {.timeline_buckets = options.timeline_buckets})
                 : describe_device(history, i, peak_event));
    if (options.depth != AnalysisDepth::kPeak && !device->categories.is_known) {
      device->categories = categories_of_trace(history, i, start, peak_event,
                                               device->figures.peak_bytes, index, options.keeper);
    }
    if (is_whole) add_snapshot_findings(*told, index, &analysis->findings);
    const Device& memory = tables.devices[index];
    tell_wall_clock(tables.processes[memory.process].realtime_offset_ns / 1000, told.get());
    device->figures.peak_event = device->own_peak_event;
    // It tells while its lock is held: in the order in which it happened.
    device->most_held_bytes = device->figures.peak_bytes;
    device->snapshot = std::move(told);
  });
}

/// What lies beside a recording, and what of it could not be read.
struct Beside {
  std::vector<ProcessHolders> holders;
  std::vector<RecordedSamples> samples;
  std::vector<TruthOfProcess> truths;
  std::vector<HostRoom> rooms;
  ProgramEnds ends;
  std::vector<std::string> problems;
  std::string unread;

  void read(const Input& input, const Tables& tables, const ProgramEnds* known_ends) {
    const std::vector<std::string> paths = input.paths();
    ends = known_ends ? *known_ends : read_program_ends(paths);
    if (!input.is_anonymous()) holders = read_holders(paths, &problems);  // have names
    for (const std::string& problem : problems) unread += (unread.empty() ? "" : "; ") + problem;
    samples = read_samples(paths, &problems);
    // With --anonymize host names differ, so no sample matches a process.
    truths = device_truths(samples, tables.processes, &problems);
    rooms = host_rooms(samples);
    if (input.is_anonymous()) take_names_away(&ends);
  }
  void add_to(const Input& input, const Tables& tables, Analysis* analysis) {
    const DeviceAnalysis* main = main_device(*analysis, tables);
    const bool has_peak = main != nullptr && main->figures.peak_bytes != 0;
    analysis->machine =
        device_use(samples, has_peak ? std::optional(main->figures.peak_time_ns) : std::nullopt);
    if (analysis->machine) {
      for (std::string& left_out : analysis->machine->left_out)
        problems.push_back(std::move(left_out));
    }
    analysis->host = host_memories(samples, tables, analysis->driver.get(), &holders,
                                   input.is_anonymous());
    if (analysis->host) {
      for (const std::string& left_out : analysis->host->left_out) problems.push_back(left_out);
      for (Finding& finding : host_findings(*analysis->host, ends, swing_of_tensors(*analysis, tables)))
        analysis->findings.push_back(std::move(finding));
      for (const HostRun& run : analysis->host->runs) {
        if (auto grown = unrecorded_growth(run, *analysis, tables))
          analysis->findings.push_back(std::move(*grown));
      }
    }
    for (Finding& finding : checkpoint_staging(*analysis, tables))
      analysis->findings.push_back(std::move(finding));
    add_program_ends(std::move(ends), tables, analysis);
    // One rank of several may be all that there is.
    analysis->ranks =
        find_ranks(*analysis, tables, analysis->job_sums ? *analysis->job_sums : JobSums{},
                   !input.is_anonymous());
    analysis->unread_holders = std::move(unread);
    for (std::string& problem : problems) {
      // Names of files have those of hosts in them.
      if (input.is_anonymous()) problem = "reason withheld: it may contain names";
      analysis->loss.reasons.push_back({0, std::move(problem)});
    }
  }
};

/// Reads again where it has to: without a history that turned out not to be whole; with what rules
/// say, where the program did not tell everything.
Result<Analysis> analyze_recording(Input& input, AnalysisOptions options, Beside* beside,
                                   std::unique_ptr<EventSource>* read) {
  std::map<uint16_t, std::vector<RuledBlock>> rules;
  bool has_asked = options.depth == AnalysisDepth::kPeak;
  for (;;) {
    auto source = input.followed_events(FollowedSource::Sizes::kRequested);
    if (!source) return std::unexpected(source.error());
    if (beside && !options.truths) {
      beside->read(input, (*source)->tables(), options.ends);
      options.holders = &beside->holders, options.truths = &beside->truths;
      options.host_rooms = &beside->rooms;
      options.ends = &beside->ends;
    }
    if (options.keeper) options.keeper->begin((*source)->state_before_first_event());
    const FollowedPass pass{.source = source->get(), .rules = std::move(rules)};
    rules.clear();
    auto analysis = analyze_source(**source, options, &pass);
    if (!analysis) return analysis;
    Histories histories = (*source)->finish();
    if (beside) {
      for (AllocatorSnapshot& history : histories) take_reserve_limits(beside->ends, &history);
    }
    if (!(*source)->broken().empty()) {
      input.leave_alone((*source)->broken());
      continue;
    }
    const Tables& tables = (*source)->tables();
    if (!has_asked && !histories.empty() && asks_for_rules(histories, tables, &*analysis)) {
      has_asked = true;
      rules = rules_of(histories, tables);
      if (decides_any(rules)) continue;
    }
    fill_followed(histories, tables, options, &*analysis);
    *read = std::move(*source);
    return analysis;
  }
}

/// A recording has the text of the settings alone; what it says stands beside it in a snapshot.
void fill_settings(AllocatorSnapshot* snapshot) {
  RecordedSettings& settings = snapshot->settings;
  const std::vector<Release> releases = releases_for_hint(snapshot->info.writer_version_hint);
  const AllocatorConfig config = recorded_config(settings, releases.back());
  if (config.max_split_size_bytes != kUnlimited) {
    settings.max_split_size_bytes = static_cast<int64_t>(config.max_split_size_bytes);
  }
  settings.garbage_collection_threshold = config.garbage_collection_threshold;
  settings.expandable_segments = config.expandable_segments;
  for (size_t i = 0; i < config.roundup_divisions.size(); ++i) {
    settings.roundup_power2_divisions.emplace_back(uint64_t{1} << i, config.roundup_divisions[i]);
  }
}

/// Patterns and scores, where all events have times; then what several processes do alike.
void add_shape(const Tables& tables, const AnalysisOptions& options, Analysis* analysis) {
  bool has_times = analysis->source.can.times, has_history = true;
  if (!analysis->devices.empty() && analysis->devices[0].snapshot) {
    has_times = true, has_history = analysis->events_read != 0;
    for (const DeviceAnalysis& device : analysis->devices) {
      const SnapshotDevice* told = device.snapshot.get();
      if (told) has_times &= told->has_times || !told->has_history;
    }
  }
  if (!has_history) {
    analysis->score.reason = "no history was recorded, only what was live at the end";
  } else if (has_times) {
    add_patterns(tables, options.capacity_bytes, analysis);
  } else {
    analysis->score.reason = "the events have no times";
  }
  fold_memories(tables, &analysis->findings);
  fold_processes(tables, options.host_rooms, &analysis->findings);
}

/// A snapshot that tells of a refused request was taken of a program that ran out: as with a run
/// that died, how its memory went until then is no merit. A recording tells how the program ended.
/// Of a snapshot that contradicts itself nothing is known.
void take_score_of_snapshot(Analysis* analysis) {
  for (DeviceAnalysis& device : analysis->devices) {
    const SnapshotDevice* told = device.snapshot.get();
    if (!told) continue;
    if (told->is_replayed && told->has_history && !told->is_consistent) {
      analysis->score = device.score = {.reason =
                                            "the events and the segments contradict each other"};
    } else if (!told->ooms.empty()) {
      analysis->score = device.score = {.reason = "the allocator refused a request"};
    }
  }
}

}  // namespace

Result<Analyzed> analyze(Input& input, AnalysisOptions options) {
  Analyzed out;
  Result<Analysis> analysis;
  const bool is_whole = options.depth == AnalysisDepth::kWhole;
  out.snapshot_ = input.snapshot();
  options.find_leaks = is_whole && !out.snapshot_;
  if (out.snapshot_) {
    analysis = analyze_snapshot(*out.snapshot_, {.timeline_buckets = options.timeline_buckets,
                                                 .replays = is_whole,
                                                 .moments = options.moments,
                                                 .keeper = options.keeper,
                                                 .on_progress = options.on_progress});
    if (!analysis) return std::unexpected(analysis.error());
    if (is_whole) {
      add_shape(out.tables(), options, &*analysis);
      take_score_of_snapshot(&*analysis);
    }
  } else if (input.kind() != InputKind::kRecording) {
    auto source = input.events();
    if (!source) return std::unexpected(source.error());
    if (options.keeper) options.keeper->begin((*source)->state_before_first_event());
    analysis = analyze_source(**source, options);
    if (!analysis) return std::unexpected(analysis.error());
    if (auto pool = is_whole ? pool_of(**source) : nullptr) add_pool(std::move(pool), &*analysis);
    if (is_whole) add_shape((*source)->tables(), options, &*analysis);
    out.source_ = std::move(*source);
  } else {
    Beside beside;
    analysis = analyze_recording(input, options, is_whole ? &beside : nullptr, &out.source_);
    if (!analysis) return std::unexpected(analysis.error());
    if (is_whole) {
      options.host_rooms = &beside.rooms;
      add_shape(out.tables(), options, &*analysis);
      beside.add_to(input, out.tables(), &*analysis);
      add_double_weights(&*analysis);
      add_nccl_communicators(out.tables(), &*analysis);
    } else if (options.ends) {
      add_program_ends(*options.ends, out.tables(), &*analysis);
    }
  }
  sort_findings(&analysis->findings);
  out.analysis = std::move(*analysis);
  return out;
}

Result<std::shared_ptr<const AllocatorSnapshot>> allocator_history(Input& input) {
  if (input.snapshot()) return input.snapshot();
  auto source = input.recorded_events();
  if (!source) return std::unexpected(source.error());
  auto snapshot = read_allocator_history(**source);
  if (!snapshot) return std::unexpected(snapshot.error());
  take_reserve_limits(read_program_ends(input.paths()), &*snapshot);
  fill_settings(&*snapshot);
  return std::make_shared<const AllocatorSnapshot>(std::move(*snapshot));
}

}  // namespace gpumemprof
