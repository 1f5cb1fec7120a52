#include "analysis/driver/driver_memories.h"

#include <algorithm>

namespace gpumemprof {
namespace {

constexpr std::string_view kBegin = "driver ";
constexpr int8_t kCuda = 1, kXpu = 12;
constexpr std::string_view kCallerFile = "<driver>";
constexpr size_t kMostLibraries = 256;  // a file may name any number; the rest is one

std::optional<DriverUse> use_of(const Device& device) {
  if (!is_driver_memory(device)) return std::nullopt;
  const std::string_view name = std::string_view(device.name).substr(kBegin.size());
  const auto* at = std::find(kDriverKindNames.begin(), kDriverKindNames.end(), name);
  if (at == kDriverKindNames.end()) return std::nullopt;
  return static_cast<DriverUse>(at - kDriverKindNames.begin());
}

bool is_of_host(DriverUse use) {
  return use == DriverUse::kPinned || use == DriverUse::kRegistered;
}

/// Wraps where a damaged file claims what no device has.
int64_t less(uint64_t bytes, uint64_t taken) { return static_cast<int64_t>(bytes - taken); }

size_t at(DriverUse use) { return static_cast<size_t>(use); }

/// Memory whose addresses an allocator hands on. Pools are the driver's own allocator.
bool has_addresses_of_segments(DriverUse use) {
  return use == DriverUse::kMemory || use == DriverUse::kMapped;
}

/// Libraries through which a framework's own allocator takes its memory. The CUDA runtime is one of
/// them where a framework's allocator is in the process, as only the framework shares its runtime.
bool is_framework_library(std::string_view name, bool has_framework) {
  constexpr std::string_view kOwn[] = {"libc10_cuda",     "libtorch_cuda", "libtorch.",
                                       "libc10_hip",      "libtorch_hip",  "libc10_xpu",
                                       "libtorch_xpu",    "libtensorflow", "_pywrap_tensorflow",
                                       "xla_cuda_plugin", "libjax",        "xla_extension"};
  for (std::string_view own : kOwn)
    if (name.starts_with(own)) return true;
  return has_framework && name.starts_with("libcudart");
}

/// The place that the key of "device used" is (driver_proxy/watch.h); nothing where it is none.
std::optional<PciAddress> place_of_key(uint64_t key) {
  if (key >> 47 != 1 || (key & 63) != 63 || (key >> 38 & 0x1ff) != 0) return std::nullopt;
  return static_cast<PciAddress>(key >> 6);
}

bool library_with_more_first(const DriverLibrary& a, const DriverLibrary& b) {
  return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
}

/// Begins at its first event.
void add_level(uint64_t time_ns, uint64_t bytes, Timeline* line) {
  constexpr size_t kBuckets = 512;
  if (line->buckets().empty()) *line = Timeline(time_ns, kBuckets, 0);
  line->add(time_ns, bytes);
}

}  // namespace

uint64_t DriverMoment::asked_bytes() const {
  uint64_t sum = 0;
  for (size_t use = 0; use < kDriverUses; ++use)
    if (is_physical(static_cast<DriverUse>(use))) sum += live_bytes[use];
  return sum;
}

uint64_t DeviceIdentity::explained_bytes() const {
  return contexts_bytes + modules_bytes + libraries_bytes + rounding_bytes + framework_bytes;
}

DeviceIdentity identity_of(const DriverMoment& moment) {
  const std::optional<DeviceTruth>& truth = moment.truth;
  DeviceIdentity out;
  out.contexts_bytes = moment.of(DriverUse::kContexts);
  out.modules_bytes = moment.of(DriverUse::kModules);
  out.contexts_are_known = moment.unmeasured_contexts == 0;
  out.rounding_bytes = moment.rounding_bytes;
  for (const DriverLibrary& library : moment.libraries)
    (library.is_framework ? out.framework_bytes : out.libraries_bytes) += library.bytes;
  const auto say = [&](const char* term, std::string why) {
    out.unknown.emplace_back(term, std::move(why));
  };
  if (!out.contexts_are_known) {
    say("contexts", "the device could not be sampled before a context was created");
    say("explained", "the size of a context is unknown and would be part of it");
  }
  const auto allocated = moment.framework_allocated_bytes;
  const auto reserved = moment.framework_reserved_bytes;
  if (allocated && reserved) {
    out.framework_allocated_bytes = allocated;
    out.framework_cached_bytes = *reserved > *allocated ? *reserved - *allocated : 0;
    out.framework_beside_bytes = less(out.framework_bytes, *reserved);
    out.framework_unservable_bytes = moment.framework_unservable_bytes;
    if (!out.framework_unservable_bytes)
      say("framework.unservable", "the driver's segments differ from those the allocator reserved");
  } else {
    say("framework.unservable", "no framework's allocator was recorded on this device");
    say("framework_allocated", "no framework's allocator was recorded on this device");
  }
  out.device_used_bytes = moment.device_used_bytes;
  if (truth) {
    if (truth->device_used_bytes) out.device_used_bytes = truth->device_used_bytes;
    out.process_bytes = truth->process_used_bytes;
    out.others_bytes = truth->others_used_bytes;
    out.reserved_bytes = truth->reserved_bytes;
  }
  if (!out.device_used_bytes)
    say("device_used", "the device was not sampled between this moment and the next change");
  const auto or_else = [](const std::string* told, const char* usual) {
    return told && !told->empty() ? *told : usual;
  };
  if (!out.process_bytes)
    say("process_used", or_else(truth ? &truth->why_no_process : nullptr,
                                "the recording has no sample of this process's use"));
  if (!out.others_bytes)
    say("other_processes", or_else(truth ? &truth->why_no_others : nullptr,
                                   "the recording has no sample of other processes' use"));
  if (out.device_used_bytes && out.process_bytes && out.others_bytes) {
    out.of_no_process_bytes =
        less(*out.device_used_bytes,
             out.reserved_bytes.value_or(0) + *out.others_bytes + *out.process_bytes);
  }
  const uint64_t explained = out.explained_bytes();
  if (!out.process_bytes) {
    say("unexplained", "this process's use is unknown");
    if (out.device_used_bytes && out.contexts_are_known)
      out.others_and_unexplained_bytes = less(*out.device_used_bytes, explained);
  } else if (out.contexts_are_known) {
    out.unexplained_bytes = less(*out.process_bytes, explained);
  } else {
    say("unexplained", "the size of a context is unknown and would be part of it");
    out.contexts_and_unexplained_bytes = less(*out.process_bytes, explained);
  }
  return out;
}

std::string driver_device_name(const DriverDevice& device) {
  return device_name(Device{.type = device.type, .index = device.index, .name = {}});
}

int32_t DriverGatherer::device_of(uint32_t process, const Device& device) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    const DriverDevice& known = devices_[i].out;
    if (known.process == process && known.type == device.type && known.index == device.index)
      return static_cast<int32_t>(i);
  }
  One& fresh = devices_.emplace_back();
  fresh.out.process = process, fresh.out.type = device.type, fresh.out.index = device.index;
  return static_cast<int32_t>(devices_.size() - 1);
}

