#include "input/input.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/json_fields.h"
#include "readers/foreign_file.h"
#include "readers/torch_snapshot/read.h"
#include "recording/job_files.h"
#include "recording/open.h"
#include "recording/seal.h"
#include "trace/anonymous_snapshot.h"
#include "trace/anonymous_source.h"
#include "trace/snapshot_source.h"

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;

constexpr char kRecordingMagic[] = "\x89GMP";
constexpr size_t kMostManifestBytes = 16u << 20;

bool can_be_sealed(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error) || access(folder.c_str(), W_OK | X_OK) != 0) return false;
  bool any = false;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string path = it->path().string();
    if (!path.ends_with(".gmp")) continue;
    if (access(path.c_str(), W_OK) != 0 || writer_is_alive(path)) return false;
    any = true;
  }
  return any && !error;
}

/// What a bundle's folder holds of samples; empty where it is no bundle.
std::string samples_in(const std::string& folder) {
  std::error_code error;
  for (const char* name : {"telemetry_timeline.json", "events.json"}) {
    const fs::path path = fs::path(folder) / name;
    if (fs::is_regular_file(path, error)) return path.string();
  }
  return "";
}

/// One that has no samples of memory over time, which would tell more.
bool is_oom_dump(const std::string& folder) {
  const auto object = [&](const char* name) {
    return read_json_object(folder + '/' + name, kMostManifestBytes);
  };
  return field_of(object("manifest.json"), "bundle_name") &&
         number_field(object("metadata.json"), "captured_event_count") == uint64_t{0};
}

bool begins_as_recording(const std::string& path) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return false;
  char magic[sizeof kRecordingMagic - 1];
  auto got = (*file)->read_at(0, magic, sizeof magic);
  return got && *got == sizeof magic && memcmp(magic, kRecordingMagic, sizeof magic) == 0;
}

}  // namespace

std::vector<std::string> snapshots_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return out;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string path = it->path().string();
    if (path.ends_with(".gmp")) return {};
    if (it->is_regular_file(error) && is_torch_snapshot(path)) out.push_back(path);
  }
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> out = snapshots_in(path);
  std::error_code error;
  for (auto it = fs::directory_iterator(path, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (it->path().extension() == ".gmp") out.push_back(it->path().string());
  }
  std::ranges::sort(out);
  if (out.empty()) out.push_back(path);
  return out;
}

namespace {

/// "a.pickle, b.pickle or c.pickle"; of many the first ones.
std::string some_of(const std::vector<std::string>& paths) {
  constexpr size_t kMost = 8;
  const size_t shown = std::min(paths.size(), kMost);
  std::string out = paths[0];
  for (size_t i = 1; i < shown; ++i)
    out += (i + 1 == shown && shown == paths.size() ? " or " : ", ") + paths[i];
  return shown == paths.size() ? out : out + ", …";
}

/// A folder that has one snapshot and no recording stands for the snapshot.
std::string file_meant(const std::string& path) {
  const std::vector<std::string> snapshots = snapshots_in(path);
  return snapshots.size() == 1 ? snapshots[0] : path;
}

std::vector<std::string> recorded_files_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (it->path().extension() == ".gmp") out.push_back(it->path().string());
  }
  return out;
}

/// A folder of the folders that the hosts of a job recorded into, in place of which it stands. One
/// recording in it is meant as well.
Result<std::vector<std::string>> folders_meant(const std::string& path) {
  std::vector<std::string> below;
  std::error_code error;
  if (!fs::is_directory(path, error) || !recorded_files_in(path).empty()) return {{path}};
  bool are_ranks = true;
  for (auto it = fs::directory_iterator(path, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::error_code ignored;
    if (!it->is_directory(ignored)) continue;
    const std::vector<std::string> files = recorded_files_in(it->path().string());
    if (files.empty()) continue;
    below.push_back(it->path().string());
    are_ranks = are_ranks && has_ranks(files);
  }
  std::ranges::sort(below);
  if (below.empty()) return {{path}};
  if (below.size() == 1 || are_ranks) return below;
  return fail(ErrorCode::kUsage, path + ": holds " + std::to_string(below.size()) +
                                     " recordings that are not ranks of a job; give one: " +
                                     some_of(below));
}

InputKind kind_of_one(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    if (is_oom_dump(path)) return InputKind::kOomDump;
    if (!samples_in(path).empty()) return InputKind::kSamples;
    return snapshots_in(path).empty() ? InputKind::kRecording : InputKind::kSnapshot;
  }
  if (!fs::is_regular_file(path, error) || path.ends_with(".gmp") || begins_as_recording(path))
    return InputKind::kRecording;
  if (is_torch_snapshot(path)) return InputKind::kSnapshot;
  return foreign_file_kind(path) == nullptr ? InputKind::kSamples : InputKind::kForeign;
}

