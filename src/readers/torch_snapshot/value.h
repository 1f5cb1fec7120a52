// What a value of the file is once it has been understood: sixteen bytes, no pointer.
#pragma once

#include <cstdint>

namespace gpumemprof::torch_snapshot {

/// The kinds up to kOpaque survive in a pickle's memo; the others are read once, where they stand.
enum class Kind : uint8_t {
  kUnset,      ///< no such memo entry
  kGone,       ///< was read before, and is not kept
  kText,       ///< Texts id
  kFrame,      ///< StackTable frame id
  kStack,      ///< a list of frames; StackTable id
  kPair,       ///< two integers; index of Builder's pairs
  kEmptyList,  ///< may still be filled
  kEmptyDict,  ///< may still be filled
  kOpaque,     ///< of no interest: unknown containers, bytes, text that is too long to be a name

  kNone,
  kBool,
  kInteger,   ///< int64_t
  kUnsigned,  ///< uint64_t of 2^63 and above
  kHuge,      ///< an integer that fits neither
  kReal,      ///< double

  kEvent,       ///< index of Builder's events, which are consumed by the list around them
  kTrace,       ///< a list of events
  kTraces,      ///< a list of lists of events, one a device
  kBlock,       ///< consumed like an event
  kBlocks,      ///< a list of blocks
  kHistory,     ///< an entry of a block's history (torch 2.0)
  kHistories,   ///< a list of them; index of the first
  kSegment,     ///< consumed like an event
  kSegments,    ///< a list of segments
  kAnnotation,  ///< consumed like an event
  kAnnotations,
  kNumbers,   ///< a dictionary of text to integers
  kSettings,  ///< allocator_settings
  kSnapshot,  ///< the whole
  kWrong,     ///< index of a complaint: an error once somebody needs the value
};

struct Value {
  Kind kind = Kind::kUnset;
  uint32_t memo = 0;  ///< containers: 1 + the memo entry that must follow their changes
  uint64_t bits = 0;
};
static_assert(sizeof(Value) == 16);

// A memo entry: kind in the low 5 bits, one bit that says that a container has been referred to,
// 26 bits of payload.
inline constexpr uint32_t kKindBits = 5;
inline constexpr uint32_t kReferredBit = 1u << kKindBits;
inline constexpr uint32_t kPayloadShift = kKindBits + 1;
inline constexpr uint64_t kMostPayload = (uint64_t{1} << (32 - kPayloadShift)) - 1;

inline uint32_t pack(const Value& value) {
  if (value.kind > Kind::kOpaque) return static_cast<uint32_t>(Kind::kGone);
  return static_cast<uint32_t>(value.bits) << kPayloadShift | static_cast<uint32_t>(value.kind);
}
inline Kind packed_kind(uint32_t entry) {
  return static_cast<Kind>(entry & ((1u << kKindBits) - 1));
}
inline Value unpack(uint32_t entry) { return {packed_kind(entry), 0, entry >> kPayloadShift}; }

}  // namespace gpumemprof::torch_snapshot
