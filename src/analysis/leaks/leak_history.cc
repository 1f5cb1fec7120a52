#include "analysis/leaks/leak_history.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>

#include "analysis/categories/loader_tasks.h"
#include "analysis/statistics/statistics.h"
#include "base/prefetch.h"

namespace gpumemprof {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

/// Two windows become one; `cells` is ascending.
void merge_pairs(std::vector<HeldCell>* cells) {
  std::vector<HeldCell>& all = *cells;
  size_t out = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    HeldCell cell = all[i];
    cell.window /= 2;
    // Where the stack did nothing in the other half, it held what it held at the edge, which is
    // never less than the floor of this half.
    if (out != 0 && all[out - 1].window == cell.window) {
      all[out - 1].allocs += cell.allocs;
      all[out - 1].alloc_bytes += cell.alloc_bytes;
      all[out - 1].floor_bytes = std::min(all[out - 1].floor_bytes, cell.floor_bytes);
      all[out - 1].last_bytes = cell.last_bytes;
    } else {
      all[out++] = cell;
    }
  }
  all.resize(out);
}

/// By window, the marked steps that had ended; empty where none is marked.
std::vector<uint64_t> ends_of_steps(const ProcessHistory& history) {
  std::vector<uint64_t> out;
  for (const uint32_t steps : history.steps)
    out.push_back((out.empty() ? 0 : out.back()) + steps);
  if (!out.empty() && out.back() == 0) out.clear();
  return out;
}

/// The mean would be that of what a stack makes and drops, where it makes blocks of several sizes.
/// Each marked step counts once: what the last one has made, and the next will replace, may be most.
void tell_median_sizes(ProcessHistory* history) {
  const std::vector<uint64_t> ends = ends_of_steps(*history);
  const auto step_of = [&](const KeptBlock& block) {
    if (ends.empty()) return uint64_t{0};
    const auto window = std::ranges::lower_bound(history->end_ns, block.time_ns);
    return window == history->end_ns.end() ? 0 : ends[window - history->end_ns.begin()];
  };
  absl::flat_hash_map<SiteKey, std::vector<std::pair<uint64_t, uint64_t>>> sizes;  // by step
  for (const SiteHistory& site : history->sites) {
    const size_t most = std::min<size_t>(site.live_count, history->kept.size());
    if (most != 0) sizes[site_key_of(site)].reserve(most);
  }
  for (const KeptBlock& block : history->kept) {
    sizes[site_key_of(block)].emplace_back(step_of(block), block.size_bytes);
  }
  std::vector<uint64_t> medians;
  for (SiteHistory& site : history->sites) {
    const auto live = sizes.find(site_key_of(site));
    if (live == sizes.end() || live->second.empty()) continue;
    auto& blocks = live->second;
    if (ends.empty())
      std::ranges::nth_element(blocks, blocks.begin() + static_cast<ptrdiff_t>(blocks.size() / 2));
    else
      std::ranges::sort(blocks);
    medians.clear();
    for (size_t at = 0, end; at < blocks.size(); at = end) {
      for (end = at; end < blocks.size() && blocks[end].first == blocks[at].first;) ++end;
      medians.push_back(blocks[at + (end - at) / 2].second);
    }
    site.median_live_bytes = upper_median(medians);
  }
}

}  // namespace

std::vector<Holder> kept_since(const ProcessHistory& history, uint16_t device, uint64_t time_ns) {
  absl::flat_hash_map<uint32_t, Holder> by_stack;
  for (const KeptBlock& block : history.kept) {
    const bool is_since = block.time_ns != LiveBlock::kUnknownTime && block.time_ns >= time_ns;
    if (block.device != device || !is_since) continue;
    Holder& holder = by_stack.try_emplace(block.stack, Holder{block.stack, 0, 0}).first->second;
    holder.bytes += block.size_bytes, ++holder.count;
  }
  std::vector<Holder> out;
  for (const auto& [stack, holder] : by_stack) out.push_back(holder);
  std::ranges::sort(out, {}, &Holder::stack);
  return out;
}