int32_t DriverGatherer::host_of(uint32_t process) {
  for (size_t i = 0; i < hosts_.size(); ++i)
    if (hosts_[i].process == process) return static_cast<int32_t>(i);
  hosts_.push_back({.process = process});
  pinned_.emplace_back();
  return static_cast<int32_t>(hosts_.size() - 1);
}

DriverGatherer::Memory DriverGatherer::memory_of(uint16_t device, const Tables& tables) {
  while (memories_.size() < tables.devices.size()) {
    const Device& known = tables.devices[memories_.size()];
    Memory& memory = memories_.emplace_back();
    const auto use = use_of(known);
    has_driver_ |= use.has_value();
    if (use && is_of_host(*use)) {
      memory.use = *use, memory.host = host_of(known.process);
    } else if (use) {
      memory.use = *use, memory.device = device_of(known.process, known);
    } else if ((known.type == kCuda || known.type == kXpu) && known.layer != Layer::kDriver) {
      memory.framework = device_of(known.process, known);
    }
  }
  return device < memories_.size() ? memories_[device] : Memory{};
}

uint32_t DriverGatherer::library_of(uint32_t stack, const Tables& tables) {
  const auto known = library_of_stack_.find(stack);
  if (known != library_of_stack_.end()) return known->second;
  std::string_view name = "unknown library";
  const Frame& frame = tables.stacks.frame_of(stack);
  if (stack != 0 && tables.strings.get(frame.file) == kCallerFile)
    name = tables.strings.get(frame.function);
  auto found = std::find(libraries_.begin(), libraries_.end(), name);
  if (found == libraries_.end()) {
    if (libraries_.size() == kMostLibraries) libraries_.emplace_back("other libraries");
    if (libraries_.size() < kMostLibraries) libraries_.emplace_back(name);
    found = libraries_.end() - 1;
  }
  return library_of_stack_[stack] = static_cast<uint32_t>(found - libraries_.begin());
}

