// Whatever the user named, opened: the only place that looks at what a file is.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "recording/followed_source.h"
#include "trace/allocator_trace.h"
#include "trace/anonymizer.h"
#include "trace/event_source.h"

namespace gpumemprof {

enum class InputKind : uint8_t {
  kRecording,  ///< recordings: folders or .gmp files; several are read as one
  kSnapshot,   ///< of PyTorch's memory
  kForeign,    ///< events of another program's: readers/foreign_file.h
  kOomDump,    ///< what an out-of-memory error left
  kSamples,    ///< of track, monitor, diagnose or a tracker in Python
};

/// What the one path, or the several, are by their content. What cannot be read is a recording
/// where it is named like one, or is one of several, else samples: their readers say what is wrong.
InputKind input_kind(const std::vector<std::string>& paths);

/// The snapshots of PyTorch in a folder that has no recording, sorted; empty elsewhere.
std::vector<std::string> snapshots_in(const std::string& folder);

/// The file of a path that is kSamples: itself, or one in the folder.
std::string samples_path(const std::string& path);

/// What of a path can be read alone: the recordings of a folder, or its snapshots, each sorted; else
/// the path itself.
std::vector<std::string> parts_of(const std::string& path);

struct InputOptions {
  /// Folders whose writers are gone are sealed first, where they can be written: that this fails is
  /// no error, unsealed recordings read as well, only slower.
  bool seal = false;
  std::function<void(double)> on_progress;  ///< of reading a snapshot or sealing, 0 to 1; may be empty
};

/// Not thread-safe.
class Input {
 public:
  InputKind kind() const { return kind_; }
  /// What was opened, without the folders that hold only another job's recordings.
  std::vector<std::string> paths() const;
  const SourceInfo& info() const { return info_; }

  /// Of a snapshot; else null.
  const std::shared_ptr<const AllocatorSnapshot>& snapshot() const { return snapshot_; }

  /// All events once more. Followed allocators tell their own, but for those of leave_alone().
  /// Errors: those of the reader; kUsage for samples and dumps.
  Result<std::unique_ptr<EventSource>> events(
      FollowedSource::Sizes sizes = FollowedSource::Sizes::kRequested);
  /// The same as it was recorded, whoever followed whom.
  Result<std::unique_ptr<EventSource>> recorded_events();
  /// The same as events() of a recording.
  Result<std::unique_ptr<FollowedSource>> followed_events(FollowedSource::Sizes sizes);
  /// Devices of a recording whose allocator's history is not whole.
  void leave_alone(const std::set<uint16_t>& devices);

  /// The same, opened anew; a snapshot is shared.
  Input again() const;

  /// From here on names are replaced; several inputs may share theirs. Call it before anything else
  /// is read: a snapshot is changed in place.
  void anonymize(std::shared_ptr<Anonymizer> names);
  bool is_anonymous() const { return names_ != nullptr; }

 private:
  friend Result<Input> open_input(const std::vector<std::string>& paths,
                                  const InputOptions& options);

  InputKind kind_ = InputKind::kRecording;
  std::vector<std::string> paths_;
  std::shared_ptr<AllocatorSnapshot> read_snapshot_;  // as opening made it, to be anonymized
  std::shared_ptr<const AllocatorSnapshot> snapshot_;
  std::shared_ptr<Anonymizer> names_;
  std::unique_ptr<EventSource> first_;  // what opening has opened already
  SourceInfo info_;
  std::set<uint16_t> left_alone_;
};

/// Errors: those of the readers; kUsage where something is among several that is read alone.
/// Samples and dumps are not read yet.
Result<Input> open_input(const std::vector<std::string>& paths, const InputOptions& options = {});

}  // namespace gpumemprof