struct LeakGatherer::Open : SiteHistory {
  uint32_t window = kNone;  // the one that is open, not in `cells` yet
  uint32_t allocs = 0;      // in it
  uint64_t floor_bytes = 0;
  uint64_t allocated_bytes = 0;  // in it
  uint32_t task_frame = 0;
  uint64_t turn = 0;  // the last in which it allocated
  // As they were right after the allocation with the number `before_frees`: what was freed since
  // may be the end of the program.
  uint64_t before_frees = UINT64_MAX;
  uint64_t safe_floor_bytes = 0, safe_live_bytes = 0, safe_live_count = 0;

  void close() {
    if (window != kNone)
      cells.push_back({window, allocs, floor_bytes, live_bytes, allocated_bytes});
    window = kNone;
  }
};

struct LeakGatherer::Running {
  uint64_t allocs = 0, allocs_a_window = 1, allocs_in_window = 0;
  size_t cells = 0;
  std::vector<uint32_t> steps;
  std::vector<uint64_t> end_ns, step_ns;
  std::vector<Open> sites;
  absl::flat_hash_set<uint32_t> state_names;
  LoaderTurns turns;
  uint32_t window() const { return static_cast<uint32_t>(end_ns.size()) - 1; }
};

struct LeakGatherer::OnDevice {
  Running* process = nullptr;  // null: not looked at
  std::vector<uint32_t> site_by_stack;
  bool has_sizes = false;  // blocks without a stack are told apart by their size
  absl::flat_hash_map<uint64_t, uint32_t> site_by_size;
  uint64_t repeated_allocs = 0;

  bool is_told_by_size(uint32_t stack, uint64_t size_bytes) const {
    return has_sizes && stack == 0 &&
           (site_by_size.size() < kMostSizes || site_by_size.contains(size_bytes));
  }
};

LeakGatherer::LeakGatherer() = default;
LeakGatherer::~LeakGatherer() = default;

void LeakGatherer::begin_batch(const EventBatch& batch, const Tables& tables,
                               const LiveState& state) {
  batch_ = &batch;
  tables_ = &tables;
  next_mark_ = 0;
  for (size_t i = devices_.size(); i < tables.devices.size(); ++i) {
    OnDevice& device = devices_.emplace_back();
    const Device& known = tables.devices[i];
    // What a pool is made of holds its blocks: those are looked at.
    if (known.layer == Layer::kDriver) continue;
    std::unique_ptr<Running>& process = processes_[known.process];
    if (!process) {
      process = std::make_unique<Running>();
      process->end_ns.push_back(0), process->steps.push_back(0), process->step_ns.push_back(0);
    }
    device.process = process.get();
    device.has_sizes = is_jax(known);
    if (i < state.devices().size()) resync(static_cast<uint16_t>(i), state.devices()[i]);
  }
  resync_where_needed(state);
}

void LeakGatherer::resync_where_needed(const LiveState& state) {
  for (size_t i = 0; i < devices_.size() && i < state.devices().size(); ++i) {
    if (state.devices()[i].repeated_allocs != devices_[i].repeated_allocs) {
      resync(static_cast<uint16_t>(i), state.devices()[i]);
    }
  }
}

/// Where a free was missed, the state alone knows whose block is gone.
void LeakGatherer::resync(uint16_t index, const DeviceState& state) {
  OnDevice& device = devices_[index];
  device.repeated_allocs = state.repeated_allocs;
  if (!device.process) return;
  const auto set = [](Open& open, uint64_t live_bytes, uint64_t live_count) {
    open.live_bytes = live_bytes, open.live_count = live_count;
    open.floor_bytes = std::min(open.floor_bytes, open.live_bytes);
  };
  for (const auto& [stack, site] : state.sites) {
    if (site.live_count == 0 && site.total_count == 0) continue;
    if (device.has_sizes && stack == 0) continue;
    set(site_of(*device.process, index, stack, 0), site.live_bytes, site.live_count);
  }
  if (!device.has_sizes) return;
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> live;  // by place of a site: bytes, count
  for (uint32_t i = 0; i < device.process->sites.size(); ++i) {
    const Open& site = device.process->sites[i];
    if (site.device == index && site.stack == 0) live.try_emplace(i);
  }
  state.blocks.each([&](uint64_t, const LiveBlock& block) {
    if (block.stack != 0) return;
    const Open& site = site_of(*device.process, index, 0, block.size_bytes);
    auto& [bytes, count] = live[static_cast<uint32_t>(&site - device.process->sites.data())];
    bytes += block.size_bytes, ++count;
  });
  for (const auto& [i, held] : live) set(device.process->sites[i], held.first, held.second);
}

