#include "live/recording_follower.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "recording/missing_events.h"
#include "recording/module_names.h"
#include "recording/raw_file.h"
#include "recording/recording_file.h"
#include "recording/sealed_file.h"
#include "trace/holder_lines.h"
#include "trace/label_frames.h"
#include "trace/module_path.h"
#include "trace/tables.h"

namespace gpumemprof {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLockTries = 20;
constexpr int kTries = 8;
constexpr useconds_t kLockWaitUs = 2'000;

/// The memory to which a device counts: TensorFlow has several allocators on one device, and the
/// device's total is wanted. Regions, which contain a pool's blocks, are separate.
Device as_memory(Device device) {
  if (is_tensorflow(device) && device.layer != Layer::kDriver) {
    device.name.clear();
    device.layer = Layer::kAllocator;
    device.size_is_requested = false;
  }
  return device;
}

FollowedDevice describe(const Device& device, const DeviceState& state) {
  FollowedDevice out;
  out.name = device_name(device);
  out.is_tensorflow = is_tensorflow(device);
  if (out.is_tensorflow && device.type != kTensorflowOther) {
    out.name = device.type == kTensorflowCpu ? "tensorflow:cpu"
                                             : "tensorflow:gpu:" + std::to_string(device.index);
  }
  out.is_cpu = is_host_memory(device), out.index = device.index;
  out.live_bytes = state.live_bytes, out.live_count = state.live_count;
  out.peak_bytes = state.peak_bytes;
  out.alloc_count = state.actions[static_cast<size_t>(Action::kAlloc)];
  // A free has one half on a CPU; on a GPU the first ends the block and the second may follow. So
  // frees are counted by blocks that ended, plus frees of unseen blocks.
  out.free_count = frees_of(state);
  out.alloc_bytes = state.total_bytes;
  out.unmatched_frees = state.unmatched_frees;
  out.oom_count = state.actions[static_cast<size_t>(Action::kOom)];
  if (state.has_totals) {
    out.framework_allocated_bytes = state.framework_allocated_bytes;
    out.framework_reserved_bytes = state.framework_reserved_bytes;
  }
  return out;
}

/// Of the innermost module in whose call it was allocated; empty if unknown.
std::string module_in(const std::vector<std::string>& stack) {
  const std::string begin = std::string(kModuleFile) + ' ';
  for (const std::string& line : stack) {
    if (line.starts_with(begin)) return line.substr(begin.size());
  }
  return {};
}

/// The same for several stacks: their common name, or none.
std::string module_of(const HolderLine& line, ModuleNames& names, Tables& tables) {
  std::string name;
  for (const Holder& holder : line.stacks) {
    std::string one = module_in(stack_lines(tables, names.named(0, holder.stack, &tables)));
    if (line.stacks.size() > 1) one = without_numbers(one);
    if (!name.empty() && one != name) return {};
    name = std::move(one);
    if (name.empty()) return {};
  }
  return name;
}

/// Sets the category of most of a line's bytes.
void find_category(const HolderLine& line, const FollowedCategories& told, FollowedHolder* out) {
  std::vector<uint64_t> bytes(told.all.size());
  for (const Holder& holder : line.stacks) {
    const auto kind = told.by_stack.find(holder.stack);
    if (kind != told.by_stack.end()) bytes[kind->second.kind] += holder.bytes;
  }
  const auto most = std::ranges::max_element(bytes);
  if (most == bytes.end() || *most == 0) return;
  out->category = told.all[size_t(most - bytes.begin())].name;
  out->has_other_categories = *most < line.bytes;
}

std::vector<FollowedHolder> name_holders(const LiveState& state, uint16_t device, size_t most,
                                         const FollowedCategories& told, ModuleNames& names,
                                         Tables& tables) {
  std::vector<FollowedHolder> out;
  if (most == 0) return out;
  const std::vector<HolderLine> lines = group_by_line(state.holders_now(device), tables);
  for (size_t i = 0; i < std::min(most, lines.size()); ++i) {
    FollowedHolder& named = out.emplace_back();
    named.bytes = lines[i].bytes, named.count = lines[i].count;
    named.stacks = lines[i].stacks.size();
    const uint32_t stack = names.named(0, lines[i].stacks.front().stack, &tables);
    named.stack = stack_lines(tables, stack);
    named.module = module_of(lines[i], names, tables);
    find_category(lines[i], told, &named);
    if (lines[i].node != 0) named.line = stack_lines(tables, lines[i].node).front();
  }
  return out;
}

}  // namespace

