// PyTorch's CUDA caching allocator on one device, without a device: the same blocks, segments and
// addresses for the same calls. docs/allocator.md has the rules and where they come from.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/config.h"
#include "allocator/release.h"

namespace gpumemprof {

/// A reserved range of addresses that is not known to end: a device without a stated size reserves
/// as much as no device has.
inline constexpr uint64_t kAmpleRangeBytes = 1ull << 40;

/// Index of a block; stays the block's until its free is completed. 0: none.
using BlockId = uint32_t;
inline constexpr BlockId kNoBlock = 0;

/// A running figure and the highest it has been.
struct Gauge {
  uint64_t current = 0;
  uint64_t peak = 0;
  void add(uint64_t bytes) {
    current += bytes;
    if (current > peak) peak = current;
  }
  void subtract(uint64_t bytes) { current -= bytes; }
};

/// Bytes, as torch.cuda.memory_stats() counts them.
struct AllocatorStatistics {
  Gauge allocated;  ///< rounded sizes of the blocks that the program holds
  Gauge active;     ///< the same and those whose free waits for a stream
  Gauge requested;  ///< what the program asked for, of the active ones
  Gauge reserved;   ///< segments and mapped ranges
  Gauge segments;   ///< number of cudaMalloc'ed segments
  /// Of reserved: whole free segments and pages. empty_cache gives them back, those of a private
  /// pool once it has lost its last user.
  Gauge releasable;
  uint64_t num_alloc_retries = 0;
  uint64_t num_ooms = 0;
  /// Free bytes in segments that live blocks pin: they can serve small requests only.
  uint64_t fragmented_bytes() const {
    return reserved.current - active.current - releasable.current;
  }
};

/// A piece of a segment. Links are block ids; 0 ends a segment. One line of the cache: with many
/// blocks each that is touched is waited for.
struct alignas(64) SimulatedBlock {
  enum class State : uint8_t {
    kFree,
    kAllocated,
    kPendingFree,
    kUnmapped,
    kCompletedEarly,
    kUnused
  };
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint64_t requested_bytes = 0;
  uint64_t lookups_before = 0;  ///< searches of its pool when it became free, for its age
  BlockId previous = kNoBlock;
  BlockId next = kNoBlock;
  uint32_t segment = 0;  ///< index for Simulator::segment()
  uint32_t made = 0;     ///< how many block objects were made before it
  uint32_t stack = 0;    ///< what malloc() was given: a StackTable id or any number of the caller
  // Of its segment, so that nothing has to be looked up there:
  uint32_t segment_made = 0;
  uint32_t list = 0;  ///< the simulator's own
  bool is_expandable = false;
  State state = State::kUnused;
};
static_assert(sizeof(SimulatedBlock) == 64);

/// One cudaMalloc, or one reserved range of addresses of which pages are mapped as needed.
struct SimulatedSegment {
  uint64_t address = 0;
  uint64_t size_bytes = 0;   ///< expandable: of the reserved range
  BlockId first = kNoBlock;  ///< lowest block; kNoBlock: the segment is gone
  uint32_t made = 0;         ///< how many segments were made before it
  uint32_t stack = 0;        ///< of the allocation that needed it
  uint16_t stream = 0;
  uint16_t pool = 0;
  bool is_large = false;
  bool is_expandable = false;
  uint32_t list = 0;  ///< the simulator's own
};

/// What the simulator asked of the driver.
struct DriverCall {
  enum class Kind : uint8_t { kSegmentAlloc, kSegmentFree, kMap, kUnmap, kRefused };
  Kind kind = Kind::kSegmentAlloc;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
};

/// Where the driver puts things. The default counts upwards, as if each were put above the last.
class AddressSource {
 public:
  virtual ~AddressSource() = default;
  virtual uint64_t place_segment(uint64_t size_bytes) = 0;
  /// The base of a reserved range of addresses; at least `size_bytes` must be free above it.
  virtual uint64_t place_range(uint64_t size_bytes) = 0;
  virtual void free_segment(uint64_t address, uint64_t size_bytes) { (void)address, (void)size_bytes; }
};

/// The allocator itself. Not thread-safe. Never fails but by kNoBlock: calls that make no sense (a
/// double free) are answered with false and change nothing.
class Simulator {
 public:
  /// `addresses` must outlive the simulator; null: the default ones.
  Simulator(const AllocatorConfig& config, const Release& release,
            AddressSource* addresses = nullptr);
  ~Simulator();
  Simulator(Simulator&&) noexcept;
  Simulator& operator=(Simulator&&) noexcept;

  struct Request {
    uint64_t requested_bytes = 0;
    uint16_t stream = 0;
    uint16_t pool = 0;   ///< other than 0: a private pool, which is made at its first request
    uint32_t stack = 0;  ///< kept in the block
    /// The free blocks were looked through before memory went back to the driver, and are not
    /// again: what an allocation does after its first try has failed.
    bool tries_again = false;
  };
  /// kNoBlock: out of memory, after everything that PyTorch tries first; counted in num_ooms.
  BlockId malloc(const Request& request);
  /// The owner lets go, other streams may still use the block. False: it was not allocated.
  bool free_requested(BlockId block);
  /// The block is free. Also right where free_requested() was not called. Where a retry or
  /// empty_cache() had to wait for the streams the block is free already; then only its id ends.
  bool free_completed(BlockId block);
  /// Everything that can go back to the driver does, after waiting for all streams.
  void empty_cache();
  /// Private pool `pool` has lost its last user: its free segments may go back from now on.
  void release_pool(uint16_t pool);

  const AllocatorConfig& config() const;
  const Release& release() const;
  const AllocatorStatistics& statistics() const;
  const SimulatedBlock& block(BlockId id) const;
  uint32_t segment_count() const;  ///< indexes below it are valid for segment(); some are gone
  const SimulatedSegment& segment(uint32_t index) const;

  /// Looks at a block or a list, in the searches that no structure shortens: they are those of
  /// PyTorch, and a file can be made that lets each take as long as the file is.
  uint64_t steps() const;
  /// After this many steps the simulator gives up: from then on malloc() answers kNoBlock, counts
  /// nothing, and the state means nothing. The default is some seconds of work.
  void limit_steps(uint64_t most);
  bool gave_up() const;

  /// Calls of the driver are kept from now on, oldest first, until the caller clears them.
  void keep_driver_calls(bool keep);
  std::vector<DriverCall>& driver_calls();

  struct State;  // what the parts in *.cc share
  State& state() { return *state_; }
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace gpumemprof
