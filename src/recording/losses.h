// What a file's writer counted as lost, in plain words.
#pragma once

#include <string>

#include "format/format.h"
#include "trace/event_source.h"

namespace gpumemprof {

/// Adds FileState.lost to `loss`. Events that only lack their stack are not lost events.
void add_writer_losses(const format::FileState& state, Loss* loss);

/// Tables::Process::stacks: "python", "both", "none: unsupported Python version", …
std::string describe_stacks(const format::FileHeader& header, const format::FileState& state);
/// "3.11.2", empty where there was no interpreter.
std::string describe_python(const format::FileState& state);

/// Adds what `run` could not record: "not_recorded" of the meta*.json files of a folder. A file
/// that is not JSON, or larger than 16 MiB, adds one reason that says so; a missing file adds none.
void add_unrecorded_processes(const std::string& folder, Loss* loss);

/// Gives the processes of the tables that did not exit by themselves, and that `run` saw end, the
/// time of that: "end_time_ns" of the meta*.json files of a folder, each on its process's clock.
void add_ends_seen(const std::string& folder, Tables* tables);

/// Of a folder without events: what `run` said of it ("nothing_recorded"), else of the first process
/// that could not be recorded; empty where nobody noted anything.
std::string why_nothing_is_here(const std::string& folder);

/// Whether a `run` into the folder has not noted its program's end: it runs, or was killed.
bool has_unended_run(const std::string& folder);
/// A run was recorded into the folder, ended or not, whatever it left.
bool has_run(const std::string& folder);

}  // namespace gpumemprof
