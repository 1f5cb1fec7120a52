#include "report/export/event_export.h"

#include <algorithm>
#include <optional>
#include <protozero/pbf_writer.hpp>

#include "report/describe/facts.h"
#include "report/export/perfetto_fields.h"
#include "report/export/perfetto_interned.h"
#include "report/words.h"
#include "trace/live_state_apply.h"

namespace gpumemprof {
namespace {

namespace pf = perfetto;
using protozero::pbf_writer;

constexpr uint32_t kSequence = 1;
constexpr size_t kNameWidth = 512;

/// Track ids: a kind in the upper half, our own index in the lower.
enum class TrackKind : uint64_t { kProcess = 1, kThread, kLive, kReserved };
uint64_t track_id(TrackKind kind, uint64_t index) {
  return static_cast<uint64_t>(kind) << 32 | (index & UINT32_MAX);
}

/// The live bytes of every device after each event of a batch.
class Levels : public LiveObserver {
 public:
  void on_batch(const EventBatch& batch, size_t) { live_bytes.assign(batch.size(), 0); }
  void on_alloc(size_t i, uint16_t, const DeviceState& s) { live_bytes[i] = s.live_bytes; }
  void on_free(size_t i, uint16_t, const DeviceState& s, const LiveBlock&) {
    live_bytes[i] = s.live_bytes;
  }
  void on_other(size_t i, uint16_t, const DeviceState& s) { live_bytes[i] = s.live_bytes; }
  std::vector<uint64_t> live_bytes;
};

class PerfettoWriter {
 public:
  PerfettoWriter(const EventSource& source, const TextSink& sink)
      : tables_(source.tables()),
        has_times_(source.info().can.times),
        sink_(sink),
        interned_(source.tables()) {}

  /// Without times, an event's number is used as its time.
  uint64_t time_of(const EventBatch& batch, size_t i) const {
    return has_times_ ? batch.time_ns[i] : batch.first_event + i;
  }

  void begin(uint64_t first_time_ns) {
    first_time_ns_ = first_time_ns;
    // Only a recording knows its processes, and times them on the monotonic clock.
    const bool is_wall_clock = has_times_ && tables_.processes.empty();
    const uint32_t clock_id =
        is_wall_clock ? pf::clock_snapshot::kRealtime : pf::clock_snapshot::kMonotonic;
    std::string packet;
    pbf_writer message(packet);
    message.add_uint32(pf::packet::kSequenceId, kSequence);
    message.add_uint32(pf::packet::kSequenceFlags, pf::packet::kStateCleared);
    {
      pbf_writer defaults(message, pf::packet::kDefaults);
      defaults.add_uint32(pf::packet::kTimestampClockId, clock_id);
    }
    {
      pbf_writer clocks(message, pf::packet::kClockSnapshot);
      const auto add = [&](uint32_t id, uint64_t time_ns) {
        pbf_writer clock(clocks, pf::clock_snapshot::kClocks);
        clock.add_uint32(pf::clock_snapshot::kClockId, id);
        clock.add_uint64(pf::clock_snapshot::kTimestamp, time_ns);
      };
      add(clock_id, first_time_ns);
      // The time of a heap profile is read on the coarse twin of the same clock.
      add(pf::clock_snapshot::kCoarse, first_time_ns);
      if (!tables_.processes.empty()) {
        const WallTime wall = wall_time(tables_.processes[0], first_time_ns);
        if (wall.known && wall.time_us > 0) {
          add(pf::clock_snapshot::kRealtime, static_cast<uint64_t>(wall.time_us) * 1000);
        }
      }
      clocks.add_uint32(pf::clock_snapshot::kPrimaryTraceClock, clock_id);
    }
    emit(packet);
  }

  void write(const EventBatch& batch, const Levels& levels) {
    size_t next_total = 0;
    for (size_t i = 0; i < batch.size() && status_; ++i) {
      const uint16_t device = batch.device[i];
      if (batch.action[i] == Action::kAlloc || is_free(batch.action[i])) {
        counter(TrackKind::kLive, device, time_of(batch, i), levels.live_bytes[i]);
      } else if (batch.action[i] == Action::kOom) {
        instant(thread_track(batch.thread[i], device), time_of(batch, i), "out of memory",
                "refused_bytes", batch.size_bytes[i], batch.stack[i]);
      }
      for (; next_total < batch.totals.size() && batch.totals[next_total].event <= i;
           ++next_total) {
        if (batch.totals[next_total].event != i) continue;
        counter(TrackKind::kReserved, device, time_of(batch, i),
                batch.totals[next_total].reserved_bytes);
      }
    }
  }

