// The folder of a recording, before the program starts.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// "gpumemprof-train-20240131-235959-1234": after the script where the command is an interpreter
/// with one, else after the command. Only letters, digits, '.', '_' and '-' of the name are kept.
std::string default_folder_name(const std::vector<std::string>& command, int64_t unix_seconds,
                                int pid);

/// Makes the folder (0700, parents as mkdir -p), or accepts one that is empty or already a
/// recording: several ranks may share one. The answer is its absolute path. Errors: kUsage with one
/// line where it is a file, holds something else or cannot be made.
Result<std::string> prepare_folder(const std::string& folder);

/// True where the folder holds a meta.json or .gmp file. Errors: kNotFound where it is no folder.
Result<bool> is_recording_folder(const std::string& folder);

/// Names of what runs wrote into the folder: recordings, their meta.json, samples and holders, the
/// dumps of out-of-memory errors.
std::vector<std::string> files_of_recording(const std::string& folder);

/// Names of the meta.json and meta.PID.json in a folder.
std::vector<std::string> meta_files(const std::string& folder);

/// Names of the .gmp files in a folder; empty where it cannot be read.
std::vector<std::string> recorded_files(const std::string& folder);

/// "PID.STARTTICKS" of the process whose file HOST.PID.STARTTICKS[.N].gmp is: a host's name may hold
/// dots and numbers, so the last two parts may be it, and the two before the last.
std::vector<std::string> processes_named_by(std::string_view file);

/// Names of what processes that ran out of memory left in the folder's "oom_dumps", sorted.
std::vector<std::string> oom_bundles(const std::string& folder);

/// Names of the notes of exceptions that ended processes, sorted.
std::vector<std::string> uncaught_errors(const std::string& folder);

}  // namespace gpumemprof