/// A block has the pages inside it for itself; the first and the last it may share.
void DriverGatherer::pages(One& one, uint64_t address, uint64_t bytes, bool is_coming) {
  if (bytes == 0) return;
  const uint64_t first = address / kDriverPageBytes;
  const uint64_t last = (address + bytes - 1) / kDriverPageBytes;
  if (last < first) return;  // no address space is that large
  const uint64_t inside = last - first > 1 ? last - first - 1 : 0;
  if (is_coming) {
    one.whole_pages += inside;
    ++one.edge_pages[first];
    if (last != first) ++one.edge_pages[last];
    return;
  }
  one.whole_pages -= inside;
  for (uint64_t page : {first, last}) {
    const auto known = one.edge_pages.find(page);
    if (known != one.edge_pages.end() && --known->second == 0) one.edge_pages.erase(known);
    if (first == last) break;
  }
}

void DriverGatherer::changed(One& one, DriverUse use) {
  const bool is_of_device = is_physical(use) || use == DriverUse::kContexts ||
                            use == DriverUse::kUnmeasured || use == DriverUse::kModules;
  if (!is_of_device) return;
  one.peak_is_open = false;
  one.now.device_used_bytes.reset();
}

void DriverGatherer::came(const Memory& memory, uint64_t address, Live live) {
  One& one = devices_[static_cast<size_t>(memory.device)];
  went(memory, address);  // its end was missed
  if (memory.use == DriverUse::kDeviceUsed) {
    one.live[at(memory.use)][address] = live;
    if (const auto place = place_of_key(address)) one.out.place = place;
    one.now.device_used_bytes = live.bytes;
    one.out.asked = moment(one);
    if (one.peak_is_open) one.out.peak.device_used_bytes = live.bytes;
    return;
  }
  one.live[at(memory.use)][address] = live;
  one.now.live_bytes[at(memory.use)] += live.bytes;
  if (memory.use == DriverUse::kUnmeasured) ++one.now.unmeasured_contexts;
  if (memory.use == DriverUse::kMemory) pages(one, address, live.bytes, true);
  if (has_addresses_of_segments(memory.use) &&
      is_framework_library(libraries_[live.library], true)) {
    one.segments.range_came(address, live.bytes);
  }
  changed(one, memory.use);
  if (!is_physical(memory.use)) return;
  if (one.by_library.size() < libraries_.size()) one.by_library.resize(libraries_.size());
  one.by_library[live.library] += live.bytes;
  const uint64_t physical = one.now.asked_bytes();
  if (physical <= one.peak_bytes) return;
  one.peak_bytes = physical;
  one.out.peak = moment(one);
  one.peak_is_open = one.awaits_framework = true;
}

void DriverGatherer::went(const Memory& memory, uint64_t address) {
  One& one = devices_[static_cast<size_t>(memory.device)];
  auto& live = one.live[at(memory.use)];
  const auto known = live.find(address);
  if (known == live.end()) return;
  const Live gone = known->second;
  live.erase(known);
  if (memory.use == DriverUse::kDeviceUsed) return;
  one.now.live_bytes[at(memory.use)] -= gone.bytes;
  if (memory.use == DriverUse::kUnmeasured) --one.now.unmeasured_contexts;
  if (memory.use == DriverUse::kMemory) pages(one, address, gone.bytes, false);
  if (has_addresses_of_segments(memory.use)) one.segments.range_went(address);
  if (is_physical(memory.use)) one.by_library[gone.library] -= gone.bytes;
  changed(one, memory.use);
}

