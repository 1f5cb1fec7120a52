// The arena (format/arena.h) as seen from outside: what recorded processes keep in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "format/arena.h"

namespace gpumemprof {

/// A piece of a file that is in the arena now.
struct ArenaPiece {
  uint64_t file_offset = 0, length = 0;
  uint64_t offset = 0;  ///< of its first byte in the arena
};

/// An open arena. Recorded programs write to it, so everything is checked before use. Thread-safe
/// except for what the caller does with the bytes.
class Arena {
 public:
  /// The arena of a file, if its holders live and can be accessed. Opened once for all files of a
  /// run.
  static std::shared_ptr<Arena> of(const format::ArenaHolder& holder);
  /// A new one. Errors: kSystem, if the system has no such memory or RLIMIT_FSIZE forbids it.
  static Result<std::shared_ptr<Arena>> make();
  ~Arena();
  Arena(const Arena&) = delete;

  int fd() const { return fd_; }
  uint64_t id() const { return id_; }
  /// The first pages, shared with every recorded process; may be changed atomically.
  format::ArenaHeader* header() const { return header_; }

  /// True if all bytes could be read.
  bool read_at(uint64_t offset, void* data, size_t size) const;
  /// A process's place; null if there is none at that offset.
  std::optional<format::ArenaPlace> process_at(uint64_t offset) const;
  /// Its stages, at most as many as a process can have, in file order.
  std::vector<ArenaPiece> stages_of(const format::ArenaPlace& process) const;
  /// Marks that a process's file is complete, so that the arena no longer counts for it.
  bool is_final(uint64_t offset) const;
  void set_final(uint64_t offset);
  /// Whether processes may list themselves. Those that are listed stay so.
  void set_open(bool is_open);
  /// Frees the memory of a piece and of the page before it.
  void give_back(const ArenaPiece& piece);
  /// Atomically adds to 8 aligned bytes of a page; returns the previous value.
  Result<uint64_t> add_at(uint64_t offset, uint64_t amount);

 private:
  Arena(int fd, format::ArenaHeader* header) : fd_(fd), header_(header) {}
  std::optional<format::ArenaPlace> place_at(uint64_t offset) const;

  int fd_;
  uint64_t id_ = 0, bytes_ = 0;
  format::ArenaHeader* header_;
};

}  // namespace gpumemprof
