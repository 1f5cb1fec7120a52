// One .gmp file as a reader sees it: its process, its lanes, its losses.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/file_pool.h"
#include "recording/lane.h"
#include "recording/missing_events.h"
#include "recording/module_names.h"
#include "recording/raw_file.h"
#include "recording/recording_file.h"
#include "recording/sealed_file.h"
#include "trace/event_source.h"
#include "trace/live_state.h"

namespace gpumemprof {

/// Not thread-safe; `tables` must outlive it, and it must outlive its lanes.
class RecordedProcess {
 public:
  /// Adds the process to `tables`. A sealer is kept off the file for the life of the object.
  /// Errors: those of open_recording. The file belongs to `pool`, which must outlive it. `is_new`
  /// is called before anything is added: a copy of a file beside its original would count twice.
  static Result<std::unique_ptr<RecordedProcess>> open(
      const std::string& path, FilePool* pool, Tables* tables,
      const std::function<bool(const format::FileHeader&)>& is_new);

  const format::FileHeader& header() const { return page_.header; }
  uint64_t bytes() const { return bytes_; }
  /// Wall clock minus monotonic clock of the machine that wrote it.
  int64_t realtime_offset_ns() const;
  /// Which monotonic clock wrote it: the machine's boot and, where that is known, its time namespace.
  std::string clock() const;
  uint32_t process() const { return process_; }
  /// Marks at the ends of collectives, on the file's own clock: reads all marks.
  void each_collective(const std::function<void(const Mark&)>& take);
  /// `shift_ns` is added to every time. `decodes_ahead`: with a thread a lane.
  void add_lanes(Merger* merger, uint64_t shift_ns, bool decodes_ahead);
  /// All marks of modules in the file, with the same shift: a first pass, because modules are named
  /// after they were called.
  void add_module_names(ModuleNames* names, uint64_t shift_ns);
  /// If events were dropped on purpose: adds the state before the first remaining one to `state`.
  /// Otherwise false.
  bool add_state_before(LiveState* state, ModuleNames* names, Loss* loss);
  /// Call after the lanes were read.
  void add_losses(Loss* loss) const;

 private:
  RecordedProcess() = default;
  void describe(Process* process) const;

  std::unique_ptr<RecordingFile> file_;
  uint64_t bytes_ = 0;
  FirstPage page_;
  Tables* tables_ = nullptr;
  uint32_t process_ = 0;
  std::unique_ptr<RawFile> raw_;
  std::unique_ptr<SealedFile> sealed_;
};

}  // namespace gpumemprof
