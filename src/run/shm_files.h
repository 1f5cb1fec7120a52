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

/// Of those in /dev/shm now what was not there `before` and what no process has mapped or open, as
/// far as /proc shows. `pids`: of the run. Looks again for up to a second while `is_any_alive`():
/// Python's resource tracker and PyTorch's manager remove files after their program's end.
std::vector<ShmFile> left_in_shm(const std::vector<ShmFile>& before, const std::vector<int>& pids,
                                 const std::function<bool()>& is_any_alive,
                                 const std::string& root = "");

}  // namespace gpumemprof
