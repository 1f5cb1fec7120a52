#include "cli/input.h"

#include <unistd.h>

#include <filesystem>

#include "analysis/recording_history.h"
#include "cli/progress.h"
#include "readers/foreign_file.h"
#include "readers/torch_snapshot/read.h"
#include "recording/open.h"
#include "recording/seal.h"
#include "trace/snapshot_source.h"

namespace gpumemprof {
namespace {

bool can_be_sealed(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error) || access(folder.c_str(), W_OK | X_OK) != 0)
    return false;
  bool any = false;
  for (auto it = std::filesystem::directory_iterator(folder, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::string path = it->path().string();
    if (!path.ends_with(".gmp")) continue;
    if (access(path.c_str(), W_OK) != 0 || writer_is_alive(path)) return false;
    any = true;
  }
  return any && !error;
}

Result<AllocatorSnapshot> read_snapshot(const std::string& path) {
  Progress progress("reading");
  return read_torch_snapshot(path, {.on_progress = [&](double done) { progress.update(done); }});
}

Result<std::unique_ptr<EventSource>> open_snapshot(const std::string& path) {
  auto snapshot = read_snapshot(path);
  if (!snapshot) return std::unexpected(snapshot.error());
  return std::make_unique<SnapshotSource>(
      std::make_shared<const AllocatorSnapshot>(std::move(*snapshot)));
}

}  // namespace

Result<std::unique_ptr<EventSource>> open_input(const std::vector<std::string>& paths, bool seal) {
  for (const std::string& path : paths) {
    if (!is_torch_snapshot(path)) continue;
    if (paths.size() == 1) return open_snapshot(path);
    return fail(ErrorCode::kUsage,
                path + ": is a snapshot of PyTorch's memory, which is read alone");
  }
  for (const std::string& path : paths) {
    const char* kind = foreign_file_kind(path);
    if (kind == nullptr) continue;
    if (paths.size() == 1) return open_foreign_file(path);
    return fail(ErrorCode::kUsage, path + ": is " + kind + ", which is read alone");
  }
  for (const std::string& path : paths) {
    if (seal && can_be_sealed(path)) (void)FolderSealer(path, {}).finish();
  }
  return open_recording(paths);
}

Result<AllocatorSnapshot> open_allocator_history(const std::vector<std::string>& paths, bool seal) {
  if (paths.size() == 1 && is_torch_snapshot(paths[0])) return read_snapshot(paths[0]);
  auto source = open_input(paths, seal);
  if (!source) return std::unexpected(source.error());
  return recorded_snapshot(**source);
}

std::string working_folder() {
  std::error_code error;
  std::string path = std::filesystem::current_path(error).string();
  return error ? std::string() : path;
}

}  // namespace gpumemprof
