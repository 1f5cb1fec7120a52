#include "native/columns.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/words.h"
#include "trace/live_state_apply.h"

namespace gpumemprof::python {
namespace {

/// Streams by number: an index of 16 bits, as long as there are no more.
class Streams {
 public:
  void append(const EventBatch& batch, Columns* columns) {
    if (batch.size() == 0 || !columns->no_streams.empty()) return;
    if (batch.stream.empty()) return give_up("the file does not say on which stream", columns);
    for (const int64_t number : batch.stream) {
      const auto [known, added] =
          indexes_.try_emplace(number, static_cast<uint16_t>(columns->streams.size()));
      if (added && columns->streams.size() == kMost)
        return give_up("the file has more than 65,536 streams", columns);
      if (added) columns->streams.push_back(number);
      columns->stream.push_back(known->second);
    }
  }

 private:
  static constexpr size_t kMost = size_t{1} << 16;
  void give_up(std::string why, Columns* columns) {
    columns->no_streams = std::move(why);
    columns->stream = {};
    columns->streams.clear();
  }
  absl::flat_hash_map<int64_t, uint16_t> indexes_;
};

template <class To, class From>
void append(std::vector<To>* to, const std::vector<From>& from) {
  to->insert(to->end(), from.begin(), from.end());
}

void reserve(uint64_t events, Columns* c) {
  c->time_ns.reserve(events), c->action.reserve(events), c->address.reserve(events);
  c->size_bytes.reserve(events), c->stack.reserve(events), c->device.reserve(events);
  c->thread.reserve(events);
}

void name_everything(const Tables& tables, Columns* columns) {
  columns->devices = device_labels(tables);
  for (size_t i = 0; i < kActionCount; ++i) {
    columns->actions.emplace_back(action_name(static_cast<Action>(i)));
  }
  if (columns->size() == 0) return;
  // What a damaged file made up gets a name too: who reads the columns may trust every index.
  const size_t devices = *std::ranges::max_element(columns->device) + size_t{1};
  const size_t actions = *std::ranges::max_element(columns->action) + size_t{1};
  if (columns->devices.size() < devices) columns->devices.resize(devices, "unknown");
  if (columns->actions.size() < actions) columns->actions.resize(actions, "unknown");
}

}  // namespace

Result<Columns> read_columns(EventSource& source, uint64_t expected) {
  Columns columns;
  reserve(expected, &columns);
  LiveState state;
  if (const LiveState* before = source.state_before_first_event()) state = *before;
  SizesWithFrees sizes;
  Streams streams;
  EventBatch batch;
  for (;;) {
    Result<bool> more = source.next(&batch);
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    state.apply_observed(batch, sizes);
    append(&columns.time_ns, batch.time_ns);
    for (const Action action : batch.action) columns.action.push_back(static_cast<uint8_t>(action));
    append(&columns.address, batch.address);
    append(&columns.size_bytes, sizes.values);
    append(&columns.stack, batch.stack);
    append(&columns.device, batch.device);
    append(&columns.thread, batch.thread);
    streams.append(batch, &columns);
  }
  columns.has_times = source.info().can.times;
  const size_t threads = source.tables().threads.size();
  columns.has_threads =
      std::ranges::any_of(columns.thread, [&](uint32_t thread) { return thread < threads; });
  name_everything(source.tables(), &columns);
  return columns;
}

std::vector<std::string> device_labels(const Tables& tables) {
  std::map<std::string, size_t> uses;
  for (const Device& device : tables.devices) ++uses[device_name(device)];
  std::vector<std::string> labels;
  std::set<std::string> taken;
  for (const Device& device : tables.devices) {
    std::string label = device_name(device);
    if (uses[label] > 1)
      label = std::to_string(process_at(tables, device.process).pid) + '/' + label;
    const std::string plain = label;
    for (int n = 2; !taken.insert(label).second; ++n) label = plain + '#' + std::to_string(n);
    labels.push_back(std::move(label));
  }
  return labels;
}

}  // namespace gpumemprof::python
