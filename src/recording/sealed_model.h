// What encoder and decoder of a sealed chunk expect next. Both process the same events with the
// same tables, so an expected event costs a zero byte, and zstd reduces zeros to almost nothing.
//
// A training step allocates and frees in the same order every time, so a thread's last three
// actions predict its next one. An action is a token: {action, device, stack, size}. After a token
// of an allocation its address is expected where it was after the same token and the same previous
// address. A free is expected to end the block that is as many allocations old as the one freed in
// the same situation before.
//
// Predictions may depend only on the events so far: a difference between the two sides would be an
// invented event. Every table is bounded; a chunk has at most kMostSealedEvents events.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "trace/event.h"

namespace gpumemprof::sealed {

inline constexpr uint32_t kTableBits = 14;
inline constexpr uint32_t kTableSize = 1u << kTableBits;

/// The encoding of an event's token: bits 0 and 1 of its flag byte.
enum TokenCode : uint8_t { kTokenByThree = 0, kTokenByOne = 1, kTokenById = 2, kTokenNew = 3 };

/// The encoding of its address: bits 2 to 4.
enum PlaceCode : uint8_t {
  // of an allocation
  kPlaceAgain = 0,      ///< where it was after the same token and previous address
  kPlaceJustFreed = 1,  ///< the block of this size that was freed last
  kPlaceOfToken = 2,    ///< where this token's last allocation was
  // of a free
  kBlockExpected = 0,     ///< as old as the block freed in this situation before
  kBlockSameAddress = 1,  ///< at the same address as in this situation before
  kBlockByAge = 2,        ///< a block of this thread, by how many allocations ago
  kBlockOfThread = 3,     ///< the same of another thread
  // of any other event
  kNoAddress = 0,
  // of any
  kExplicit = 7
};

/// The encoding of a free's size: bits 5 and 6.
enum SizeCode : uint8_t { kSizeAsBefore = 0, kSizeZero = 1, kSizeOfBlock = 2, kSizeExplicit = 3 };

/// Bit 7: whether totals follow, unlike last time for this {action, device}.
inline constexpr uint8_t kTotalsFlipped = 0x80;

struct Token {
  uint16_t device;
  Action action;
  uint32_t stack;
  uint64_t size_bytes;
  uint64_t last_address;
};

struct Block {
  uint64_t address;
  uint32_t token;
};

struct ThreadModel {
  uint32_t history[3] = {};
  uint64_t last_address = 0;
  std::vector<Block> blocks;  ///< all allocations of this thread in the chunk
};

inline uint32_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ b * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
  return static_cast<uint32_t>(x >> (64 - kTableBits));
}

/// The state of one device or kind of event, carried from event to event.
struct OpModel {
  bool has_totals = false;
  SizeCode free_size = kSizeZero;
};
struct TotalsModel {
  uint64_t allocated = 0, reserved = 0;
};

struct Model {
  std::vector<Token> tokens;
  std::vector<ThreadModel> threads;
  uint32_t by_three[kTableSize];
  uint32_t by_one[kTableSize];
  uint32_t age[kTableSize];
  uint32_t step[kTableSize];  ///< time since the event before, in this situation
  uint64_t again[kTableSize];
  uint64_t freed_address[kTableSize];  ///< in this situation
  uint64_t just_freed[kTableSize];     ///< by size
  std::vector<OpModel> ops;            ///< by action * 65,536 + device, grown as needed
  std::vector<TotalsModel> totals;     ///< by device

  void reset() {
    tokens.assign(1, Token{});
    threads.clear();
    memset(by_three, 0, sizeof(by_three)), memset(by_one, 0, sizeof(by_one));
    memset(age, 0, sizeof(age)), memset(step, 0, sizeof(step)), memset(again, 0, sizeof(again));
    memset(freed_address, 0, sizeof(freed_address)), memset(just_freed, 0, sizeof(just_freed));
    ops.clear(), totals.clear();
  }
};

/// The state of a thread: computed once per event, before its token is known.
struct Situation {
  uint32_t three, one;
  explicit Situation(const ThreadModel& t)
      : three(mix(t.history[0] | uint64_t{t.history[1]} << 32, t.history[2] + 1)),
        one(mix(t.history[0], 7)) {}
};

inline void remember_token(Model* m, const Situation& s, uint32_t token) {
  m->by_three[s.three] = token;
  m->by_one[s.one] = token;
}
inline void push_history(ThreadModel* t, uint32_t what) {
  t->history[2] = t->history[1], t->history[1] = t->history[0], t->history[0] = what;
}
inline void remember_alloc(Model* m, ThreadModel* t, uint32_t token, uint32_t key,
                           uint64_t address) {
  m->again[key] = address;
  m->tokens[token].last_address = address;
  t->last_address = address;
  t->blocks.push_back({address, token});
  push_history(t, token << 1);
}
/// `age` is 0 if the block is not one of this thread's in this chunk; `block_token` is 0 if it is
/// in no chunk.
inline void remember_free(Model* m, ThreadModel* t, uint32_t token, uint32_t key, uint64_t address,
                          uint32_t age, uint32_t block_token) {
  if (age != 0) m->age[key] = age;
  m->freed_address[key] = address;
  if (block_token != 0) m->just_freed[mix(m->tokens[block_token].size_bytes, 3)] = address;
  push_history(t, (block_token != 0 ? block_token : token) << 1 | 1);
}
/// The expected time since the previous event: as in the same situation before, smoothed.
inline uint32_t expected_step(const Model& m, uint32_t key) { return m.step[key] >> 4; }
inline void remember_step(Model* m, uint32_t key, uint64_t step) {
  constexpr uint64_t kMost = (uint64_t{1} << 27) - 1;
  uint32_t now = static_cast<uint32_t>(step < kMost ? step : kMost) << 4;
  uint32_t& known = m->step[key];
  known = known == 0 ? now : known - known / 4 + now / 4;
}
inline OpModel& op_model(Model* m, Action action, uint16_t device) {
  size_t index = static_cast<size_t>(device) * 16 + static_cast<size_t>(action);
  if (index >= m->ops.size()) m->ops.resize(index + 1);
  return m->ops[index];
}
inline TotalsModel& totals_model(Model* m, uint16_t device) {
  if (device >= m->totals.size()) m->totals.resize(device + size_t{1});
  return m->totals[device];
}
/// The running totals expected after an event.
inline uint64_t expected_allocated(const TotalsModel& t, Action action, uint64_t size) {
  if (action == Action::kAlloc) return t.allocated + size;
  return is_free(action) ? t.allocated - size : t.allocated;
}

/// The columns of a chunk, in the order in which they are stored.
enum Column : uint32_t {
  kThreads = 0,   // byte an event: 0 the same as before, else 1 + index of a thread; 255: number in
                  // kNumbers
  kFlags = 1,     // byte an event
  kStepLow = 2,   // byte an event: lowest byte of the zigzag of step - expected step
  kStepHigh = 3,  // byte an event: the next; 255: the rest in kNumbers
  kTokens = 4,    // varints: known tokens and the fields of new ones
  kAddresses = 5,     // varints
  kAges = 6,          // varints
  kTotalsColumn = 7,  // a code byte, then varints
  kNumbers = 8,       // varints that do not fit elsewhere
  kColumns = 9
};

}  // namespace gpumemprof::sealed
