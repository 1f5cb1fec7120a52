// Sentences about how the recorded program ended.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/replay/snapshot_device.h"
#include "report/document.h"

namespace gpumemprof {

/// The first lines of a report on a program that did not end well, printable; else none: of a
/// refused request also why, and what would have fitted, where `analysis` knows it (may be null).
/// Paths of code below `working_folder` are shown relative to it.
std::vector<Sentence> end_sentences(const ProgramEnds& ends, const Analysis* analysis,
                                    std::string_view working_folder);

/// "Out of memory: 128 MiB were refused at train.py:13 <module>, with 1.75 GiB live on cpu.", and
/// why, where that is known. What was live is that of the moment, else of just after it.
/// `explained` may be null.
std::string refusal_sentence(const RefusedRequest& refused, const OomExplanation* explained,
                             std::string_view working_folder);

/// The same of a refusal of which no dump tells.
std::string refusal_sentence(const OomExplanation& oom, const SnapshotDevice& device,
                             std::string_view device_name, std::string_view place);

/// The request that a dump of an out-of-memory error is of, and what held the memory then, by line
/// of code, largest first; `most` lines.
Document describe_refusal(const RefusedRequest& refused, std::string_view working_folder,
                          size_t most);

}  // namespace gpumemprof
