#include "recording/open.h"

#include <absl/container/flat_hash_map.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/error_text.h"
#include "base/folder.h"
#include "recording/clock_alignment.h"
#include "recording/folders.h"
#include "recording/job_files.h"
#include "recording/lane.h"
#include "recording/losses.h"
#include "recording/module_names.h"
#include "recording/operation_lines.h"
#include "recording/recorded_process.h"
#include "trace/live_state.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostRecordings = 100'000;

struct Paths {
  std::vector<std::string> files;
  std::vector<std::string> folders;
};

Status add_folder(const std::string& folder, Paths* paths) {
  size_t before = paths->files.size();
  const bool is_read = each_name(folder, [&](std::string_view name) {
    if (name.ends_with(".gmp")) paths->files.push_back((folder + '/').append(name));
  });
  if (!is_read) return fail(unreadable_code(errno), folder + ": " + strerror(errno));
  paths->folders.push_back(folder);
  if (paths->files.size() > kMostRecordings)
    return fail(ErrorCode::kBadInput, folder + ": too many files");
  if (paths->files.size() > before) return {};
  if (has_unended_run(folder))
    return fail(ErrorCode::kNotFound,
                folder + ": no event yet: its program runs, or was killed, and has allocated nothing");
  if (!has_run(folder))
    return fail(ErrorCode::kNotFound,
                folder + ": holds no recording (.gmp file) and no snapshot: give the folder of a "
                         "recording, or a snapshot");
  const std::string why = why_nothing_is_here(folder);
  return fail(ErrorCode::kNotFound,
              folder + ": nothing was recorded here" + (why.empty() ? "" : ": " + why));
}

Result<Paths> list_files(const std::vector<std::string>& given) {
  Paths paths;
  for (std::string path : given) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    struct stat st;
    if (stat(path.c_str(), &st) != 0) {
      return fail(unreadable_code(errno), path + ": " + strerror(errno));
    }
    if (S_ISDIR(st.st_mode)) {
      if (auto done = add_folder(path, &paths); !done) return std::unexpected(done.error());
    } else {
      paths.files.push_back(path);
    }
  }
  if (paths.files.empty()) return fail(ErrorCode::kUsage, "no recording was given");
  std::sort(paths.files.begin(), paths.files.end());
  paths.files.erase(std::unique(paths.files.begin(), paths.files.end()), paths.files.end());
  return paths;
}

class Recording final : public EventSource {
 public:
  const SourceInfo& info() const override { return info_; }
  const Tables& tables() const override { return tables_; }
  const Loss& loss() const override { return loss_; }
  const LiveState* state_before_first_event() const override { return state_before_.get(); }
  double progress() const override {
    return info_.bytes == 0
               ? 1
               : std::min(1.0, static_cast<double>(merger_.bytes_read()) / info_.bytes);
  }

  Status open(const std::vector<std::string>& given) {
    auto paths = list_files(given);
    if (!paths) return std::unexpected(paths.error());
    folders_ = std::move(paths->folders);
    info_.path = given[0];
    const std::set<std::string> others = files_of_other_jobs(paths->files, &loss_);
    info_.left_out_folders = folders_of_other_jobs(paths->files, others);
    std::erase_if(folders_, [&](const std::string& folder) {
      return std::ranges::find(info_.left_out_folders, folder) != info_.left_out_folders.end();
    });
    for (const std::string& path : paths->files) {
      if (others.contains(path)) continue;
      if (auto done = add_file(path, paths->files.size() == 1); !done) return done;
    }
    if (files_.empty()) return std::unexpected(*first_error_);
    for (const std::string& folder : folders_of(paths->files)) operation_lines_.load_folder(folder, &loss_);
    keep_innermost_ranks();
    put_on_one_clock();
    read_state_before();
    info_.can.times = info_.can.addresses = info_.can.threads = true;
    info_.can.complete_history = state_before_ == nullptr;
    return {};
  }

  Result<bool> next(EventBatch* batch) override {
    if (merger_.next(batch)) {
      batch->first_event = next_event_;
      next_event_ += batch->size();
      if (!operation_lines_.is_idle(tables_)) operation_lines_.apply(batch, &tables_);
      module_names_.apply(batch, &tables_);
      return true;
    }
    if (!ended_) finish();
    return false;
  }

 private:
  /// Among several files one that is no recording is stated as lost; alone it is the error.
  Status add_file(const std::string& path, bool only_one) {
    bool is_copy = false;
    const auto is_new = [&](const format::FileHeader& header) {
      is_copy = !recording_ids_.insert(header.recording_id).second;
      return !is_copy;
    };
    auto file = RecordedProcess::open(path, &pool_, &tables_, is_new);
    if (!file) {
      if (only_one) return std::unexpected(file.error());
      if (!first_error_) first_error_ = file.error();
      Loss unread;
      unread.add(is_copy ? 0 : LossReason::kUncounted, 0, text_of(file.error()));
      add_loss(unread);
      return {};
    }
    const auto& header = (*file)->header();
    info_.bytes += (*file)->bytes();
    info_.can.stacks |= header.stack_mode != format::kStacksNone;
    files_.push_back(std::move(*file));
    return {};
  }

  /// Where launchers start each other, as Slurm's tasks torchrun, only the innermost numbers ranks.
  void keep_innermost_ranks() {
    Launcher innermost = Launcher::kNone;
    for (const Process& one : tables_.processes) {
      const Launcher its = one.place.launcher;
      if (its == Launcher::kNone) continue;
      innermost = innermost == Launcher::kNone ? its : std::min(innermost, its);
    }
    for (Process& one : tables_.processes) {
      if (one.place.launcher == innermost || one.place.launcher == Launcher::kNone) continue;
      one.rank.reset(), one.place = {};
    }
  }

