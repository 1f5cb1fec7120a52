// The work beside the running program, in a thread of the parent that only takes CPU time nobody
// wants.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "recording/seal.h"
#include "run/device_sampler.h"
#include "run/watcher.h"

namespace gpumemprof {

/// Seals about twice a second and looks for unrecorded processes about once a second. A thread, so
/// that the main one passes signals on at once, and so that the low priority ends with the program:
/// a process without privileges cannot raise its own again. `sealer` and `watcher` belong to the
/// thread until stop() has returned.
///
/// `keep_up` where a limit on the disk depends on the sealing (--max-disk): a thread that only
/// takes idle time gets none from a training run that uses every core, and then the limit is
/// reached with everything still raw.
class Housekeeper {
 public:
  /// `processes` is told of those that each look finds.
  Housekeeper(FolderSealer* sealer, DescendantWatcher* watcher, WatchedProcesses* processes,
              bool keep_up);
  ~Housekeeper() { stop(); }
  void stop();

 private:
  void work();

  FolderSealer* sealer_;
  DescendantWatcher* watcher_;
  WatchedProcesses* processes_;
  const bool keep_up_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  int thread_id_ = 0;
  std::thread thread_;  // last: it uses the others
};

}  // namespace gpumemprof
