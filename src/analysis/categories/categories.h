// What the memory of a PyTorch program is: the category, module and phase of every block, at the
// peak and over time. One pass; memory O(live blocks + stacks), never O(events).
//
// A block's category is known when its life ends, as what is said of it may be said late. So what
// was live at the peak is added up then: blocks that were freed after the peak as they are freed,
// the rest at the end; a higher peak begins anew.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/categories/attribution.h"
#include "analysis/categories/block_keeper.h"
#include "analysis/categories/category_ledger.h"
#include "analysis/categories/copy_links.h"
#include "trace/address_map.h"
#include "trace/last_frees.h"
#include "trace/live_state.h"
#include "trace/module_path.h"

namespace gpumemprof {

/// Fed by the observer of a LiveState. Does nothing until the source has shown a mark or a frame of
/// PyTorch's work: other programs pay for nothing. Not thread-safe.
class Categories {
 public:
  explicit Categories(const Tables& tables, BlockKeeper* keeper = nullptr)
      : tables_(tables), attributions_(tables), keeper_(keeper) {}

  /// What the blocks of a device are where the program tells nothing of them, in the order of its
  /// allocations. Before the first batch; must outlive it.
  void set_rules(uint16_t device, const std::vector<RuledBlock>* blocks) {
    rules_[device] = blocks;
  }
  /// Before the events of a batch are applied to `state`, which the answers are about.
  void begin_batch(const EventBatch& batch, const LiveState& state);
  bool is_active() const { return is_active_; }
  /// Only while is_active(). `index`: of the event in the batch.
  void on_alloc(size_t index, uint16_t device, const DeviceState& state);
  void on_free(size_t index, uint16_t device, const DeviceState& state);
  /// After the events of the batch.
  void end_batch();
  /// Only while is_active(). What is live right now, before event number `event`, is to be told as
  /// moment `number`.
  void on_moment(uint16_t device, size_t number, uint64_t event);

  /// After the last batch, before finish(): whether what a call without gradients makes at this
  /// stack is a cache for the next ones.
  bool is_cache(uint32_t stack) const;
  /// Whether autograd saved a block of the stack.
  bool is_saved(uint32_t stack) const { return stack < is_saved_.size() && is_saved_[stack]; }
  /// Whether the graphs of more than two passes saved one block of the stack.
  bool is_saved_again(uint32_t stack) const {
    return stack < is_saved_again_.size() && is_saved_again_[stack];
  }
  /// Of how many parameters a block of the stack was the gradient.
  size_t gradients_of(uint32_t stack) const {
    const auto known = gradient_names_.find(stack);
    return known == gradient_names_.end() ? 0 : known->second.size();
  }
  /// Between the two: a leak's evidence says that what is kept of the stack is a cache. A model's
  /// call makes it; what is made beside calls has other reasons.
  void tell_cache(uint32_t stack) {
    if (is_in_call(attributions_.of(stack).phase)) told_caches_.insert(stack);
  }
  /// Call once, after the last batch. False where nothing is known of the device.
  DeviceCategories finish(uint16_t device, const DeviceState& state);
  /// Only while is_active(). Each live block as what it is now: its address, and a holder of one.
  void each_live(uint16_t device,
                 const std::function<void(uint64_t address, const CategoryHolder&)>& see);
  /// After finish(): all that was live at a moment, largest first.
  std::vector<CategoryHolder> at_moment(uint16_t device, size_t number) const;
  const std::vector<CategoryMoment>& moments() const { return moments_; }
  /// Threads and devices that marks made it look at, so far.
  uint64_t look_count() const { return look_count_; }

