// Sentences about how the recorded program ended, refused requests and findings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/finding.h"
#include "analysis/replay/snapshot_device.h"
#include "report/document.h"

namespace gpumemprof {

/// The first lines of a report on a program that did not end well, printable; else none: of a
/// refused request also why, and what would have fitted, where `analysis` knows it (may be null).
/// Paths of code below `working_folder` are shown relative to it.
std::vector<Sentence> end_sentences(const ProgramEnds& ends, const Analysis* analysis,
                                    std::string_view working_folder);

/// The same of all processes, the cause first: how the ranks of a job ended is told once, and no error
/// that a launcher or another rank raised then as the cause.
std::vector<Sentence> job_end_sentences(const Analysis& analysis, std::string_view working_folder);

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

// Requests that an allocator refused and that did not end the program, in the words of every
// report.

/// Of a device those refusals that no dump of an uncaught error tells of, in their order.
std::vector<Refusal> caught_refusals(const Analysis& analysis, const DeviceAnalysis& device);

/// It allocated afterwards, or its run ended with 0. False as well where neither is known.
bool went_on_after(const Refusal& refusal, const Analysis& analysis, const Tables& tables,
                   const DeviceAnalysis& device);

/// "The CPU allocator refused 1.00 PiB at train.py:3 <module>; the program went on." One
/// sentence a device. What a replayed history explains is not among them.
std::vector<std::string> caught_refusal_sentences(const Analysis& analysis, const Tables& tables,
                                                  std::string_view working_folder);

// Details of findings, in words.

/// One line to hand on: "Leak: History.losses keeps 16.5 MiB more with every step (train.py:18).
/// Fix: …." Not yet safe to print.
std::string finding_sentence(const Finding& finding);

/// Details of a leak: rate, confidence, lines, holder, limit. Not yet safe to print.
std::vector<std::string> finding_details(const Finding& finding);

}  // namespace gpumemprof
