#include "trace/anonymous_tables.h"

#include "trace/label_frames.h"

namespace gpumemprof {

void AnonymousTables::take_stacks(const Tables& from) {
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

void AnonymousTables::take_processes(const Tables& from) {
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

uint32_t AnonymousTables::take_words(std::string_view text, std::string_view start) {
  return take_string(std::string(start) + names_->function(text, kPhaseFile));
}

void withhold_reasons(std::vector<LossReason>* reasons) {
  for (LossReason& reason : *reasons) reason.reason = "reason withheld: it may contain names";
}

}  // namespace gpumemprof
