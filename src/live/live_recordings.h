// The processes of this user that are being recorded now.
#pragma once

#include <string>
#include <vector>

#include "run/processes.h"

namespace gpumemprof {

struct LiveRecording {
  ProcessId id;
  std::string command;  ///< argv with spaces, cut at 1 KiB
  std::string folder;   ///< of the recording
  std::string file;     ///< its .gmp; empty where the process has had no event yet
};

/// Processes with their own growing .gmp file, by PID. Other users' processes cannot be inspected
/// and are left out. `proc` is "/proc". `waiting`, where it is given, gets of each run in which no
/// process has allocated anything yet the first process; its `file` is empty.
std::vector<LiveRecording> list_live_recordings(const std::string& proc = "/proc",
                                                std::vector<LiveRecording>* waiting = nullptr);

/// "no allocation yet", as every command says of those.
inline constexpr const char* kNoAllocationYet = "no allocation yet";

/// The recording of one process; its `folder` is empty if the process is not recorded.
LiveRecording find_live_recording(const std::string& proc, const ProcessId& id);

}  // namespace gpumemprof
