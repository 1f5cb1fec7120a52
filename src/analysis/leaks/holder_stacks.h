// Which stacks made what a holder holds: addresses that a process told at one moment, looked up in
// what was live at that moment.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "recording/holders_file.h"
#include "trace/event.h"
#include "trace/live_state.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Blocks of which all tensors together show at most half: views keep the rest.
struct ViewedBlocks {
  uint64_t blocks = 0, bytes = 0;
  uint64_t shown_bytes = 0;  ///< of `bytes`
  void add(const ViewedBlocks& more) {
    blocks += more.blocks, bytes += more.bytes, shown_bytes += more.shown_bytes;
  }
};

/// One holder's share of one stack's blocks.
struct HeldByStack {
  uint32_t holder = 0;  ///< index in the look's holders
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  ViewedBlocks viewed;  ///< of these
  uint64_t first_ns = UINT64_MAX, last_ns = 0;  ///< when they were made

  void add(const HeldByStack& more) {
    blocks += more.blocks, bytes += more.bytes, viewed.add(more.viewed);
    first_ns = std::min(first_ns, more.first_ns), last_ns = std::max(last_ns, more.last_ns);
  }
};

class HolderStacks {
 public:
  /// `holders` must live as long; null: nobody was asked.
  explicit HolderStacks(const std::vector<ProcessHolders>* holders);

  /// The marks of a batch, before its events: when steps ended.
  void take_steps(const Tables& tables, const std::vector<Mark>& marks);
  /// When the next look was: before the first event that is not earlier, call take().
  uint64_t next_ns() const { return next_ns_; }
  /// A block that the first event after the look has ended: it is not in the state any more.
  struct Ended {
    uint16_t device;
    uint64_t address;
    LiveBlock block;
  };
  /// `state` and what it has lost since are what was live at next_ns().
  void take(const Tables& tables, const LiveState& state, const Ended* ended = nullptr);
  /// Whether a library's function had something at a look, and may run yet: then each allocation that
  /// follows is for follow().
  bool awaits_returns() const { return !awaited_.empty(); }
  /// A function that is not in a stack of the thread on which it ran has returned.
  void follow(const Tables& tables, uint32_t thread, uint32_t stack);
  /// Looks that came after the last event.
  void finish(const Tables& tables, const LiveState& state);

  /// Who was asked in that process: null where nobody.
  const ProcessHolders* of_process(uint32_t process, const Tables& tables) const;

  struct Held {
    const TensorHolder* holder = nullptr;  ///< who holds most of the bytes; null: not known
    uint64_t held_blocks = 0, held_bytes = 0;  ///< that `holder` keeps
    /// That `holder` keeps of all stacks of the device, at that look.
    uint64_t bytes_in_all = 0;
    ViewedBlocks viewed;                       ///< of these
    bool is_gc_disabled = false;  ///< Python's collector, at that look
    bool was_full = false;        ///< in an earlier look it had its most_entries
    uint64_t reached_blocks = 0;  ///< of these stacks, by all holders, at that look
    uint64_t live_blocks = 0;     ///< of these stacks, at that look
    /// Of the reached ones, those that variables of a library's function had, which has returned since.
    uint64_t returned_blocks = 0;
  };
  /// The holder of the most bytes of these stacks, in the look that knows of the most. Where it has
  /// fewer than `least_blocks`, or a small part of what was live, what grows is elsewhere: null.
  Held most_of(uint32_t process, uint16_t device, const std::vector<uint32_t>& stacks,
               const Tables& tables, uint64_t least_blocks = 1) const;

 private:
  struct Live {
    uint64_t blocks = 0, bytes = 0;
  };
  struct Look {
    const ProcessHolders* process;
    const HoldersLook* look;
    // By device << 32 | stack.
    absl::flat_hash_map<uint64_t, std::vector<HeldByStack>> by_stack;
    absl::flat_hash_map<uint64_t, Live> live;
    absl::flat_hash_set<uint32_t> returned;  // holders: variables of functions that have returned
  };
  /// A variable of a function that may run yet.
  struct Awaited {
    size_t look;
    uint32_t holder;
  };
  /// Whether one step made the whole graph of a few tensors: what the last round leaves in a variable,
  /// and no state that goes from step to step.
  bool is_of_one_step(const Look& look, uint32_t holder, const HeldByStack& held) const;
  static uint64_t bytes_of(uint32_t holder, uint16_t device, const Look& look);
  void resolve(Look& look, const Tables& tables, const LiveState& state, const Ended* ended) const;

  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, const ProcessHolders*> processes_;
  std::vector<Look> looks_;  // by time
  absl::flat_hash_map<const ProcessHolders*, std::vector<size_t>> looks_of_;
  std::vector<Awaited> awaited_;
  absl::flat_hash_set<uint64_t> followed_;  // process << 32 | stack, that have all awaited functions
  absl::flat_hash_map<const ProcessHolders*, std::vector<uint64_t>> step_ends_;  // times
  size_t next_ = 0;
  uint64_t next_ns_ = UINT64_MAX;
};

}  // namespace gpumemprof