 private:
  struct Block {
    uint64_t size_bytes, time_ns, event, moment;
    uint64_t made_at;  // its own event, where `event` is that from which on it is something else
    uint32_t stack, thread, name, first_moment;
    uint32_t kept_as;  // its number with the BlockKeeper
    uint32_t backward, optimizer, recomputation;  // of the thread, when it was allocated
    uint32_t steps, calls, looks;                 // of the process
    uint32_t last_pass_saved, passes_saved_in;
    uint32_t address_name;       // told of its address before it was allocated, with the role
    uint8_t address_role;        // holds if a look finds it so
    uint8_t role, saved;
    uint8_t rule;  // SnapshotRule, of what the program tells nothing of
    WorkPhase rule_phase;
    bool is_weight_copy, is_live, is_before_calls, was_state;
  };
  /// When a part of a block's life ended, and what had been by then.
  struct PartEnd {
    uint64_t time_ns, moment;
    size_t moments;
    bool is_at_peak;
    uint64_t peak_epoch;
  };
  struct Freed {
    Block block;
    Verdict verdict;
    PartEnd end;
  };
  /// What a thread freed after its last allocation, which a model's call made: in the call if that
  /// allocates again, else after it.
  struct CallFrees {
    struct Held {
      uint16_t device;
      Freed freed;
      Verdict in_call;  // `freed` has that of after it
    };
    struct Outlived {
      uint32_t stack;
      bool is_for_more;
    };
    std::vector<Held> held;          // of which that decides
    std::vector<Outlived> outlived;  // more than one call
    bool empty() const { return held.empty() && outlived.empty(); }
  };
  /// What a thread does, as its allocations show.
  struct ThreadWork {
    WorkPhase phase = WorkPhase::kNone;
    bool is_recomputing = false, is_in_step = false;
    bool is_listed = false;  // in working_
    uint32_t backward = 0, optimizer = 0, recomputation = 0;  // how many have ended
    CallFrees frees;
  };
  struct ToldRole {
    uint32_t name = 0;
    uint8_t role = 0;
  };
  struct ProcessWork {
    uint32_t steps = 0, calls = 0, looks = 0, passes = 0;
    uint32_t calls_before_step = 0;  // made when the last step ended
    uint64_t next_step = 0;  // its number
    bool has_ended = false, has_names = false;
    absl::flat_hash_map<uint64_t, ToldRole> roles;  // by address
    /// Whose calls without gradients left something for the next one, by path without numbers.
    absl::flat_hash_map<std::string, absl::flat_hash_set<std::string_view>> leaving_modules;
    /// Of three layers or more it is their state; a result comes from one module.
    bool has_state(std::string_view module) const {
      const auto alike = leaving_modules.find(without_numbers(module));
      return alike != leaving_modules.end() && alike->second.size() >= 3;
    }
  };
  struct Site : GrowingSite {
    uint32_t of_last_call = 0, live = 0;
    uint32_t for_more = 0, for_less = 0;  // freed when a later call had made a larger one, or none
    bool grows = false, keeps = false;
    void let_go(bool is_for_more) { ++(is_for_more ? for_more : for_less); }
    /// Of the blocks that one call outlived most made way for a larger one, and more than live now.
    bool replaces() const { return for_more >= 2 && for_more > 3 * for_less && for_more > live; }
    bool is_cache() const {
      return is_cache_site(
          {.site_grows = grows, .site_keeps = keeps, .site_replaces = replaces()});
    }
  };
  struct SiteSteps {
    uint32_t first = UINT32_MAX, last = 0;
  };
  struct Moment {
    size_t number;
    uint64_t event;
    HolderSums sums;
  };
  struct Peak {
    uint64_t epoch = 0, step = 0, freed_in_step_bytes = 0;
    uint32_t stack = 0, steps = 0;  // steps that had ended
  };
  /// What a block was that was freed after its process's last allocation.
  struct FreedBlock {
    KnownAs is;
    uint32_t stack;
    uint64_t size_bytes;
  };
  struct OfDevice {
    uint32_t process = 0;
    AddressMap index;  // address -> number of a block
    std::vector<Block> blocks;
    std::vector<uint32_t> unused;
    std::vector<Freed> freed_since_alloc;  // of unknown category
    HolderSums at_peak;
    Peak peak;
    std::vector<Moment> moments;
    DifferenceSeries<kCategories> timeline{10};
    DifferenceSeries<kCategories> at_moments{0, 2 * kMostMoments};
  };
  static constexpr size_t kMostMoments = 4096;
  static constexpr uint8_t kWasSaved = 128;  // in Block::saved, beside SavedFlags

