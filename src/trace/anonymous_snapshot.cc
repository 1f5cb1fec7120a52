#include "trace/anonymous_snapshot.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trace/anonymous_tables.h"

namespace gpumemprof {
namespace {

/// Behind it stands a class that may be the program's own, and the method.
constexpr std::string_view kAnnotations[] = {"Optimizer.step#", "Optimizer.zero_grad#",
                                             "enumerate(DataLoader)#"};

bool is_identity(const std::vector<uint32_t>& stacks) {
  for (uint32_t i = 0; i < stacks.size(); ++i)
    if (stacks[i] != i) return false;
  return true;
}

void rename_stacks(const AnonymousTables& ours, AllocatorTrace* trace) {
  AllocatorEvents events;
  for (size_t i = 0; i < trace->events.size(); ++i) {
    AllocatorEvent event = trace->events[i];
    event.stack = ours.stack(event.stack);
    events.append(event);
  }
  trace->events = std::move(events);
  for (AllocatorSegment& segment : trace->segments) {
    segment.stack = ours.stack(segment.stack);
    for (AllocatorBlock& block : segment.blocks) block.stack = ours.stack(block.stack);
  }
}

}  // namespace

void anonymize(AllocatorSnapshot* snapshot, std::shared_ptr<Anonymizer> names) {
  const Tables theirs = std::move(snapshot->tables);
  AnonymousTables ours(std::move(names));
  ours.take_stacks(theirs);
  ours.take_processes(theirs);
  const bool keeps_stacks = is_identity(ours.stacks());
  for (AllocatorTrace& trace : snapshot->traces) {
    if (!keeps_stacks) rename_stacks(ours, &trace);
    for (EventContext& context : trace.contexts) {
      context.compile_context = ours.keep(theirs.strings.get(context.compile_context));
      context.user_metadata = ours.take_words(theirs.strings.get(context.user_metadata));
    }
  }
  for (Annotation& annotation : snapshot->annotations) {
    const std::string_view name = theirs.strings.get(annotation.name);
    const auto known = std::ranges::find_if(
        kAnnotations, [&](std::string_view start) { return name.starts_with(start); });
    annotation.name = known == std::end(kAnnotations)
                          ? ours.take_words(name)
                          : ours.take_words(name.substr(known->size()), *known);
  }
  snapshot->tables = ours.move_tables();
  snapshot->info.path = ours.input(snapshot->info.path);
  withhold_reasons(&snapshot->loss.reasons);
}

}  // namespace gpumemprof