uint64_t frees_of(const DeviceFigures& figures) {
  uint64_t ended = figures.actions[static_cast<size_t>(Action::kAlloc)], all = 0;
  for (const uint64_t part : {figures.repeated_allocs, figures.live_count})
    ended -= std::min<uint64_t>(ended, part);
  return __builtin_add_overflow(ended, figures.unmatched_frees, &all) ? UINT64_MAX : all;
}

double age_seconds(const FollowedState& state, int64_t now_ns) {
  return static_cast<double>(std::max<int64_t>(0, now_ns - state.looked_steady_ns)) * 1e-9;
}

std::string why_not_exact(const FollowedState& state, int64_t now_ns) {
  const double age = age_seconds(state, now_ns);
  if (!state.exact || age <= kLateSeconds) return state.why_inexact;
  return "read " + std::to_string(static_cast<int64_t>(age)) +
         " s before: reading takes longer than the interval";
}

struct RecordingFollower::Impl {
  std::unique_ptr<RecordingFile> file;
  format::FileHeader header{};
  Tables tables;
  std::unique_ptr<SealedFile> sealed;
  std::unique_ptr<RawFile> raw;
  LiveState settled;                         // after all sealed events that were read
  std::unique_ptr<FollowObserver> observer;  // of the same events; may be null
  bool began = false;
  uint64_t next_sealed = 0;  // number of the first sealed event that was not read
  uint64_t unreadable_events = 0;
  uint64_t known_missing = 0;  // records that stayed away when we looked again and again
  uint64_t known_trouble = 0;  // sealed chunks that could not be read from the beginning either
  bool last_try = false, has_begun_again = false;  // of this look
  bool wants_held = false;
  size_t most_holders = 0;
  std::vector<uint16_t> same_device;  // by index in tables
  std::vector<Mark> module_marks, unsealed_marks;  // of names, sealed for good and not
  FollowedState last;
  Clock::time_point next_look{};
  bool has_looked = false;

  /// Raw and sealed definitions may each have created an entry for the same device, and several
  /// allocators share one: the first entry stands for all, so that a block freed after sealing is
  /// found, and the peak is that of the whole.
  void unite_devices(EventBatch* batch) {
    for (size_t i = same_device.size(); i < tables.devices.size(); ++i) {
      const Device device = as_memory(tables.devices[i]);
      size_t first = 0;
      while (first < i && as_memory(tables.devices[first]) != device) ++first;
      same_device.push_back(static_cast<uint16_t>(first));
    }
    for (uint16_t& device : batch->device) {
      if (device < same_device.size()) device = same_device[device];
    }
  }

  /// A recorded stack has the class of a module; marks, usually later ones, have its path.
  static void take_module_marks(const EventBatch& batch, std::vector<Mark>* marks) {
    std::ranges::copy_if(batch.marks, std::back_inserter(*marks),
                         [](const Mark& mark) { return mark.kind == MarkKind::kModule; });
  }

  static void apply(const EventBatch& batch, FollowObserver* observer, LiveState* state) {
    if (observer)
      observer->apply(batch, state);
    else
      state->apply(batch);
  }

  Status take_sealed() {
    if (!began) {
      began = true;
      if (const LiveState* before = sealed->state_before()) {
        const FileIds& ids = sealed->ids();
        if (auto done = settled.absorb(*before, {ids.stacks, ids.threads, ids.devices}); !done)
          return done;
        next_sealed = sealed->first_event();
        if (observer) observer->begin(settled);
      }
      // Marks that still apply to blocks from before the remaining events.
      EventBatch marks;
      if (sealed->read_marks_before(&marks)) {
        take_module_marks(marks, &module_marks);
        if (observer) observer->apply(marks, &settled);
      }
    }
    EventBatch batch;
    for (const ChunkRef& chunk : sealed->events()) {
      const uint64_t first = chunk.header.first_ordinal;
      if (first < next_sealed) continue;
      next_sealed = first + chunk.header.count;
      if (sealed->read_events(chunk, &batch)) {
        unite_devices(&batch);
        take_module_marks(batch, &module_marks);
        apply(batch, observer.get(), &settled);
      } else {
        unreadable_events += chunk.header.count;
      }
    }
    return {};
  }

