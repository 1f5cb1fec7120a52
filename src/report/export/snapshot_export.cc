#include "report/export/event_export.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "report/export/pickle_writer.h"

namespace gpumemprof {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

class Exporter {
 public:
  Exporter(const AllocatorSnapshot& snapshot, const TextSink& sink,
           const std::function<void(double)>& on_progress)
      : snapshot_(snapshot), sink_(sink), on_progress_(on_progress) {
    for (const AllocatorTrace& trace : snapshot.traces) total_ += trace.events.size();
  }

  Status write() {
    out_.begin_dict();
    out_.key("segments");
    if (Status ok = write_segments(false); !ok) return ok;
    out_.key("device_traces");
    if (Status ok = write_traces(); !ok) return ok;
    const bool has_host = std::ranges::any_of(snapshot_.traces, is_host);
    if (has_host) {
      out_.key("host_segments");
      if (Status ok = write_segments(true); !ok) return ok;
      out_.key("host_traces");
      if (Status ok = write_host_traces(); !ok) return ok;
    }
    if (snapshot_.settings.known) write_settings();
    out_.key("external_annotations");
    write_annotations();
    out_.end_dict();
    out_.finish();
    return flush(0);
  }

 private:
  /// Hands over what is ready, once it is more than `least`.
  Status flush(size_t least) {
    std::string& ready = out_.ready();
    if (ready.size() <= least) return {};
    Status done = sink_(ready);
    ready.clear();
    return done;
  }

  void number(std::string_view key, uint64_t value) {
    out_.key(key);
    out_.unsigned_integer(value);
  }
  void integer(std::string_view key, int64_t value) {
    out_.key(key);
    out_.integer(value);
  }
  void flag(std::string_view key, bool value) {
    out_.key(key);
    out_.boolean(value);
  }
  /// A text that comes again: written whole once.
  void word(std::string_view key, std::string_view value) {
    out_.key(key);
    out_.key(value);
  }
  void frames(uint32_t stack) {
    out_.key("frames");
    write_frames(stack);
  }

  /// Equal stacks and frames are written once, as PyTorch shares them.
  void write_frames(uint32_t stack) {
    if (const auto known = stacks_.find(stack); known != stacks_.end()) {
      return out_.recall(known->second);
    }
    out_.begin_list();
    const StackTable& table = snapshot_.tables.stacks;
    for (uint32_t node = stack; node != 0; node = table.node(node).parent) {
      write_frame(table.node(node).frame);
    }
    out_.end_list();
    stacks_[stack] = out_.remember();
  }

  void write_frame(uint32_t id) {
    if (const auto known = frames_.find(id); known != frames_.end()) {
      return out_.recall(known->second);
    }
    const Frame& frame = snapshot_.tables.stacks.frame(id);
    out_.begin_dict();
    integer("line", frame.line);
    word("filename", snapshot_.tables.strings.get(frame.file));
    word("name", snapshot_.tables.strings.get(frame.function));
    out_.end_dict();
    frames_[id] = out_.remember();
  }

  static int64_t stream_of(const AllocatorTrace& trace, uint16_t stream) {
    return stream < trace.streams.size() ? trace.streams[stream] : 0;
  }
  void write_pool(const AllocatorTrace& trace, std::string_view key, uint16_t pool) {
    const auto ids = pool < trace.pools.size() ? trace.pools[pool] : std::pair<int64_t, int64_t>();
    out_.key(key);
    out_.pair(ids.first, ids.second);
  }

  /// Pinned memory, which has lists of its own.
  static bool is_host(const AllocatorTrace& trace) { return trace.device < 0; }

  Status write_segments(bool of_host) {
    out_.begin_list();
    for (const AllocatorTrace& trace : snapshot_.traces) {
      if (is_host(trace) != of_host) continue;
      for (const AllocatorSegment& segment : trace.segments) {
        write_segment(trace, segment);
        if (Status ok = flush(kPieceBytes); !ok) return ok;
      }
    }
    out_.end_list();
    return {};
  }

  void write_segment(const AllocatorTrace& trace, const AllocatorSegment& segment) {
    out_.begin_dict();
    number("device", is_host(trace) ? 0 : static_cast<uint64_t>(trace.device));
    number("address", segment.address);
    number("total_size", segment.size_bytes);
    number("allocated_size", segment.allocated_bytes);
    number("active_size", segment.active_bytes);
    number("requested_size", segment.requested_bytes);
    integer("stream", stream_of(trace, segment.stream));
    word("segment_type", segment.is_large ? "large" : "small");
    write_pool(trace, "segment_pool_id", segment.pool);
    flag("is_expandable", segment.is_expandable);
    frames(segment.stack);
    out_.key("blocks");
    out_.begin_list();
    for (const AllocatorBlock& block : segment.blocks) write_block(block);
    out_.end_list();
    out_.end_dict();
  }

