// Which processes of this user are being recorded right now.
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

/// Processes that have a growing .gmp file of their own, by PID. Those of other users cannot
/// be seen into and are left out. `proc` is "/proc".
std::vector<LiveRecording> list_live_recordings(const std::string& proc = "/proc");

/// The recording of one process; its `folder` is empty where the process is not recorded.
LiveRecording find_live_recording(const std::string& proc, const ProcessId& id);

}  // namespace gpumemprof