  /// Monotonic clocks count from a machine's boot. Files of one clock share it; others are moved
  /// onto the clock of the machine that was booted first, so that no time is negative.
  void put_on_one_clock() {
    std::map<std::string, size_t> numbers;
    std::vector<ClockSamples> samples;
    for (const auto& file : files_) {
      const auto [at, is_new] = numbers.try_emplace(file->clock(), samples.size());
      if (is_new) samples.push_back({.wall_offset_ns = file->realtime_offset_ns()});
      tables_.processes[file->process()].clock = static_cast<uint32_t>(at->second);
    }
    note_other_clocks(samples);
    for (const auto& file : files_) {
      if (samples.size() < 2) break;
      ClockSamples& of_clock = samples[clock_of(*file)];
      file->each_collective([&](const Mark& mark) { of_clock.take(mark); });
    }
    tables_.clocks = align_clocks(samples);
    const auto by_wall = std::ranges::count(
        tables_.clocks, MachineClock::Aligned::kWallClock, &MachineClock::by);
    if (by_wall > 0) {
      loss_.add(0, 0,
                std::to_string(by_wall + 1) +
                    " clocks were aligned by wall-clock time; times of different machines are only "
                    "as exact as those clocks");
    }
    constexpr size_t kFewFiles = 4;  // whose lanes may have threads
    for (const auto& file : files_) {
      const auto shift = static_cast<uint64_t>(tables_.clocks[clock_of(*file)].shift_ns);
      file->add_lanes(&merger_, shift, files_.size() <= kFewFiles);
      file->add_module_names(&module_names_, shift);
    }
    for (const std::string& folder : folders_) add_ends_seen(folder, &tables_);
  }
  uint32_t clock_of(const RecordedProcess& file) const {
    return tables_.processes[file.process()].clock;
  }

  /// A process in a time namespace counts its monotonic time from elsewhere, which old files do not
  /// tell but the wall clock gives away; so does one that was set meanwhile, or a machine that
  /// slept. Nothing tells which.
  void note_other_clocks(const std::vector<ClockSamples>& clocks) {
    constexpr uint64_t kLeastNs = 1'000'000'000;
    uint64_t files = 0, most_ns = 0;
    for (const auto& file : files_) {
      const int64_t own = file->realtime_offset_ns();
      const int64_t first = clocks[clock_of(*file)].wall_offset_ns;
      const uint64_t by = own < first ? static_cast<uint64_t>(first) - static_cast<uint64_t>(own)
                                      : static_cast<uint64_t>(own) - static_cast<uint64_t>(first);
      if (by < kLeastNs) continue;
      ++files, most_ns = std::max(most_ns, by);
    }
    if (files == 0) return;
    loss_.add(
        0, 0,
        std::to_string(files) + (files == 1 ? " process" : " processes") +
            " have a start clock that differs by up to " + std::to_string(most_ns / kLeastNs) +
            " s from another process on the same machine: a time namespace, a changed wall clock, "
            "or a suspended machine; in the first case their times are off by as much");
  }

  void read_state_before() {
    auto state = std::make_unique<LiveState>();
    bool any = false;
    for (const auto& file : files_)
      any |= file->add_state_before(state.get(), &module_names_, &loss_);
    if (!any) return;
    next_event_ = state->event_count();
    state_before_ = std::move(state);
  }

  /// As Loss::add() tells two reasons apart.
  using Kind = std::pair<std::string, bool>;
  static Kind kind_of(const LossReason& why) {
    return {why.reason, why.events == LossReason::kUncounted};
  }

  /// O(reasons of `part`): with thousands of damaged files there are very many.
  void add_loss(const Loss& part) {
    for (; placed_ < loss_.reasons.size(); ++placed_)
      places_.try_emplace(kind_of(loss_.reasons[placed_]), placed_);
    loss_.events += part.events, loss_.bytes += part.bytes;
    for (const LossReason& one : part.reasons) {
      const auto [place, is_new] = places_.try_emplace(kind_of(one), loss_.reasons.size());
      if (is_new) {
        loss_.reasons.push_back(one);
      } else if (one.events != LossReason::kUncounted) {
        loss_.reasons[place->second].events += one.events;
      }
    }
    placed_ = loss_.reasons.size();
  }

  void finish() {
    ended_ = true;
    for (const auto& file : files_) {
      Loss of_file;
      file->add_losses(&of_file);
      add_loss(of_file);
    }
    operation_lines_.tell_losses(tables_, &loss_);
    for (const std::string& folder : folders_) add_unrecorded_processes(folder, &loss_);
    if (merger_.clamped() > 0) {
      loss_.add(
          0, 0,
          std::to_string(merger_.clamped()) + " events have a time outside their chunk's range");
    }
  }

  SourceInfo info_;
  Tables tables_;
  Loss loss_;
  absl::flat_hash_map<Kind, size_t> places_;  // in loss_.reasons, of the first placed_
  size_t placed_ = 0;
  std::vector<std::string> folders_;
  std::optional<Error> first_error_;
  std::set<uint64_t> recording_ids_;
  FilePool pool_;  // before files_, whose files are its own
  std::vector<std::unique_ptr<RecordedProcess>> files_;
  Merger merger_;  // after files_: its lanes point into them
  OperationLines operation_lines_;
  ModuleNames module_names_;
  std::unique_ptr<LiveState> state_before_;
  uint64_t next_event_ = 0;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<EventSource>> open_recording(const std::vector<std::string>& paths) {
  auto recording = std::make_unique<Recording>();
  if (auto done = recording->open(paths); !done) return std::unexpected(done.error());
  return recording;
}

}  // namespace gpumemprof
