#include "report/export/event_export.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "analysis/categories/attribution.h"
#include "report/words.h"
#include "trace/followed_allocator.h"
#include "trace/live_state_apply.h"

namespace gpumemprof {
namespace {

constexpr std::string_view kCsvHeader =
    "time_ns,action,address,size_bytes,requested_bytes,device,layer,stream,thread,process,category,"
    "module,"
    "phase,step,stack\n";

void append_number(std::string* out, uint64_t value) {
  char digits[20];
  out->append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

/// A spreadsheet takes a cell that begins so for a formula, which names of files could be.
bool is_formula(std::string_view text) { return text.find_first_of("=+-@") == 0; }

/// A cell of text: numbers are written as they are.
void append_csv_field(std::string* out, std::string_view text) {
  if (is_formula(text)) return append_csv_field(out, '\'' + std::string(text));
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    *out += text;
    return;
  }
  *out += '"';
  for (char c : text) {
    if (c == '"') *out += '"';
    *out += c;
  }
  *out += '"';
}

/// Writes events; the text of every frame and device is made once.
class EventWriter {
 public:
  EventWriter(const EventSource& source, ExportFormat format)
      : tables_(source.tables()),
        has_times_(source.info().can.times),
        json_(format == ExportFormat::kJsonLines),
        attributions_(tables_) {}

  /// What was said before event `i` of the batch.
  void take_marks(const EventBatch& batch, size_t i) {
    for (; next_mark_ < batch.marks.size() && batch.marks[next_mark_].before_event <= i;
         ++next_mark_) {
      const Mark& mark = batch.marks[next_mark_];
      if (mark.kind != MarkKind::kStep || mark.thread >= tables_.threads.size()) continue;
      next_step_[tables_.threads[mark.thread].process] = static_cast<int64_t>(mark.value) + 1;
    }
  }
  void end_batch(const EventBatch& batch) {
    take_marks(batch, batch.size());
    next_mark_ = 0;
  }

  void write(const EventBatch& batch, size_t i, uint64_t size_bytes, std::string* out) {
    take_marks(batch, i);
    const Action action = batch.action[i];
    const Device& device = device_at(tables_, batch.device[i]);
    const bool has_address = action != Action::kOom && action != Action::kSnapshot;
    const bool has_size = size_bytes != 0 || !is_free(action);
    std::string& line = *out;
    const char* const begin = json_ ? "{" : "";
    number(line, "time_ns", batch.time_ns[i], has_times_, begin);
    text(line, "action", action_name(action), json_ && !has_times_ ? begin : ",");
    number(line, "address", batch.address[i], has_address);
    number(line, "size_bytes", size_bytes, has_size);
    const uint64_t requested = requested_of(batch, i);
    number(line, "requested_bytes", requested != 0 ? requested : size_bytes,
           requested != 0 || (has_size && device.size_is_requested) ||
               (action == Action::kAlloc && is_followed(batch.device[i])));
    text(line, "device", name_of(batch.device[i]));
    text(line, "layer", layer_name(device.layer));
    const uint32_t thread = batch.thread[i];
    const bool has_thread = thread < tables_.threads.size();
    write_stream(line, batch, i);
    number(line, "thread", has_thread ? tables_.threads[thread].tid : 0, has_thread);
    number(line, "process", process_at(tables_, device.process).pid,
           device.process < tables_.processes.size());
    if (!json_) line += ',';  // category: known when a block's life is over
    write_work(line, batch.stack[i]);
    write_step(line, batch, i, device.process);
    if (json_) {
      write_json_stack(line, batch.stack[i]);
      line += "}\n";
    } else {
      write_csv_stack(line, batch.stack[i]);
      line += '\n';
    }
  }