  void end(const LiveState& state, uint64_t last_time_ns) {
    for (size_t i = 0; i < state.devices().size(); ++i) {
      const auto device = static_cast<uint16_t>(i);
      const DeviceState& figures = state.devices()[i];
      if (figures.peak_bytes == 0) continue;
      const std::string name = device_name(device_at(tables_, i));
      // What was live before the first event may never have been surpassed.
      const uint64_t peak_time_ns =
          std::max(has_times_ ? figures.peak_time_ns : figures.peak_event, first_time_ns_);
      instant(process_track(device), peak_time_ns, "peak of " + name, "live_bytes",
              figures.peak_bytes, UINT32_MAX);
      heap_profile(device, peak_time_ns, name + " at the peak", state.holders_at_peak(device));
      heap_profile(device, last_time_ns, name + " at the end", state.holders_now(device));
    }
  }

  Status finish() {
    flush(0);
    return status_;
  }

 private:
  void flush(size_t least) {
    if (out_.size() < least || out_.empty() || !status_) return;
    status_ = sink_(out_);
    out_.clear();
  }
  void emit(const std::string& packet) {
    pbf_writer trace(out_);
    trace.add_message(pf::trace::kPacket, packet);
    flush(kFlushBytes);
  }
  pbf_writer begin_packet(std::string* packet) {
    pbf_writer message(*packet);
    message.add_uint32(pf::packet::kSequenceId, kSequence);
    message.add_uint32(pf::packet::kSequenceFlags, pf::packet::kNeedsState);
    if (interned_.has_pending()) {
      message.add_message(pf::packet::kInternedData, interned_.take());
    }
    return message;
  }

  void emit_track(uint64_t track, std::optional<uint64_t> parent, const auto& describe) {
    std::string packet;
    pbf_writer message = begin_packet(&packet);
    pbf_writer descriptor(message, pf::packet::kTrackDescriptor);
    descriptor.add_uint64(pf::track::kUuid, track);
    if (parent) descriptor.add_uint64(pf::track::kParentUuid, *parent);
    describe(descriptor);
    descriptor.commit();
    emit(packet);
  }

  uint32_t pid_of(uint16_t device) const {
    return process_at(tables_, device_at(tables_, device).process).pid;
  }

  /// True the first time; then the track's descriptor is still to be written.
  bool is_new(uint64_t track) { return told_.try_emplace(track, true).second; }

  uint64_t process_track_of(uint32_t process_index) {
    const uint64_t track = track_id(TrackKind::kProcess, process_index);
    if (!is_new(track)) return track;
    const Process& process = process_at(tables_, process_index);
    emit_track(track, std::nullopt, [&](pbf_writer& descriptor) {
      if (process_index < tables_.processes.size()) {
        pbf_writer part(descriptor, pf::track::kProcess);
        part.add_int32(pf::process::kPid, static_cast<int32_t>(process.pid));
        part.add_string(pf::process::kName, process_label(process, kNameWidth));
      } else {
        descriptor.add_string(pf::track::kName, "a process that was not recorded");
      }
    });
    return track;
  }
  uint64_t process_track(uint16_t device) {
    return process_track_of(device_at(tables_, device).process);
  }

  /// The process's track where the thread is not known.
  uint64_t thread_track(uint32_t index, uint16_t device) {
    if (index >= tables_.threads.size()) return process_track(device);
    const Thread& thread = tables_.threads[index];
    const uint64_t parent = process_track_of(thread.process);
    const uint64_t track = track_id(TrackKind::kThread, index);
    if (!is_new(track)) return track;
    const uint32_t pid = process_at(tables_, thread.process).pid;
    emit_track(track, parent, [&](pbf_writer& descriptor) {
      pbf_writer part(descriptor, pf::track::kThread);
      part.add_int32(pf::thread::kPid, static_cast<int32_t>(pid));
      part.add_int32(pf::thread::kTid, static_cast<int32_t>(thread.tid));
      part.add_string(pf::thread::kName, printable(thread.name));
    });
    return track;
  }

  uint64_t counter_track(TrackKind kind, uint16_t device) {
    const uint64_t track = track_id(kind, device);
    if (!is_new(track)) return track;
    emit_track(track, process_track(device), [&](pbf_writer& descriptor) {
      const char* what = kind == TrackKind::kLive ? " live" : " reserved";
      descriptor.add_string(pf::track::kName, device_name(device_at(tables_, device)) + what);
      pbf_writer part(descriptor, pf::track::kCounter);
      part.add_int32(pf::counter::kUnit, pf::counter::kSizeBytes);
    });
    return track;
  }