  uint64_t trouble() const { return unreadable_events + sealed->losses().damage.size(); }

  /// All anew, from the checkpoint that stands for what was dropped.
  void begin_again() {
    has_begun_again = true;
    if (observer) observer = observer->anew();
    tables = {};
    tables.processes.emplace_back();
    sealed = std::make_unique<SealedFile>(file.get(), &tables, 0);
    settled = {};
    began = false;
    next_sealed = unreadable_events = 0;
    same_device.clear(), module_marks.clear();
  }

  /// Records that are neither in the file nor sealed: lost, or moved during the look.
  uint64_t missing() {
    uint64_t count = raw->losses().changed_chunks;
    ConsumedTable streams = sealed->consumed();
    for (const auto& [id, stream] : raw->streams()) streams[id];
    for (const auto& [id, consumed] : streams) {
      const auto known = raw->streams().find(id);
      count += missing_records(consumed, known == raw->streams().end() ? nullptr : &known->second);
    }
    return count;
  }

  /// Everything that is in the file now. False if it changed so that a part was missed: the place
  /// of a sealed chunk may be overwritten between the two scans.
  Result<bool> read() {
    // Rescanned each time: the places of sealed chunks are reused, so an offset may have different
    // content now. Only sealed data is stable.
    raw =
        std::make_unique<RawFile>(file.get(), header, &tables, 0, &sealed->ids().thread_of_stream);
    auto page = read_first_page(*file);
    if (!page) return std::unexpected(page.error());
    if (page->finished) sealed->expect_events(page->finished->events);
    if (auto done = scan_chunks(*file, header.recording_id, &raw->index()); !done)
      return std::unexpected(done.error());
    sealed->take(raw->index().chunks);
    if (auto done = raw->refresh(); !done) return std::unexpected(done.error());
    sealed->take(raw->index().chunks);
    // --max-disk dropped events that were never read here, or drops them now.
    const bool has_gap = began && sealed->first_event() > next_sealed;
    if (!has_gap) {
      if (auto done = take_sealed(); !done) return std::unexpected(done.error());
    }
    if (!has_begun_again && (has_gap || trouble() > known_trouble)) return begin_again(), read();
    LiveState now = settled;
    const std::unique_ptr<FollowObserver> observer_now = observer ? observer->copy() : nullptr;
    Merger merger;
    const auto& consumed = sealed->consumed();
    for (auto& [id, stream] : raw->streams()) {
      if (auto known = consumed.find(id); known != consumed.end()) stream.consumed = known->second;
      merger.add(std::make_unique<RawLane>(file.get(), &stream, 0, &raw->losses()));
    }
    EventBatch batch;
    unsealed_marks.clear();
    while (merger.next(&batch)) {
      unite_devices(&batch);
      take_module_marks(batch, &unsealed_marks);
      apply(batch, observer_now.get(), &now);
    }
    const uint64_t gone = missing();
    const bool whole = gone <= known_missing && now.event_count() >= last.events;
    if (whole || last_try) publish(now, *page, gone, observer_now.get());
    return whole;
  }

  static std::vector<FollowedHeld> held_on(uint16_t device, const LiveState& now,
                                           FollowObserver* told_by) {
    if (told_by) return told_by->held_now(device, now);
    std::vector<FollowedHeld> held;
    for (const Holder& holder : now.holders_now(device))
      held.push_back({holder.stack, {}, std::nullopt, holder.bytes, holder.count});
    return held;
  }

