// Traces that tests write event by event.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "estimate/step_trace.h"

namespace gpumemprof {

/// The trace of these lines, each ended by a newline, at a batch.
inline StepTrace trace_of(const std::string& lines, uint64_t batch = 2, bool benchmark = false) {
  size_t events = 0, begin = 0;
  while (begin < lines.size()) {
    events += lines[begin] != 's';
    begin = lines.find('\n', begin) + 1;
  }
  const std::string facts = "{\"batch\":" + std::to_string(batch) +
                            ",\"cudnn_benchmark\":" + (benchmark ? "true" : "false") + "}\n";
  auto trace = parse_step_trace("gpumemprof-estimate 1\n" + facts + lines + "e " +
                                std::to_string(events) + "\n");
  EXPECT_TRUE(trace) << trace.error().message;
  return trace ? *trace : StepTrace{};
}

}  // namespace gpumemprof
