// The payload of a kMarks chunk: what was said between the events of a kSealedEvents chunk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "trace/event.h"

namespace gpumemprof {

/// Header flag of a kMarks chunk: it holds what still holds at the event with its number, for
/// readers that have lost the marks before (--max-disk), and is not part of the history.
inline constexpr uint16_t kStandingMarks = 1;

/// So many marks of one chunk are read.
inline constexpr size_t kMostMarks = 1u << 22;

/// The marks of a batch, which may be without events. The time of a saved tensor is not kept: there
/// are about as many as allocations, and where among the events they stand says as much.
std::string encode_marks(const EventBatch& batch);
/// Adds them to the batch that they were of, ordered by event. Errors: kBadInput.
Status parse_marks(std::string_view payload, EventBatch* batch);
/// Of a payload whose events are not at hand: its marks of kind `kind`, with addresses that were
/// not told by an event. Errors: kBadInput.
Result<std::vector<Mark>> parse_marks_alone(std::string_view payload, MarkKind kind);

}  // namespace gpumemprof