  void write_block(const AllocatorBlock& block) {
    out_.begin_dict();
    number("address", block.address);
    number("size", block.size_bytes);
    number("requested_size", block.requested_bytes);
    word("state", block.state == BlockState::kAllocated     ? "active_allocated"
                  : block.state == BlockState::kPendingFree ? "active_pending_free"
                                                            : "inactive");
    frames(block.stack);
    out_.end_dict();
  }

  /// One list a device index; those without a trace are empty.
  Status write_traces() {
    int32_t next = 0;
    out_.begin_list();
    for (const AllocatorTrace& trace : snapshot_.traces) {
      if (trace.device < next) continue;
      for (; next < trace.device; ++next) empty_list();
      ++next;
      if (Status ok = write_trace(trace); !ok) return ok;
    }
    out_.end_list();
    return {};
  }

  /// A list with one list: pinned memory is one device.
  Status write_host_traces() {
    out_.begin_list();
    for (const AllocatorTrace& trace : snapshot_.traces) {
      if (!is_host(trace)) continue;
      if (Status ok = write_trace(trace); !ok) return ok;
    }
    out_.end_list();
    return {};
  }

  Status write_trace(const AllocatorTrace& trace) {
    out_.begin_list();
    auto context = trace.contexts.begin();
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const bool has_context = context != trace.contexts.end() && context->event == i;
      write_event(trace, trace.events[i], has_context ? *context++ : EventContext{});
      if (Status ok = flush(kPieceBytes); !ok) return ok;
      constexpr uint64_t kEventsPerReport = 1 << 16;
      if (++written_ % kEventsPerReport == 0 && on_progress_) {
        on_progress_(static_cast<double>(written_) / static_cast<double>(total_));
      }
    }
    out_.end_list();
    return {};
  }

  void empty_list() {
    out_.begin_list();
    out_.end_list();
  }

  void write_event(const AllocatorTrace& trace, const AllocatorEvent& event,
                   const EventContext& context) {
    out_.begin_dict();
    word("action", action_name(event.action));
    number(event.action == Action::kOom ? "device_free" : "addr", event.address);
    number("size", event.size_bytes);
    integer("stream", stream_of(trace, event.stream));
    if (trace.has_times) integer("time_us", event.time_us);
    const auto& strings = snapshot_.tables.strings;
    if (trace.has_compile_context) {
      word("compile_context",
           context.compile_context == 0 ? "N/A" : strings.get(context.compile_context));
    }
    if (trace.has_user_metadata) {
      word("user_metadata", strings.get(context.user_metadata));
    }
    if (trace.has_pools) write_pool(trace, "pool_id", event.pool);
    if (event.stack != 0) frames(event.stack);
    out_.end_dict();
  }

  void write_settings() {
    const RecordedSettings& settings = snapshot_.settings;
    out_.key("allocator_settings");
    out_.begin_dict();
    out_.key("PYTORCH_CUDA_ALLOC_CONF");
    out_.text(settings.conf);
    integer("max_split_size", settings.max_split_size_bytes);
    out_.key("garbage_collection_threshold");
    out_.real(settings.garbage_collection_threshold);
    flag("expandable_segments", settings.expandable_segments);
    out_.key("roundup_power2_divisions");
    out_.begin_dict();
    for (auto [bucket_mib, divisions] : settings.roundup_power2_divisions) {
      out_.key(std::to_string(bucket_mib));
      out_.unsigned_integer(divisions);
    }
    out_.end_dict();
    out_.end_dict();
  }

  void write_annotations() {
    out_.begin_list();
    for (const Annotation& annotation : snapshot_.annotations) {
      out_.begin_dict();
      word("name", snapshot_.tables.strings.get(annotation.name));
      word("stage", annotation.is_begin ? "START" : "END");
      integer("device", annotation.device);
      integer("time_us", annotation.time_us);
      out_.end_dict();
    }
    out_.end_list();
  }

  const AllocatorSnapshot& snapshot_;
  const TextSink& sink_;
  const std::function<void(double)>& on_progress_;
  PickleWriter out_;
  absl::flat_hash_map<uint32_t, uint32_t> stacks_, frames_;  // id: memo number
  uint64_t total_ = 0, written_ = 0;
};

}  // namespace

Status export_snapshot(const AllocatorSnapshot& snapshot, const TextSink& sink,
                       const std::function<void(double)>& on_progress) {
  return Exporter(snapshot, sink, on_progress).write();
}

}  // namespace gpumemprof
