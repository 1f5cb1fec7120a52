// The keeper of an arena writes its content to the files, so that a file alone is at most one round
// old, and complete once its process is gone.
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
#include "recording/writer_state.h"

namespace gpumemprof {

/// Not thread-safe. Only one mirror may work on an arena at a time.
class ArenaMirror {
 public:
  /// Writes all of the bytes, or returns errno.
  using Write = std::function<int(int fd, uint64_t offset, const void* data, size_t size)>;
  /// `folder`: of the recording; only files in it are used. `write`: replaced in tests.
  ArenaMirror(std::shared_ptr<Arena> arena, std::string folder, Write write = write_at);
  static int write_at(int fd, uint64_t offset, const void* data, size_t size);
  ~ArenaMirror();
  ArenaMirror(const ArenaMirror&) = delete;

  /// One round over all processes. Records are written before the word that counts them, and that
  /// only if the half was not emptied meanwhile, so a file never counts a record that it lacks,
  /// whenever this process dies. What cannot be written for a process that is gone, or not yet
  /// because somebody seals its file, is tried again in the next round. `give_up`: what cannot be
  /// written counts as lost.
  void round(bool give_up = false);

  /// Before the arena is left: no process lists itself in it from here on. False where one lives in
  /// it, or its file lacks something: then it is as before.
  bool leave();

  /// The processes that lived at the last round, with a file or without one.
  size_t alive() const { return alive_; }
  /// The processes that are gone and whose files lack something.
  size_t waiting() const { return waiting_; }
  /// Those of them whose files somebody seals.
  size_t being_sealed() const { return being_sealed_; }
  /// Names of the files that were written to.
  const std::set<std::string>& files() const { return files_; }
  /// Processes without a file.
  UnrecordedProcesses& unrecorded() { return unrecorded_; }
  const UnrecordedProcesses& unrecorded() const { return unrecorded_; }
  /// The processes whose file does not count what it lacks, because it could no longer be written.
  const std::vector<UnrecordedProcess>& given_up() const { return given_up_; }

 private:
  /// The part of a stage that the file has.
  struct Written {
    bool any = false;
    format::StageControl control{};
  };
  struct Process {
    ProcessHere here;
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
  bool is_open_ = true;
  std::map<uint64_t, Process> processes_;  // by the offset of their place
  std::set<std::string> files_;
  size_t alive_ = 0, waiting_ = 0, being_sealed_ = 0, open_files_ = 0;
  UnrecordedProcesses unrecorded_;
  std::vector<UnrecordedProcess> given_up_;
};

}  // namespace gpumemprof