/// With the last context of a device goes what lay in it, and the program need not say so. Pools
/// and handles are not a context's.
void DriverGatherer::end_context(One& one) {
  if (!one.live[at(DriverUse::kContexts)].empty() || !one.live[at(DriverUse::kUnmeasured)].empty())
    return;
  for (const DriverUse use : {DriverUse::kMemory, DriverUse::kArrays, DriverUse::kManaged,
                              DriverUse::kModules, DriverUse::kInPools}) {
    for (const auto& [address, gone] : one.live[at(use)])
      if (is_physical(use)) one.by_library[gone.library] -= gone.bytes;
    one.live[at(use)].clear();
    one.now.live_bytes[at(use)] = 0;
  }
  one.edge_pages.clear(), one.whole_pages = 0;
  one.segments.forget_ranges();
}

void DriverGatherer::add_step(DriverHost* host) const {
  if (host->steps.size() == kMostHostSteps) return void(host->has_more_steps = true);
  host->steps.push_back({time_ns_, host->pinned_bytes, host->registered_bytes});
}

void DriverGatherer::host_came(const Memory& memory, uint64_t address, Live live) {
  host_went(memory, address);  // its end was missed
  DriverHost& host = hosts_[static_cast<size_t>(memory.host)];
  Pinned& blocks = pinned_[static_cast<size_t>(memory.host)];
  const bool is_pinned = memory.use == DriverUse::kPinned;
  blocks.live[is_pinned][address] = live;
  if (!is_pinned) {
    host.registered_bytes += live.bytes;
    host.registered_peak_bytes = std::max(host.registered_peak_bytes, host.registered_bytes);
    add_step(&host);
    return;
  }
  if (blocks.by_library.size() < libraries_.size()) blocks.by_library.resize(libraries_.size());
  blocks.by_library[live.library] += live.bytes;
  host.pinned_bytes += live.bytes;
  add_step(&host);
  if (host.pinned_bytes <= host.pinned_peak_bytes) return;
  host.pinned_peak_bytes = host.pinned_bytes;
  blocks.by_library_at_peak = blocks.by_library;
}

void DriverGatherer::host_went(const Memory& memory, uint64_t address) {
  Pinned& blocks = pinned_[static_cast<size_t>(memory.host)];
  const bool is_pinned = memory.use == DriverUse::kPinned;
  const auto known = blocks.live[is_pinned].find(address);
  if (known == blocks.live[is_pinned].end()) return;
  DriverHost& host = hosts_[static_cast<size_t>(memory.host)];
  (is_pinned ? host.pinned_bytes : host.registered_bytes) -= known->second.bytes;
  if (is_pinned) blocks.by_library[known->second.library] -= known->second.bytes;
  blocks.live[is_pinned].erase(known);
  add_step(&host);
}

void DriverGatherer::seed(const LiveState& state, const Tables& tables) {
  event_ = state.event_count();
  for (size_t i = 0; i < state.devices().size(); ++i) {
    const DeviceState& device = state.devices()[i];
    const Memory memory = memory_of(static_cast<uint16_t>(i), tables);
    if (memory.framework >= 0 && (device.has_totals || !device.blocks.empty()))
      devices_[static_cast<size_t>(memory.framework)].has_framework = true;
    if (memory.framework >= 0 && device.has_totals) {
      DriverMoment& now = devices_[static_cast<size_t>(memory.framework)].now;
      now.framework_allocated_bytes = device.framework_allocated_bytes;
      now.framework_reserved_bytes = device.framework_reserved_bytes;
    }
    device.blocks.each([&](uint64_t address, const LiveBlock& block) {
      if (memory.device >= 0)
        came(memory, address, {block.size_bytes, library_of(block.stack, tables)});
      if (memory.host >= 0)
        host_came(memory, address, {block.size_bytes, library_of(block.stack, tables)});
    });
  }
  // Once the ranges that they lie in are known.
  for (size_t i = 0; i < state.devices().size() && has_driver_; ++i) {
    const Memory memory = memory_of(static_cast<uint16_t>(i), tables);
    if (memory.framework < 0) continue;
    SegmentUse& segments = devices_[static_cast<size_t>(memory.framework)].segments;
    state.devices()[i].blocks.each([&](uint64_t address, const LiveBlock& block) {
      segments.block_came(address, block.size_bytes);
    });
  }
}

