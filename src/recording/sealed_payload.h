// The payloads of sealed chunks other than events: definitions, accounts, checkpoints, footer.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "format/format.h"
#include "recording/process_entries.h"
#include "recording/raw_stream.h"
#include "trace/event.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Header flag of a kCheckpoint: the events before it were dropped on purpose (--max-disk).
inline constexpr uint16_t kEventsBeforeDropped = 1;
/// Of a kSealedDefinitions: all definitions until then, also where parts of others are left.
inline constexpr uint16_t kAllDefinitions = 1;

inline constexpr int kZstdLevel = 3;

/// Whether chunks of this type are written by a sealer.
inline bool is_sealed(uint16_t type) {
  return type == format::kSealedEvents || type == format::kSealedDefinitions ||
         type == format::kSealedDeviceNames || type == format::kSealedRequested ||
         type == format::kSealedAllocators || type == format::kSealedDetails ||
         type == format::kSealedSteps || type == format::kMarks || type == format::kCheckpoint ||
         type == format::kFooter;
}

using ConsumedTable = std::map<uint32_t, Intervals>;

void put_consumed(std::string* out, const ConsumedTable& table);
/// Adds to `table`. Returns the number of bytes read, or kBadInput.
Result<size_t> parse_consumed(std::string_view bytes, ConsumedTable* table);

/// How much of a sealer's tables is already in sealed chunks.
struct DefinedSoFar {
  uint32_t strings = 1, frames = 1, stacks = 1, threads = 0, devices = 0;
  bool operator==(const DefinedSoFar&) const = default;
};

/// The stream of a thread in Tables, so that its sealed and raw parts are one thread.
using StreamThreads = absl::flat_hash_map<uint32_t, uint32_t>;

/// The payload that defines what `tables` has beyond `from`; empty if there is nothing. `from` is
/// advanced.
std::string encode_definitions(const Tables& tables, const StreamThreads& streams,
                               DefinedSoFar* from);

/// The payload with the names of the devices of `tables` from number `first` on; empty if none has
/// a name. It is written before the definitions, so that a sealer that dies in between leaves no
/// device without its name.
std::string encode_device_names(const Tables& tables, uint32_t first);

/// The requested sizes of a batch, without those equal to the sizes.
std::string encode_requested(const EventBatch& batch);
/// Adds them to their batch. Errors: kBadInput.
Status parse_requested(std::string_view payload, EventBatch* batch);

/// The details of a batch.
std::string encode_details(const EventBatch& batch);
/// Adds them to their batch. Errors: kBadInput.
Status parse_details(std::string_view payload, EventBatch* batch);

/// The steps of a batch, written where a thread's step changes.
std::string encode_steps(const EventBatch& batch);
/// Sets them in their batch. Errors: kBadInput.
Status parse_steps(std::string_view payload, EventBatch* batch);

/// All facts about the allocators of a file's one process; empty if there are none. A later payload
/// adds to an earlier one (add_allocator).
std::string encode_allocators(const Tables& tables);
/// Errors: kBadInput.
Status parse_allocators(std::string_view payload, uint32_t process, ProcessEntries* entries);

struct FileIds;
/// Keeps the names until their devices are defined. Errors: kBadInput.
Status parse_device_names(std::string_view payload, FileIds* ids);
/// Adds a payload's definitions to `tables` and to `ids`. Errors: kBadInput.
Status parse_definitions(std::string_view payload, uint32_t process, Tables* tables, FileIds* ids);

/// What the raw part of a file had lost when it was sealed; the rest no longer shows it.
struct SealedAway {
  uint64_t damaged_records = 0;
  uint64_t damaged_bytes = 0;
  uint64_t missing_events = 0;  ///< from minor 1 on, as the next
  uint64_t is_open_ended = 0;   ///< 1: more of them, and nobody knows how many
};

struct Footer {
  format::FileHeader header;
  format::FileState state;
  uint64_t events;
  SealedAway lost;
  bool tells_missing = false;  ///< `lost` has missing_events: written by minor 1 or later
};
std::string encode_footer(const Footer& footer);
Result<Footer> parse_footer(std::string_view payload);

/// zstd with its length in front. `limit` bounds the decompressed size. Errors: kBadInput.
void put_compressed(std::string* out, std::string_view bytes);
Result<std::string> parse_compressed(std::string_view bytes, size_t limit);

}  // namespace gpumemprof
