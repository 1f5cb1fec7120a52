// A process that does nothing but hold the arena, so that what recorded programs have in it outlives
// a `run` that was killed. It sleeps until `run` is gone.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "recording/arena.h"

namespace gpumemprof {

/// `run`'s end of it. Where `run` dies without a word the keeper writes what is in the arena to the
/// files, for as long as recorded processes live, and ends; where `run` ends by itself it ends at
/// once, unless processes still record.
class Keeper {
 public:
  /// Forks it, so call this before any thread is made. Errors: kSystem.
  static Result<Keeper> start(std::shared_ptr<Arena> arena, const std::string& folder,
                              const std::string& meta_path);
  Keeper(Keeper&& other) noexcept;
  Keeper& operator=(Keeper&&) = delete;
  ~Keeper();

  pid_t pid() const { return pid_; }
  /// The program, which may begin to record at any time while it lives.
  void watch(pid_t program);
  /// `run` has done everything: the keeper's part begins only if processes still record. Returns
  /// when it has ended where it is not needed.
  void release(bool is_needed);

 private:
  Keeper(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  pid_t pid_;
  int socket_;
};

}  // namespace gpumemprof