void DriverGatherer::take(const EventBatch& batch, const Tables& tables) {
  if (tables.devices.empty()) return;
  memory_of(0, tables);
  if (!has_driver_) return;  // as in nearly all recordings: nothing an event
  auto totals = batch.totals.begin();
  auto detail = batch.details.begin();
  for (size_t i = 0; i < batch.size(); ++i) {
    const Memory memory = memory_of(batch.device[i], tables);
    pass_samples(batch.time_ns[i], tables);
    time_ns_ = batch.time_ns[i], event_ = batch.first_event + i;
    const Action action = batch.action[i];
    while (totals != batch.totals.end() && totals->event < i) ++totals;
    while (detail != batch.details.end() && detail->event < i) ++detail;
    if (memory.framework >= 0) {
      One& one = devices_[static_cast<size_t>(memory.framework)];
      one.has_framework = true;
      const bool has_detail = detail != batch.details.end() && detail->event == i;
      framework_event(batch, i, has_detail && detail->is_delayed_free, &one);
      if (totals == batch.totals.end() || totals->event != i) continue;
      one.now.framework_allocated_bytes = totals->allocated_bytes;
      one.now.framework_reserved_bytes = totals->reserved_bytes;
      add_level(time_ns_, totals->reserved_bytes, &one.out.reserved);
      // The allocator tells of what it took right after it: that belongs to the same moment.
      if (one.peak_is_open && one.awaits_framework) {
        one.out.peak.framework_allocated_bytes = totals->allocated_bytes;
        one.out.peak.framework_reserved_bytes = totals->reserved_bytes;
        one.out.peak.framework_unservable_bytes = unservable_now(one);
      }
      one.awaits_framework = false;
      continue;
    }
    if (memory.host >= 0) {
      host_went(memory, batch.address[i]);
      if (action == Action::kAlloc)
        host_came(memory, batch.address[i],
                  {batch.size_bytes[i], library_of(batch.stack[i], tables)});
      continue;
    }
    if (memory.device < 0) continue;
    if (action == Action::kAlloc) {
      came(memory, batch.address[i], {batch.size_bytes[i], library_of(batch.stack[i], tables)});
    } else if (is_free(action)) {
      went(memory, batch.address[i]);
      const bool is_context =
          memory.use == DriverUse::kContexts || memory.use == DriverUse::kUnmeasured;
      if (is_context) end_context(devices_[static_cast<size_t>(memory.device)]);
    } else if (action == Action::kOom) {
      ++devices_[static_cast<size_t>(memory.device)].out.refused;
    }
    One& one = devices_[static_cast<size_t>(memory.device)];
    add_level(time_ns_, one.now.asked_bytes(), &one.out.physical);
  }
}

void DriverGatherer::framework_event(const EventBatch& batch, size_t event, bool is_delayed,
                                     One* one) {
  const uint64_t address = batch.address[event];
  switch (batch.action[event]) {
    case Action::kAlloc:
      return one->segments.block_came(address, batch.size_bytes[event]);
    case Action::kFreeRequested:
      return one->segments.block_freed(address, is_delayed || batch.frees_in_two_steps);
    case Action::kFreeCompleted:
      return one->segments.block_went(address);
    default:
      return;
  }
}

std::optional<uint64_t> DriverGatherer::unservable_now(const One& one) {
  const SegmentUse& use = one.segments;
  if (!use.is_followed() || one.now.framework_reserved_bytes != use.segments_bytes() ||
      one.now.framework_allocated_bytes != use.allocated_bytes())
    return std::nullopt;
  return use.pinned_free_bytes();
}

