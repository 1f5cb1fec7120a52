// Who this process is, and the file that carries its name.
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
/// PID as that /proc shows it. 0 where /proc is missing; `pid` may be null.
uint64_t read_start_ticks(uint32_t* pid);

/// argv with spaces, ends with a zero; empty where /proc is missing.
void read_command(char* out, size_t size);

/// The inode of this process's PID namespace, 0 where /proc does not tell.
uint64_t pid_namespace();

/// Puts the CRC in, after the last change.
void seal_header(format::FileHeader* header);

}  // namespace gpumemprof::probe
