// What /proc says about processes. Everything here may vanish between two calls; then there is
// nothing to answer, which is no error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpumemprof {

/// A PID alone may come back; with its start time it names a process for good (until the next
/// boot).
struct ProcessId {
  int pid = 0;
  uint64_t start_ticks = 0;
  bool operator==(const ProcessId&) const = default;
};

struct ProcessStat {
  ProcessId id;
  int parent = 0;
  char state = '?';
  uint64_t virtual_bytes = 0;
};

/// Parses /proc/PID/stat. The name in it may hold spaces, parentheses and line ends.
std::optional<ProcessStat> parse_stat(std::string_view text);

/// All processes that `proc` ("/proc") shows.
std::vector<ProcessStat> list_processes(const std::string& proc);

/// False where the process has ended, or gives back its memory on its way there.
bool still_lives(const std::string& proc, const ProcessId& id);

/// What of our concern a process has mapped.
struct Mappings {
  bool readable = false;  ///< false: another user's, or gone
  bool torch = false;     ///< PyTorch's libraries or its Python module, or TensorFlow's
  bool probe = false;
  std::string c10;               ///< path of the library that has PyTorch's allocator
  bool other_framework = false;  ///< TensorFlow's or JAX's libraries
  bool gpu = false;              ///< a GPU's driver, or a run time that needs one
};
Mappings read_mappings(const std::string& proc, int pid);
/// Takes one line of /proc/PID/maps into account.
void note_mapping(std::string_view line, Mappings* mappings);

/// Whether a process has the device of a GPU's driver open; false where that may not be seen.
bool has_gpu_open(const std::string& proc, int pid);

/// argv separated by spaces, cut at 1 KiB; empty where it cannot be read.
std::string command_line(const std::string& proc, int pid);

/// Whether a process was started with exactly this entry, "NAME=VALUE", in its environment; false
/// where it cannot be read.
bool has_in_environment(const std::string& proc, int pid, const std::string& entry);

/// The PID that the process itself sees (it may live in its own PID namespace).
int innermost_pid(const std::string& proc, int pid);

/// What keeps a process from making a file in the recording's folder, as far as /proc tells: another
/// user, another root, its own limits. A sentence without a full stop; empty where nothing is seen.
std::string why_it_cannot_record(const std::string& proc, int pid, const std::string& folder);

}  // namespace gpumemprof