void DriverGatherer::sample(const TruthOfProcess& told, One* one) {
  if (one->out.type == kXpu) return;  // samples are of NVML's devices
  const bool has_place = told.place && one->out.place;
  if (has_place ? *told.place != *one->out.place : !told.is_only_device) return;
  // Before its place was known it may have been taken for another one.
  if (has_place && !one->is_surely_sampled) one->out.sampled.reset();
  if (!has_place && one->is_surely_sampled) return;
  one->is_surely_sampled = has_place;
  const auto& best = one->out.sampled;
  if (best && *best->truth->process_used_bytes > *told.truth.process_used_bytes) return;
  one->out.sampled = moment(*one);
  one->out.sampled->time_ns = told.truth.time_ns;
  one->out.sampled->truth = told.truth;
}

void DriverGatherer::pass_samples(uint64_t time_ns, const Tables& tables) {
  while (truths_ && next_truth_ < truths_->size() &&
         (*truths_)[next_truth_].truth.time_ns < time_ns) {
    const TruthOfProcess& told = (*truths_)[next_truth_++];
    for (; devices_with_pid_ < devices_.size(); ++devices_with_pid_) {
      const uint32_t process = devices_[devices_with_pid_].out.process;
      if (process >= tables.processes.size()) continue;
      devices_of_pid_[tables.processes[process].pid].push_back(devices_with_pid_);
    }
    const auto known = devices_of_pid_.find(told.pid);
    if (known == devices_of_pid_.end()) continue;
    for (const size_t device : known->second) {
      One& one = devices_[device];
      if (tables.processes[one.out.process].host == told.host) sample(told, &one);
    }
  }
}

DriverMoment DriverGatherer::moment(const One& one) const {
  DriverMoment out = one.now;
  out.time_ns = time_ns_, out.event = event_;
  const uint64_t page_bytes = (one.whole_pages + one.edge_pages.size()) * kDriverPageBytes;
  const uint64_t asked = one.now.of(DriverUse::kMemory);
  // Level Zero does not report its page size; its rounding counts as unexplained.
  out.rounding_bytes = page_bytes > asked && one.out.type != kXpu ? page_bytes - asked : 0;
  out.framework_unservable_bytes = unservable_now(one);
  for (size_t i = 0; i < one.by_library.size(); ++i) {
    if (one.by_library[i] != 0) out.libraries.push_back({libraries_[i], one.by_library[i]});
  }
  return out;
}

std::shared_ptr<const DriverMemories> DriverGatherer::finish(const Tables& tables) {
  auto out = std::make_shared<DriverMemories>();
  if (has_driver_) pass_samples(UINT64_MAX, tables);
  for (One& one : devices_) {
    const bool was_seen =
        std::any_of(memories_.begin(), memories_.end(), [&](const Memory& memory) {
          return memory.device >= 0 && &devices_[static_cast<size_t>(memory.device)] == &one;
        });
    if (!was_seen) continue;  // a framework's, and the driver was not recorded
    one.out.end = moment(one);
    for (Timeline* line : {&one.out.physical, &one.out.reserved}) {
      if (!line->buckets().empty()) line->finish(time_ns_);
    }
    std::vector<DriverMoment*> moments = {&one.out.peak, &one.out.end};
    if (one.out.asked) moments.push_back(&*one.out.asked);
    // With several devices a sample is of one of them, and which is known by their places alone.
    const auto is_of_process = [&](const One& other) {
      return other.out.process == one.out.process;
    };
    if (!one.is_surely_sampled && std::ranges::count_if(devices_, is_of_process) > 1)
      one.out.sampled.reset();
    if (one.out.sampled) moments.push_back(&*one.out.sampled);
    for (DriverMoment* moment : moments) {
      for (DriverLibrary& library : moment->libraries)
        library.is_framework = is_framework_library(library.name, one.has_framework);
      std::ranges::sort(moment->libraries, library_with_more_first);
    }
    out->devices.push_back(std::move(one.out));
  }
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const std::vector<uint64_t>& at_peak = pinned_[i].by_library_at_peak;
    for (size_t library = 0; library < at_peak.size(); ++library) {
      const std::string& name = libraries_[library];
      if (at_peak[library] != 0)
        hosts_[i].libraries.push_back(
            {name, at_peak[library], is_framework_library(name, true)});
    }
    std::ranges::sort(hosts_[i].libraries, library_with_more_first);
  }
  out->hosts = std::move(hosts_);
  return out->devices.empty() && out->hosts.empty() ? nullptr : out;
}

}  // namespace gpumemprof
