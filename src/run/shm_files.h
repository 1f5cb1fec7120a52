// Files in /dev/shm: what a run leaves there keeps its memory until somebody removes it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gpumemprof {

struct ShmFile {
  std::string name;
  uint64_t bytes = 0;  ///< of memory, which may be less than its length
  uint64_t inode = 0;
  bool is_own = false;  ///< its name has the PID of a process of the run, as PyTorch's have
};

/// The regular files of this user in `root`/dev/shm itself, in the order of their names; the first
/// 10,000.
std::vector<ShmFile> shm_files(const std::string& root = "");

/// The processes of a run that outlive its program.
enum class Others : uint8_t { kNone, kAtRest, kAtWork };

/// Of those in /dev/shm now what was not there `before` and what no process has mapped or open, as
/// far as /proc shows. `pids`: of the run. Python's resource tracker and PyTorch's manager remove
/// files after their program's end, so it looks again while `others()` are there: for a second, in
/// which the time that they are at work does not count (a busy machine lets them wait), and for ten
/// seconds at most.
std::vector<ShmFile> left_in_shm(const std::vector<ShmFile>& before, const std::vector<int>& pids,
                                 const std::function<Others()>& others,
                                 const std::string& root = "");

}  // namespace gpumemprof
