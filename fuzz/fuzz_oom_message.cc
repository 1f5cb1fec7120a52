// A log with out-of-memory messages: in one piece and in small ones it must say the same, and every
// verdict must be one that its own ranges allow.
#include <stdint.h>
#include <stdlib.h>

#include <string_view>

#include "analysis/oom_message/oom_verdict.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  OomScanner whole, pieces;
  whole.feed(text);
  for (size_t at = 0; at < size; at += 61) pieces.feed(text.substr(at, 61));
  const OomLog log = whole.finish(), same = pieces.finish();
  if (log.messages.size() != same.messages.size() || log.more_messages != same.more_messages) {
    abort();
  }
  for (size_t i = 0; i < log.messages.size(); ++i) {
    const OomMessage& message = log.messages[i];
    if (message.offset != same.messages[i].offset || message.offset >= size) abort();
    for (const OomFigure& figure : oom_figures(message)) {
      if (figure.size.least_bytes > figure.size.most_bytes) abort();
    }
    const OomVerdict verdict = explain_oom(message, log.expandable_segments_on);
    if (verdict.summary.empty() || verdict.advice.empty()) abort();
    if (verdict.usable_bytes && verdict.usable_bytes->least > verdict.usable_bytes->most) abort();
    if (verdict.shortage_bytes && verdict.cause != OomCause::kWantOfMemory &&
        verdict.cause != OomCause::kOwnLimit) {
      abort();
    }
  }
  return 0;
}
