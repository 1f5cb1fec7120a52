// Sentences about how the recorded program ended.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/pass/program_end.h"
#include "report/document.h"

namespace gpumemprof {

/// The first lines of a report on a program that did not end well, printable; else none. Paths of
/// code below `working_folder` are shown relative to it.
std::vector<std::string> end_sentences(const ProgramEnds& ends, std::string_view working_folder);

/// "Out of memory: 128 MiB were refused at train.py:13 <module>, with 1.75 GiB live on cpu."
std::string refusal_sentence(const RefusedRequest& refused, std::string_view working_folder);

/// The request that a dump of an out-of-memory error is of, and what held the memory then, by line
/// of code, largest first; `most` lines.
Document describe_refusal(const RefusedRequest& refused, std::string_view working_folder,
                          size_t most);

}  // namespace gpumemprof