  void activate(const LiveState& state);
  KnownAs known_now(uint16_t device, uint32_t number);
  void take_marks(size_t before_event);
  void take(const Mark& mark);
  void take_saved(const Mark& mark, uint32_t process);
  void take_role(const Mark& mark, uint32_t process);
  void take_copy(const Mark& mark, uint32_t process);
  Block* block_at(uint64_t address, uint32_t process, CopyLinks::Block* place);
  Block* block_at(const CopyLinks::Block& place);
  ToldRole role_of(const Block& block, uint32_t process);
  void begin_part(const CopyLinks::Block& place, Block& block);
  void keep(uint32_t device, const Block& block, const KnownAs& is, uint64_t until) const {
    if (keeper_ == nullptr) return;
    const auto index = static_cast<uint16_t>(device);
    keeper_->tell(index, block.kept_as, is.holder(block.stack), until);
  }
  bool is_proof(const Block& other, const CopyLinks::Block& place, CopyLinks::Kind kind, int depth);
  bool is_weight_copy(const Block& block, const CopyLinks::Block& place, int depth);
  void end_links(const Block& block, const CopyLinks::Block& place);
  void add_moment(CategoryMoment moment);
  ThreadWork& thread(uint32_t index);
  ProcessWork& process(uint32_t index);
  uint32_t process_of_thread(uint32_t thread) const;
  const std::vector<uint32_t>& devices_of(uint32_t process);
  void end_work(uint32_t process);
  void enter(uint32_t thread, const Attribution& work, uint32_t process);
  void end_life(OfDevice& device, const CopyLinks::Block& place, const DeviceState& state,
                size_t index);
  KnownAs end_part(OfDevice& device, const Block& block, const Verdict& verdict,
                 const PartEnd& end);
  void take_freed(uint16_t device, uint64_t peak_epoch);
  void take(uint16_t device, Freed& freed, uint64_t peak_epoch);
  void take_call_frees(CallFrees& frees, bool call_goes_on);
  PartEnd part_end(const OfDevice& device, bool is_at_peak, uint64_t peak_epoch) const {
    return {last_ns_, moment_count_, device.moments.size(), is_at_peak, peak_epoch};
  }
  KnownAs known(const Block& block, const Verdict& verdict, uint32_t process);
  void take_rule(uint16_t device, uint64_t address, uint64_t number, Block* block) const;
  BlockLife life_of(const Block& block, const CopyLinks::Block& place, uint32_t process);
  static void add_to_moments(OfDevice& device, const Block& block, const KnownAs& known,
                             size_t moments);

  const Tables& tables_;
  Attributions attributions_;
  BlockKeeper* const keeper_;  // may be null
  bool is_active_ = false;
  bool is_late_ = false;  // there were events before what made it active
  uint64_t batches_ = 0;
  const EventBatch* batch_ = nullptr;
  const LiveState* state_ = nullptr;
  size_t next_mark_ = 0;
  uint32_t frames_seen_ = 0;
  uint64_t start_ns_ = 0, last_ns_ = 0;
  std::vector<OfDevice> devices_;
  LastFrees<FreedBlock> last_frees_;
  std::vector<std::vector<uint32_t>> devices_of_, working_;  // devices and threads, by process
  size_t devices_listed_ = 0;
  uint64_t look_count_ = 0;
  std::vector<ThreadWork> threads_;
  std::vector<ProcessWork> processes_;
  absl::flat_hash_map<uint32_t, Site> sites_;  // of evaluation, by stack
  absl::flat_hash_set<uint32_t> told_caches_;  // stacks
  std::vector<SiteSteps> site_steps_;          // by stack: in which it allocated
  std::vector<bool> is_saved_, is_saved_again_;  // by stack
  absl::flat_hash_map<uint32_t, absl::flat_hash_set<uint32_t>> gradient_names_;  // by stack
  /// Of a workspace's size on a GPU: how many, by stack and size.
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, uint32_t> workspace_sites_;
  absl::flat_hash_map<uint16_t, const std::vector<RuledBlock>*> rules_;  // by device
  CopyLinks copies_;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, uint32_t> open_phases_;
  std::vector<CategoryMoment> moments_;
  uint64_t moment_count_ = 0;
  unsigned moment_shift_ = 0;
};

}  // namespace gpumemprof