  void counter(TrackKind kind, uint16_t device, uint64_t time_ns, uint64_t bytes) {
    const uint64_t track = counter_track(kind, device);
    scratch_.clear();
    pbf_writer message = begin_packet(&scratch_);
    message.add_uint64(pf::packet::kTimestamp, time_ns);
    pbf_writer event(message, pf::packet::kTrackEvent);
    event.add_int32(pf::track_event::kType, pf::track_event::kCounter);
    event.add_uint64(pf::track_event::kTrackUuid, track);
    event.add_int64(pf::track_event::kCounterValue, static_cast<int64_t>(bytes));
    event.commit();
    emit(scratch_);
  }

  /// `stack` UINT32_MAX: without one.
  void instant(uint64_t track, uint64_t time_ns, const std::string& name, const char* key,
               uint64_t value, uint32_t stack) {
    const uint64_t callstack = stack == UINT32_MAX ? 0 : interned_.stack(stack);
    std::string packet;
    pbf_writer message = begin_packet(&packet);
    message.add_uint64(pf::packet::kTimestamp, time_ns);
    pbf_writer event(message, pf::packet::kTrackEvent);
    event.add_int32(pf::track_event::kType, pf::track_event::kInstant);
    event.add_uint64(pf::track_event::kTrackUuid, track);
    event.add_string(pf::track_event::kName, name);
    if (callstack != 0) event.add_uint64(pf::track_event::kCallstackIid, callstack);
    pbf_writer annotation(event, pf::track_event::kAnnotations);
    annotation.add_string(pf::annotation::kName, key);
    annotation.add_uint64(pf::annotation::kUint, value);
    annotation.commit(), event.commit();
    emit(packet);
  }

  void heap_profile(uint16_t device, uint64_t time_ns, const std::string& name,
                    const std::vector<Holder>& holders) {
    if (holders.empty()) return;
    std::vector<uint64_t> stacks;
    for (const Holder& holder : holders) stacks.push_back(interned_.stack(holder.stack));
    std::string packet;
    pbf_writer message = begin_packet(&packet);
    message.add_uint64(pf::packet::kTimestamp, time_ns);
    pbf_writer profile(message, pf::packet::kProfilePacket);
    pbf_writer dump(profile, pf::heap::kProcessDumps);
    dump.add_uint64(pf::heap::kPid, pid_of(device));
    dump.add_uint64(pf::heap::kTimestamp, time_ns);
    dump.add_string(pf::heap::kHeapName, name);
    for (size_t i = 0; i < holders.size(); ++i) {
      pbf_writer sample(dump, pf::heap::kSamples);
      sample.add_uint64(pf::heap::kCallstackId, stacks[i]);
      sample.add_uint64(pf::heap::kSelfAllocated, holders[i].bytes);
      sample.add_uint64(pf::heap::kAllocCount, holders[i].count);
    }
    dump.commit(), profile.commit();
    emit(packet);
  }

  const Tables& tables_;
  bool has_times_;
  uint64_t first_time_ns_ = 0;
  const TextSink& sink_;
  PerfettoInterned interned_;
  Status status_;
  std::string out_, scratch_;
  absl::flat_hash_map<uint64_t, bool> told_;
};

}  // namespace

Status export_perfetto(EventSource& source, const TextSink& sink,
                       const std::function<void(double)>& on_progress) {
  LiveState state;
  if (const LiveState* before = source.state_before_first_event()) state = *before;
  PerfettoWriter writer(source, sink);
  Levels levels;
  EventBatch batch;
  uint64_t last_time_ns = 0;
  bool has_begun = false;
  for (;;) {
    Result<bool> more = source.next(&batch);
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    if (batch.size() == 0) continue;
    if (!has_begun) writer.begin(writer.time_of(batch, 0));
    has_begun = true;
    last_time_ns = writer.time_of(batch, batch.size() - 1);
    state.apply_observed(batch, levels);
    writer.write(batch, levels);
    if (on_progress) on_progress(source.progress());
  }
  // A file of one moment has no event; nor is a trace of no bytes one.
  if (!has_begun) writer.begin(0);
  writer.end(state, last_time_ns);
  return writer.finish();
}

}  // namespace gpumemprof