  void publish(const LiveState& now, const FirstPage& page, uint64_t gone,
               FollowObserver* told_by) {
    known_missing = gone, known_trouble = trouble();
    last = {};
    last.events = now.event_count();
    last.has_held = wants_held;
    last.looked_steady_ns = Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    ModuleNames names;
    for (const auto* marks : {&module_marks, &unsealed_marks}) {
      for (const Mark& mark : *marks) names.add(0, mark);
    }
    for (size_t i = 0; i < now.devices().size() && i < tables.devices.size(); ++i) {
      const DeviceState& state = now.devices()[i];
      uint64_t any = 0;
      for (uint64_t count : state.actions) any += count;
      if (any == 0 || tables.devices[i].layer == Layer::kDriver || is_unseen_malloc(tables.devices[i]))
        continue;
      last.devices.push_back(describe(tables.devices[i], state));
      FollowedDevice& device = last.devices.back();
      if (wants_held) {
        device.held = held_on(static_cast<uint16_t>(i), now, told_by);
        for (FollowedHeld& held : device.held) held.stack = names.named(0, held.stack, &tables);
      }
      if (told_by) {
        device.categories = told_by->live_now(static_cast<uint16_t>(i), now);
        device.growth = told_by->growth_now(static_cast<uint16_t>(i), now, last.looked_steady_ns);
      }
      device.holders = name_holders(now, static_cast<uint16_t>(i), most_holders,
                                    device.categories, names, tables);
    }
    if (told_by) last.driver = told_by->driver_now();
    const MissingEvents missing = missing_events(*file, page, *sealed, *raw, raw->losses().events);
    uint64_t lost = missing.events + unreadable_events;
    const auto& footer = sealed->footer();
    const format::FileState& state = footer ? footer->state : page.state;
    for (uint32_t kind = 0; kind < format::kLossKinds; ++kind) {
      if (kind != format::kLostStack) lost += state.lost[kind];
    }
    if (footer) lost += footer->lost.damaged_records;
    last.lost_events = lost;
    last.has_exited = page.state.clean_exit != 0;
    last.exact = lost == 0 && missing.uncounted.empty() && raw->losses().damaged_records == 0;
    if (last.exact) return;
    last.why_inexact = lost != 0 ? std::to_string(lost) + " events are missing in the recording"
                       : missing.uncounted.empty() ? "records of the recording are damaged"
                                                   : missing.uncounted.front();
  }
};

RecordingFollower::RecordingFollower(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RecordingFollower::RecordingFollower(RecordingFollower&&) noexcept = default;
RecordingFollower& RecordingFollower::operator=(RecordingFollower&&) noexcept = default;
RecordingFollower::~RecordingFollower() = default;

Result<RecordingFollower> RecordingFollower::open(const std::string& gmp_path, size_t holders,
                                                  const FollowObserverFactory& observer) {
  auto impl = std::make_unique<Impl>();
  impl->most_holders = holders;
  auto file = RecordingFile::open(gmp_path, FileMode::kRead);
  if (!file) return std::unexpected(file.error());
  impl->file = std::move(*file);
  auto header = read_file_header(*impl->file);
  if (!header) return std::unexpected(header.error());
  impl->header = *header;
  impl->tables.processes.emplace_back();
  impl->sealed = std::make_unique<SealedFile>(impl->file.get(), &impl->tables, 0);
  if (observer) impl->observer = observer(impl->tables);
  return RecordingFollower(std::move(impl));
}

namespace {

/// A text of the header, which need not be terminated.
template <size_t kBytes>
std::string header_text(const char (&text)[kBytes]) {
  return {text, strnlen(text, kBytes)};
}

}  // namespace

int RecordingFollower::pid() const { return static_cast<int>(impl_->header.pid); }
uint64_t RecordingFollower::start_ticks() const { return impl_->header.start_ticks; }
std::string RecordingFollower::host() const { return header_text(impl_->header.host); }
std::string RecordingFollower::command() const { return header_text(impl_->header.command); }

const Tables& RecordingFollower::tables() const { return impl_->tables; }

namespace {

/// Of this thread: what it waits for a CPU, or for a sealer, costs nobody anything.
std::chrono::nanoseconds cpu_time() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Result<FollowedState> RecordingFollower::look(bool with_held) {
  const std::chrono::nanoseconds begin = cpu_time();
  if (Clock::now() < impl_->next_look && (!with_held || impl_->last.has_held)) return impl_->last;
  impl_->wants_held = with_held, impl_->has_begun_again = false;
  // While a sealer works, chunks move; with its lock they do not. The sealer retries.
  bool locked = false;
  for (int i = 0; i < kLockTries && !(locked = impl_->file->lock(false)); ++i) usleep(kLockWaitUs);
  Result<bool> done = false;
  for (int i = 1; done && !*done && i <= kTries; ++i) {
    if (i > 1) usleep(kLockWaitUs);
    impl_->last_try = i == kTries;
    done = impl_->read();
  }
  if (locked) impl_->file->unlock();
  if (!done) return std::unexpected(done.error());
  // The first look reads all that is there, the next one only what came since.
  impl_->next_look = Clock::now() + (impl_->has_looked ? 9 : 0) * (cpu_time() - begin);
  impl_->has_looked = true;
  return impl_->last;
}

}  // namespace gpumemprof
