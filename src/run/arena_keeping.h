// The arena of one run: made before the program starts, mirrored while it runs, left in order.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "recording/arena_mirror.h"
#include "run/keeper.h"
#include "run/meta.h"

namespace gpumemprof {

/// Owns the arena, its keeper and the thread that mirrors it ten times a second. That thread has
/// normal priority: what it has not written is lost where a whole container is killed.
class ArenaKeeping {
 public:
  /// Call it before any thread is made. Errors: kSystem; the program is then recorded without.
  static Result<std::unique_ptr<ArenaKeeping>> start(const std::string& folder,
                                                     const std::string& meta_path);
  ~ArenaKeeping() { stop(); }

  /// What the probe is told.
  std::string address() const;
  /// The program runs.
  void begin(pid_t program);
  /// The program has ended: everything of processes that are gone goes into their files.
  void finish();
  /// After finish(): processes that lost events for want of a file, or of room in it.
  std::vector<NotRecorded> take_not_recorded();
  bool counts(int pid) const { return mirror_.unrecorded().pids().contains(pid); }
  /// Names of the files that its processes write.
  const std::set<std::string>& files() const { return mirror_.files(); }
  /// Nothing is sealed any more: what still records, or began to since finish(), is the keeper's.
  void release();

 private:
  ArenaKeeping(std::shared_ptr<Arena> arena, Keeper keeper, const std::string& folder)
      : arena_(std::move(arena)), keeper_(std::move(keeper)), mirror_(arena_, folder) {}
  void work();
  void stop();

  std::shared_ptr<Arena> arena_;
  Keeper keeper_;
  ArenaMirror mirror_;  // the thread's until stop()
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace gpumemprof
