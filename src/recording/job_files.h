// Which of several files are not of the job that the others are of.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "trace/event_source.h"

namespace gpumemprof {

/// Ranks of different jobs cannot be read as one run: those of the job with the most ranks are, of
/// equals the one that began last. Answers the files of ranks of other jobs, and names them in
/// `loss`. What cannot be read, or has no rank, is not among them.
std::set<std::string> files_of_other_jobs(const std::vector<std::string>& files, Loss* loss);

/// The folders whose ranks are all of other jobs. `others`: what files_of_other_jobs() answered.
std::vector<std::string> folders_of_other_jobs(const std::vector<std::string>& files,
                                               const std::set<std::string>& others);

/// Whether any of the files is of a process that a launcher numbered.
bool has_ranks(const std::vector<std::string>& files);

}  // namespace gpumemprof
