// The identity of this process, and the file named after it.
#pragma once

#include <stddef.h>

#include "format/format.h"

namespace gpumemprof::probe {

/// Creates FOLDER/HOST.PID.STARTTICKS[.N].gmp with O_EXCL, mode 0600 (N counts the programs that
/// the process became by exec), and fills `header` with the identity of the process. The open
/// descriptor, its path in `path`; or negative errno.
long create_recording_file(const char* folder, format::FileHeader* header, char* path,
                           size_t path_size);

/// Field 22 of /proc/self/stat: starttime in clock ticks since boot (man 5 proc), and field 1, the
/// PID as that /proc shows it. 0 if /proc is missing; `pid` may be null.
uint64_t read_start_ticks(uint32_t* pid);

/// argv separated by spaces, zero-terminated; empty if /proc is missing.
void read_command(char* out, size_t size);

/// The inode of this process's PID namespace, 0 if /proc does not show it.
uint64_t pid_namespace();
/// The same of its time namespace, which has a monotonic clock of its own.
uint64_t time_namespace();

/// Sets the CRC, after the last change.
void seal_header(format::FileHeader* header);

}  // namespace gpumemprof::probe
