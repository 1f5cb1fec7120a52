// The arena (format/arena.h) from outside: what recorded processes keep there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "format/arena.h"

namespace gpumemprof {

/// A piece of a file that lies in the arena now.
struct ArenaPiece {
  uint64_t file_offset = 0, length = 0;
  uint64_t offset = 0;  ///< of its first byte in the arena
};

/// An open arena. What stands in it is written by recorded programs, so nothing of it is believed
/// before it was checked. Thread-safe but for what the caller does with the bytes.
class Arena {
 public:
  /// That of a file, if its holders live and may be asked. Opened once for all files of a run.
  static std::shared_ptr<Arena> of(const format::ArenaHolder& holder);
  /// A new one. Errors: kSystem, where the system has no such memory or RLIMIT_FSIZE forbids it.
  static Result<std::shared_ptr<Arena>> make();
  ~Arena();
  Arena(const Arena&) = delete;

  int fd() const { return fd_; }
  uint64_t id() const { return id_; }
  /// The first pages, shared with every recorded process; may be changed atomically.
  format::ArenaHeader* header() const { return header_; }

  /// True where all of the bytes could be read.
  bool read_at(uint64_t offset, void* data, size_t size) const;
  /// A process's place, null where there is none at that offset.
  std::optional<format::ArenaPlace> process_at(uint64_t offset) const;
  /// Its stages, at most as many as a process can have, in the order of their place in the file.
  std::vector<ArenaPiece> stages_of(const format::ArenaPlace& process) const;
  /// Where of a process the file has everything: what is in the arena counts no more.
  bool is_final(uint64_t offset) const;
  void set_final(uint64_t offset);
  /// Gives the memory of a piece, and of the page before it, back.
  void give_back(const ArenaPiece& piece);
  /// Adds to 8 aligned bytes of a page, atomically with those who map it. The value before.
  Result<uint64_t> add_at(uint64_t offset, uint64_t amount);

 private:
  Arena(int fd, format::ArenaHeader* header) : fd_(fd), header_(header) {}
  std::optional<format::ArenaPlace> place_at(uint64_t offset) const;

  int fd_;
  uint64_t id_ = 0, bytes_ = 0;
  format::ArenaHeader* header_;
};

}  // namespace gpumemprof
