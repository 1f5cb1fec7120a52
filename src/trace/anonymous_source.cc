#include "trace/anonymous_source.h"

#include <numeric>

#include "trace/label_frames.h"

namespace gpumemprof {

AnonymousSource::AnonymousSource(std::unique_ptr<EventSource> source,
                                 std::shared_ptr<Anonymizer> names)
    : source_(std::move(source)), names_(std::move(names)), info_(source_->info()) {
  info_.path = names_->input(info_.path);
  take_stacks();
  take_processes();
  const LiveState* before = source_->state_before_first_event();
  if (before == nullptr) return;
  std::vector<uint32_t> threads(tables_.threads.size());
  std::iota(threads.begin(), threads.end(), 0);
  std::vector<uint16_t> devices(before->devices().size());
  std::iota(devices.begin(), devices.end(), uint16_t{0});
  before_ = std::make_unique<LiveState>();
  // Cannot fail: every device is in the map, and none was there before.
  (void)before_->absorb(*before, {.stacks = stacks_, .threads = threads, .devices = devices});
}

/// Two of the source's stacks may map to one: the same package in two environments.
void AnonymousSource::take_stacks() {
  const Tables& from = source_->tables();
  for (uint32_t i = static_cast<uint32_t>(frames_.size()); i < from.stacks.frame_count(); ++i) {
    const Frame& frame = from.stacks.frame(i);
    const std::string_view file = from.strings.get(frame.file);
    const std::string_view function = from.strings.get(frame.function);
    frames_.push_back(
        tables_.stacks.intern_frame({take_string(names_->file(file)),
                                     take_string(names_->function(function, file)), frame.line}));
  }
  for (uint32_t i = static_cast<uint32_t>(stacks_.size()); i < from.stacks.stack_count(); ++i) {
    const StackTable::Node& node = from.stacks.node(i);
    stacks_.push_back(
        node.depth == 0 ? 0 : tables_.stacks.push(stacks_[node.parent], frames_[node.frame]));
  }
}

void AnonymousSource::take_processes() {
  const Tables& from = source_->tables();
  tables_.devices = from.devices;
  tables_.allocators = from.allocators;
  tables_.processes = from.processes;
  tables_.clocks = from.clocks;
  for (Process& process : tables_.processes) {
    process.host = names_->host(process.host);
    process.command = names_->command(process.command);
    // "python", "native", … are kept; the reason after "none: " may name a file.
    if (process.stacks.find('/') != std::string::npos) process.stacks = "none: reason withheld";
  }
  tables_.threads = from.threads;
  for (Thread& thread : tables_.threads) thread.name = names_->thread(thread.name);
}

Result<bool> AnonymousSource::next(EventBatch* batch) {
  Result<bool> more = source_->next(batch);
  take_stacks();
  const Tables& from = source_->tables();
  const bool is_end = !more || !*more;
  if (is_end || from.devices.size() != tables_.devices.size() ||
      from.processes.size() != tables_.processes.size() ||
      from.threads.size() != tables_.threads.size()) {
    take_processes();
  }
  for (Mark& mark : batch->marks) {
    mark.text = take_string(names_->function(from.strings.get(mark.text), kPhaseFile));
  }
  for (uint32_t& stack : batch->stack) stack = stack < stacks_.size() ? stacks_[stack] : 0;
  if (is_end) {
    loss_ = source_->loss();
    for (LossReason& reason : loss_.reasons)
      reason.reason = "reason withheld: it may contain names";
  }
  return more;
}

}  // namespace gpumemprof
