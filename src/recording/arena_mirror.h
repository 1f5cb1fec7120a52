// Whoever keeps an arena writes what is in it to the files, so that a file alone is at most one
// round old, and whole once its process is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "recording/arena.h"
#include "recording/unrecorded.h"

namespace gpumemprof {

/// Not thread-safe. At any time one mirror alone may work on an arena.
class ArenaMirror {
 public:
  /// Writes all of the bytes, or answers errno.
  using Write = std::function<int(int fd, uint64_t offset, const void* data, size_t size)>;
  /// `folder`: of the recording; files are looked for there alone. `write`: tests have others.
  ArenaMirror(std::shared_ptr<Arena> arena, std::string folder, Write write = write_at);
  static int write_at(int fd, uint64_t offset, const void* data, size_t size);
  ~ArenaMirror();
  ArenaMirror(const ArenaMirror&) = delete;

  /// One look at all processes. Of each the records are written before the word that counts them,
  /// and that only where the half was not emptied meanwhile: so a file never counts a record that
  /// it does not hold, whenever this process dies. What cannot be written of a process that is gone
  /// is tried again in the next round; with `give_up` it is counted as lost.
  void round(bool give_up = false);

  /// Processes that lived at the last round, with a file or without one.
  size_t alive() const { return alive_; }
  /// Processes that are gone and whose files lack something.
  size_t waiting() const { return waiting_; }
  /// Names of the files that were written to.
  const std::set<std::string>& files() const { return files_; }
  /// Processes without a file.
  UnrecordedProcesses& unrecorded() { return unrecorded_; }
  const UnrecordedProcesses& unrecorded() const { return unrecorded_; }
  /// Processes with a file that does not count what it lacks, as it could not be written any more.
  const std::vector<UnrecordedProcess>& given_up() const { return given_up_; }

 private:
  /// What of a stage the file has.
  struct Written {
    bool any = false;
    format::StageControl control{};
  };
  struct Process {
    uint64_t start_ticks = 0;  // as /proc says here: the process may have a clock of its own
    bool is_gone = false;
    int fd = -1;  // of its file
    uint64_t file_bytes = 0;
    std::string last_page;
    std::map<uint64_t, Written> stages;  // by file offset
  };

  void take_new();
  bool open_its_file(Process* process, const format::ArenaPlace& place);
  void close_file(Process* process);
  int write(Process* process, uint64_t offset, const format::ArenaPlace& place, bool give_up);
  int write_stage(int fd, const ArenaPiece& stage, bool again, Written* written, uint64_t* left);
  void tell_given_up(const Process& process, const std::string& page, int error);
  void forget(uint64_t offset, Process* process);

  std::shared_ptr<Arena> arena_;
  std::string folder_;
  Write write_;
  std::map<uint64_t, Process> processes_;  // by the offset of their place
  std::set<std::string> files_;
  size_t alive_ = 0, waiting_ = 0, open_files_ = 0;
  UnrecordedProcesses unrecorded_;
  std::vector<UnrecordedProcess> given_up_;
};

}  // namespace gpumemprof
