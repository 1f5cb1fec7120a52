// The payload of a kMarks chunk: the marks between the events of a kSealedEvents chunk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "trace/event.h"

namespace gpumemprof {

/// Header flag of a kMarks chunk: it has the marks that still apply at the event with its number,
/// for readers without the earlier marks (--max-disk), and is not part of the history.
inline constexpr uint16_t kStandingMarks = 1;

/// At most this many marks of one chunk are read.
inline constexpr size_t kMostMarks = 1u << 22;

/// The marks of a batch, which may be without events. The time of a saved tensor is not stored:
/// there are about as many as allocations, and their position among the events is enough.
std::string encode_marks(const EventBatch& batch);
/// Adds them to their batch, ordered by event. Errors: kBadInput.
Status parse_marks(std::string_view payload, EventBatch* batch);
/// Without the events: the payload's marks of kind `kind`, except for addresses that only the
/// events have. Errors: kBadInput.
Result<std::vector<Mark>> parse_marks_alone(std::string_view payload, MarkKind kind);

}  // namespace gpumemprof