LeakGatherer::Open& LeakGatherer::new_site(Running& process, uint16_t device, uint32_t stack) {
  Open& site = process.sites.emplace_back();
  site.stack = stack, site.device = device;
  site.task_frame = task_frame(*tables_, stack);
  return site;
}

LeakGatherer::Open& LeakGatherer::site_of(Running& process, uint16_t device, uint32_t stack,
                                          uint64_t size_bytes) {
  OnDevice& of = devices_[device];
  if (stack >= tables_->stacks.stack_count()) stack = 0;
  const auto next = static_cast<uint32_t>(process.sites.size());
  if (of.is_told_by_size(stack, size_bytes)) {
    const auto [known, is_new] = of.site_by_size.try_emplace(size_bytes, next);
    if (is_new) new_site(process, device, stack).told_by_bytes = size_bytes;
    return process.sites[known->second];
  }
  std::vector<uint32_t>& known = of.site_by_stack;
  if (stack >= known.size()) known.resize(tables_->stacks.stack_count(), kNone);
  if (known[stack] == kNone) {
    known[stack] = next;
    new_site(process, device, stack);
  }
  return process.sites[known[stack]];
}

void LeakGatherer::prefetch(uint16_t device, uint32_t stack) const {
  if (device >= devices_.size() || !devices_[device].process) return;
  const std::vector<uint32_t>& known = devices_[device].site_by_stack;
  if (stack >= known.size() || known[stack] == kNone) return;
  const auto* site = reinterpret_cast<const char*>(&devices_[device].process->sites[known[stack]]);
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < sizeof(Open); at += kLine) prefetch_line(site + at);
}

LeakGatherer::Running* LeakGatherer::running_of(uint16_t device) {
  return device < devices_.size() ? devices_[device].process : nullptr;
}

void LeakGatherer::touch(Running& process, Open& site) {
  if (site.window == process.window()) return;
  if (site.window != kNone) ++process.cells;
  site.close();
  site.window = process.window();
  site.allocs = 0, site.allocated_bytes = 0;
  site.floor_bytes = site.live_bytes;
}

void LeakGatherer::next_window(Running& process) {
  if (process.end_ns.size() >= kMostWindows || process.cells > kMostCells) {
    process.cells = 0;
    for (Open& site : process.sites) {
      site.close();
      merge_pairs(&site.cells);
      process.cells += site.cells.size();
    }
    const size_t half = (process.end_ns.size() + 1) / 2;
    for (size_t i = 0; i < half; ++i) {
      const size_t second = std::min(2 * i + 1, process.end_ns.size() - 1);
      process.end_ns[i] = process.end_ns[second];
      process.steps[i] = process.steps[2 * i] + (second == 2 * i ? 0 : process.steps[second]);
      process.step_ns[i] = std::max(process.step_ns[2 * i], process.step_ns[second]);
    }
    process.end_ns.resize(half), process.steps.resize(half), process.step_ns.resize(half);
    process.allocs_a_window *= 2;
  }
  process.allocs_in_window = 0;
  process.end_ns.push_back(process.end_ns.back());
  process.steps.push_back(0), process.step_ns.push_back(0);
}

void LeakGatherer::take_marks(size_t until_event) {
  for (; next_mark_ < batch_->marks.size() &&
         batch_->marks[next_mark_].before_event <= until_event;
       ++next_mark_) {
    const Mark& mark = batch_->marks[next_mark_];
    if (mark.thread >= tables_->threads.size()) continue;
    const auto process = processes_.find(tables_->threads[mark.thread].process);
    if (process == processes_.end()) continue;
    if (mark.kind == MarkKind::kStep) {
      ++process->second->steps.back();
      process->second->step_ns.back() = process->second->end_ns.back() + 1;
    }
    const bool is_state = mark.kind == MarkKind::kRole &&
                          mark.value == static_cast<uint64_t>(StorageRole::kOptimizerState);
    if (is_state && mark.text != 0) process->second->state_names.insert(mark.text);
  }
}

