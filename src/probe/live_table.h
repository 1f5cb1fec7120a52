// The blocks that are live: address -> (size, device, whose). It exists because free_cpu is told an
// address and no size.
//
//   level 0      64 Ki blocks   ┌────────┬────────┬────────┬─
//   level 1     256 Ki blocks   │ bucket │ bucket │   …       a bucket: 8 addresses in one cache
//   level 2       1 Mi blocks   └────────┴────────┴────────┴─  line, then what is known of each
//   …   level 7   1 Gi blocks
//
// An address has one bucket a level. A block goes into the first level whose bucket has room; where
// none has, the next level is mapped. So the table grows without moving anything, and a search
// touches one cache line a level: one for most programs, five at ten million blocks.
//
// There is no lock, so nothing that a fork, a signal handler or a stopped thread could leave held.
// None is needed: between an allocator's handing out an address and its being given back that
// address belongs to one caller, so no two threads ever put or take the same one at once; all that
// they race for is an empty place, which one compare-and-exchange decides.
//
// A forked child finds the levels mapped and, as the kernel empties them, without a block.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gpumemprof::probe {

struct Block {
  uint64_t size_bytes;
  uint32_t holder;  // whose it is (scopes.h); 0: nobody's
  uint32_t device;  // slot of the device (counters.h)
};

inline constexpr uint32_t kTableLevels = 8;
inline constexpr uint32_t kFirstLevelBits = 13;  // 8,192 buckets
inline constexpr uint32_t kLevelBits = 2;  // each level has four times as many as the one before
inline constexpr uint32_t kBucketBlocks = 8;

struct alignas(64) Bucket {
  uint64_t address[kBucketBlocks];  // 0: empty
  Block block[kBucketBlocks];
};

/// Zeroed memory, empty again in a forked child. Null if the system refuses, or after the program
/// has restricted its own system calls.
void* map_emptied_by_fork(size_t bytes);

/// Zero is an empty table; nothing is mapped before the first put().
class LiveTable {
 public:
  enum Outcome { kPut, kReplaced, kNoMemory };

  /// Address 0 marks an empty place and is rejected as kNoMemory. kReplaced: the address was
  /// present, so its free was missed; `*old` is the old entry.
  Outcome put(uint64_t address, const Block& block, Block* old);

  /// False: not present. A found entry may be gone already if another thread takes it.
  bool find(uint64_t address, Block* out) const;

  /// False: not present.
  bool take(uint64_t address, Block* out);

  uint32_t level_count() const;

 private:
  Bucket* bucket(uint32_t level, uint64_t address) const;
  uint32_t buckets(uint64_t address, Bucket* out[kTableLevels]) const;
  bool grow(uint32_t level);

  Bucket* levels_[kTableLevels];
};

}  // namespace gpumemprof::probe