/// What of several paths is read alone, as an error has it; null: nothing.
const char* alone_kind(const std::string& path) {
  if (is_torch_snapshot(path)) return "a snapshot of PyTorch's memory";
  return foreign_file_kind(path);
}

}  // namespace

InputKind input_kind(const std::vector<std::string>& paths) {
  return paths.size() == 1 ? kind_of_one(paths[0]) : InputKind::kRecording;
}

Result<Input> open_input(const std::vector<std::string>& paths, const InputOptions& options) {
  Input input;
  input.paths_ = paths;
  input.kind_ = input_kind(paths);
  if (input.kind_ == InputKind::kSamples || input.kind_ == InputKind::kOomDump) return input;
  if (input.kind_ == InputKind::kSnapshot) {
    input.paths_[0] = file_meant(paths[0]);
    if (const auto several = snapshots_in(input.paths_[0]); !several.empty()) {
      return fail(ErrorCode::kUsage, paths[0] + ": holds " + std::to_string(several.size()) +
                                         " snapshots; give one: " + some_of(several));
    }
    auto snapshot = read_torch_snapshot(input.paths_[0], {.on_progress = options.on_progress});
    if (!snapshot) return std::unexpected(snapshot.error());
    input.read_snapshot_ = std::make_shared<AllocatorSnapshot>(std::move(*snapshot));
    input.snapshot_ = input.read_snapshot_;
    input.info_ = input.snapshot_->info;
    return input;
  }
  for (const std::string& path : paths) {
    const char* kind = paths.size() > 1 ? alone_kind(path) : nullptr;
    if (kind == nullptr) continue;
    return fail(ErrorCode::kUsage,
                path + ": is " + kind + ", which cannot be combined with others");
  }
  if (input.kind_ == InputKind::kRecording) {
    input.paths_.clear();
    for (const std::string& path : paths) {
      auto meant = folders_meant(path);
      if (!meant) return std::unexpected(meant.error());
      input.paths_.insert(input.paths_.end(), meant->begin(), meant->end());
    }
  }
  for (const std::string& path : input.paths_) {
    const bool is_recording = input.kind_ == InputKind::kRecording;
    if (options.seal && is_recording && can_be_sealed(path))
      (void)FolderSealer(path, {}).finish(options.on_progress);
  }
  auto first = input.recorded_events();
  if (!first) return std::unexpected(first.error());
  input.first_ = std::move(*first);
  input.info_ = input.first_->info();
  return input;
}

std::string samples_path(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) ? samples_in(path) : path;
}

Result<std::unique_ptr<EventSource>> Input::recorded_events() {
  if (first_) return std::move(first_);
  Result<std::unique_ptr<EventSource>> source;
  if (snapshot_) {
    source = std::make_unique<SnapshotSource>(snapshot_);
  } else {
    source = kind_ == InputKind::kForeign ? open_foreign_file(paths_[0]) : open_recording(paths_);
  }
  if (source && names_ && !snapshot_) source = std::make_unique<AnonymousSource>(std::move(*source), names_);
  return source;
}

Result<std::unique_ptr<FollowedSource>> Input::followed_events(FollowedSource::Sizes sizes) {
  auto source = recorded_events();
  if (!source) return std::unexpected(source.error());
  return std::make_unique<FollowedSource>(std::move(*source), sizes, left_alone_);
}

Result<std::unique_ptr<EventSource>> Input::events(FollowedSource::Sizes sizes) {
  if (kind_ != InputKind::kRecording) return recorded_events();
  auto source = followed_events(sizes);
  if (!source) return std::unexpected(source.error());
  return std::move(*source);
}

std::vector<std::string> Input::paths() const {
  std::vector<std::string> out = paths_;
  std::erase_if(out, [&](const std::string& path) {
    return std::ranges::find(info_.left_out_folders, path) != info_.left_out_folders.end();
  });
  return out;
}

Input Input::again() const {
  Input input;
  input.kind_ = kind_, input.paths_ = paths_, input.info_ = info_, input.names_ = names_;
  input.snapshot_ = snapshot_;
  return input;
}

void Input::leave_alone(const std::set<uint16_t>& devices) {
  left_alone_.insert(devices.begin(), devices.end());
}

void Input::anonymize(std::shared_ptr<Anonymizer> names) {
  names_ = std::move(names);
  if (read_snapshot_) {
    gpumemprof::anonymize(read_snapshot_.get(), names_);
    info_ = read_snapshot_->info;
  }
  if (first_) first_ = std::make_unique<AnonymousSource>(std::move(first_), names_);
}

}  // namespace gpumemprof