void LeakGatherer::end_batch() { take_marks(SIZE_MAX); }

void LeakGatherer::on_alloc(size_t i, uint16_t device) {
  take_marks(i);
  Running* process = running_of(device);
  if (!process) return;
  if (process->allocs_in_window == process->allocs_a_window) next_window(*process);
  ++process->allocs_in_window;
  ++process->allocs;
  process->end_ns.back() = batch_->time_ns[i];
  const uint64_t size = batch_->size_bytes[i];
  Open& site = site_of(*process, device, batch_->stack[i], size);
  touch(*process, site);
  site.live_bytes += size, ++site.live_count;
  site.alloc_bytes += size, ++site.alloc_count, ++site.allocs;
  site.allocated_bytes += size;
  site.last_alloc = process->allocs;
  if (site.first_alloc == 0) site.first_alloc = process->allocs;
  if (site.task_frame != 0) {
    const uint64_t turn = process->turns.of_line(site.task_frame);
    site.turns += turn != site.turn, site.turn = turn;
  }
  if (size > site.largest_bytes) {
    site.largest_bytes = size, site.largest_count = 1, site.last_larger = process->allocs;
    ++site.larger_count, site.larger_bytes += size;
  } else {
    site.largest_count += size == site.largest_bytes;
    site.other_block_bytes = size;
  }
}

void LeakGatherer::on_free(uint16_t device, const LiveBlock& block) {
  Running* process = running_of(device);
  if (!process) return;
  Open& site = site_of(*process, device, block.stack, block.size_bytes);
  touch(*process, site);
  if (site.before_frees != process->allocs) {
    site.before_frees = process->allocs;
    site.safe_floor_bytes = site.floor_bytes;
    site.safe_live_bytes = site.live_bytes, site.safe_live_count = site.live_count;
  }
  site.live_bytes -= std::min(block.size_bytes, site.live_bytes);
  if (site.live_count != 0) --site.live_count;
  site.floor_bytes = std::min(site.floor_bytes, site.live_bytes);
}

std::vector<ProcessHistory> LeakGatherer::finish(
    const LiveState& state,
    const std::function<std::span<const LiveBlock>(uint16_t device)>& last_frees) {
  std::vector<ProcessHistory> out;
  resync_where_needed(state);
  for (auto& [index, process] : processes_) {
    if (process->allocs == 0) continue;
    ProcessHistory& history = out.emplace_back();
    history.process = index;
    history.allocs = process->allocs, history.allocs_a_window = process->allocs_a_window;
    history.steps = std::move(process->steps), history.end_ns = std::move(process->end_ns);
    history.step_ns = std::move(process->step_ns);
    history.state_names = process->state_names.size();
    for (Open& site : process->sites) {
      if (site.before_frees == process->allocs) {
        site.floor_bytes = site.safe_floor_bytes;
        site.live_bytes = site.safe_live_bytes, site.live_count = site.safe_live_count;
      }
      site.close();
      history.sites.push_back(std::move(site));
    }
    for (size_t i = 0; i < devices_.size() && i < state.devices().size(); ++i) {
      if (devices_[i].process != process.get()) continue;
      const auto device = static_cast<uint16_t>(i);
      const auto keep = [&](const LiveBlock& block) {
        const bool by_size = devices_[i].is_told_by_size(block.stack, block.size_bytes);
        history.kept.push_back({block.size_bytes, block.time_ns, block.stack, device,
                                by_size ? block.size_bytes : 0});
      };
      history.kept.reserve(history.kept.size() + last_frees(device).size() +
                           state.devices()[i].blocks.size());
      for (const LiveBlock& block : last_frees(device)) keep(block);
      state.devices()[i].blocks.each([&](uint64_t, const LiveBlock& block) { keep(block); });
    }
    tell_median_sizes(&history);
  }
  return out;
}

}  // namespace gpumemprof