 private:
  /// 0 where it is the size, or not known.
  static uint64_t requested_of(const EventBatch& batch, size_t i) {
    auto at =
        std::lower_bound(batch.requested.begin(), batch.requested.end(), i,
                         [](const RequestedSize& r, size_t event) { return r.event < event; });
    return at != batch.requested.end() && at->event == i ? at->bytes : 0;
  }
  void key(std::string& line, std::string_view name, std::string_view before) {
    line += before;
    if (json_) ((line += '"') += name) += "\":";
  }
  void number(std::string& line, std::string_view name, uint64_t value, bool known,
              std::string_view before = ",") {
    if (!known && json_) return;
    key(line, name, before);
    if (known) append_number(&line, value);
  }
  void write_stream(std::string& line, const EventBatch& batch, size_t i) {
    // A followed allocator reports the stream of every event except the second half of a free.
    const bool has_column = !batch.stream.empty();
    const bool known =
        has_column || (is_followed(batch.device[i]) && batch.action[i] != Action::kFreeCompleted);
    if (!known && json_) return;
    key(line, "stream", ",");
    if (known) line += std::to_string(has_column ? batch.stream[i] : stream_of(batch, i));
  }
  static int64_t stream_of(const EventBatch& batch, size_t i) {
    auto at =
        std::lower_bound(batch.details.begin(), batch.details.end(), i,
                         [](const AllocatorDetail& d, size_t event) { return d.event < event; });
    return at != batch.details.end() && at->event == i ? at->stream : 0;
  }
  bool is_followed(uint16_t device) {
    if (is_followed_.size() <= device) is_followed_.resize(size_t{device} + 1, kNotAsked);
    if (is_followed_[device] == kNotAsked) {
      const FollowedAllocator* known = allocator_of(tables_, device_at(tables_, device));
      is_followed_[device] = known != nullptr && known->is_followed;
    }
    return is_followed_[device] == 1;
  }
  /// The program's own phase, where one was open, else that of a training loop.
  void write_work(std::string& line, uint32_t stack) {
    const Attribution work = stack == 0 ? Attribution{} : attributions_.of(stack);
    names(line, "module", work.module);
    names(line, "phase", work.user_phase.empty() ? work_phase_name(work.phase) : work.user_phase);
  }
  void names(std::string& line, std::string_view name, std::string_view value) {
    if (value.empty() && json_) return;
    key(line, name, ",");
    if (json_) {
      append_json_string(&line, std::string(value));
    } else {
      append_csv_field(&line, printable(value));
    }
  }
  /// The framework's number, or that of the program's step: known after the first end of a step.
  void write_step(std::string& line, const EventBatch& batch, size_t i, uint32_t process) {
    int64_t step = batch.step.empty() ? kNoStep : batch.step[i];
    const auto told = next_step_.find(process);
    if (step == kNoStep && told != next_step_.end() && !is_free(batch.action[i])) {
      step = told->second;
    }
    if (step == kNoStep && json_) return;
    key(line, "step", ",");
    if (step != kNoStep) line += std::to_string(step);
  }
  void text(std::string& line, std::string_view name, std::string_view value,
            std::string_view before = ",") {
    key(line, name, before);
    if (json_) line += '"';
    line += value;  // our own words: nothing to escape
    if (json_) line += '"';
  }
  const std::string& name_of(uint16_t device) {
    if (device_names_.size() <= device) device_names_.resize(size_t{device} + 1);
    if (device_names_[device].empty())
      device_names_[device] = device_name(device_at(tables_, device));
    return device_names_[device];
  }
  /// The frame of `node` as "file:line function", quoted where the format is JSON.
  const std::string& frame_of(uint32_t node) {
    const uint32_t id = tables_.stacks.node(node).frame;
    const uint32_t frame = id < tables_.stacks.frame_count() ? id : 0;
    if (frames_.size() <= frame) frames_.resize(tables_.stacks.frame_count());
    std::string& known = frames_[frame];
    if (known.empty()) {
      const Frame& place = tables_.stacks.frame(frame);
      std::string raw(tables_.strings.get(place.file));
      if (place.line != 0) raw += ':' + std::to_string(place.line);
      if (!raw.empty()) raw += ' ';
      raw += tables_.strings.get(place.function);
      if (json_) {
        append_json_string(&known, raw);
      } else {
        known = printable(raw);
      }
    }
    return known;
  }
  /// The frames from `node` outwards. Of a deep stack most are those of many others: from its
  /// innermost node whose depth kAnchorDepth divides, a few frames out, they are written once and
  /// copied from then on.
  void append_frames(std::string& line, uint32_t node, char separator) {
    const size_t begin = line.size();
    size_t anchor_at = 0;
    uint32_t anchor = 0;
    uint32_t own = kOwnFrames;  // that are left: no other stack may have them
    for (; node != 0; node = tables_.stacks.node(node).parent) {
      const std::string& text = frame_of(node);
      if (line.size() != begin) line += separator;
      const bool is_own = own != 0;
      own -= is_own;
      if (anchor == 0 && !is_own && tables_.stacks.node(node).depth % kAnchorDepth == 0 &&
          !text.empty()) {
        const auto known = anchored_.find(node);
        if (known != anchored_.end()) {
          line += known->second;
          return;
        }
        anchor = node, anchor_at = line.size();
      }
      line += text;
    }
    if (anchor == 0 || line.size() - anchor_at > kMostAnchoredBytes) return;
    if (anchored_bytes_ > kMostAnchoredBytes) anchored_.clear(), anchored_bytes_ = 0;
    anchored_bytes_ += line.size() - anchor_at;
    anchored_.emplace(anchor, line.substr(anchor_at));
  }
  void write_json_stack(std::string& line, uint32_t stack) {
    if (tables_.stacks.node(stack).depth == 0) return;
    line += ",\"stack\":[";
    append_frames(line, stack, ',');
    line += ']';
  }
  void write_csv_stack(std::string& line, uint32_t stack) {
    line += ',';
    csv_stack_.clear();
    if (tables_.stacks.node(stack).depth == 0) return;
    append_frames(csv_stack_, stack, ';');
    append_csv_field(&line, csv_stack_);
  }

  static constexpr uint32_t kAnchorDepth = 32, kOwnFrames = 8;
  static constexpr size_t kMostAnchoredBytes = 8 << 20;

  const Tables& tables_;
  bool has_times_;
  bool json_;
  std::vector<std::string> frames_;  // by frame id
  std::vector<std::string> device_names_;
  static constexpr uint8_t kNotAsked = 2;
  std::vector<uint8_t> is_followed_;
  std::string csv_stack_;
  absl::flat_hash_map<uint32_t, std::string> anchored_;  // by node
  size_t anchored_bytes_ = 0;
  Attributions attributions_;
  std::map<uint32_t, int64_t> next_step_;  // by process
  size_t next_mark_ = 0;
};

}  // namespace

Status export_events(EventSource& source, ExportFormat format, const TextSink& sink,
                     const std::function<void(double)>& on_progress) {
  LiveState state;
  if (const LiveState* before = source.state_before_first_event()) state = *before;
  SizesWithFrees sizes;
  EventWriter writer(source, format);
  std::string text;
  if (format == ExportFormat::kCsv) text = kCsvHeader;
  EventBatch batch;
  for (;;) {
    Result<bool> more = source.next(&batch);
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    state.apply_observed(batch, sizes);
    for (size_t i = 0; i < batch.size(); ++i) {
      writer.write(batch, i, sizes.values[i], &text);
      if (text.size() < kFlushBytes) continue;
      if (Status written = sink(text); !written) return written;
      text.clear();
    }
    writer.end_batch(batch);
    if (on_progress) on_progress(source.progress());
  }
  return text.empty() ? Status{} : sink(text);
}

}  // namespace gpumemprof
