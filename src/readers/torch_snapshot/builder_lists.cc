// Builder: what a list is, and what it takes.
#include <algorithm>

#include "readers/torch_snapshot/builder.h"

namespace gpumemprof::torch_snapshot {
namespace {

constexpr size_t kMostFrames = 1 << 16;  // of one stack
constexpr size_t kMostTraces = 1 << 10;  // lists of events in one list: devices
// The events come in chunks of this size, and the rest of the record is small.
constexpr uint64_t kBytesPerTrace = 4096 * 24 + 1024;
constexpr uint64_t kBytesPerEvent = 24;

bool all_are(Kind kind, const Value* items, size_t count) {
  return std::all_of(items, items + count, [kind](const Value& v) { return v.kind == kind; });
}

/// Moves what waits into the list that has come for it.
template <class T, class List>
void take(std::vector<T>* waiting, uint64_t first, List* list) {
  list->insert(list->end(),
               std::make_move_iterator(waiting->begin() + static_cast<ptrdiff_t>(first)),
               std::make_move_iterator(waiting->end()));
  waiting->resize(first);
}

}  // namespace

bool Builder::append(Value* list, const Value* items, size_t count, uint64_t at) {
  if (count == 0) return true;
  switch (list->kind) {
    case Kind::kEmptyList:
      *list = start_list(items, count, at);
      break;
    case Kind::kStack:
      *list = stack_of(static_cast<uint32_t>(list->bits), items, count, at);
      break;
    case Kind::kTraces:
      *list = add_traces(list->bits, items, count, at);
      break;
    case Kind::kTrace:
    case Kind::kBlocks:
    case Kind::kSegments:
    case Kind::kAnnotations:
      if (!failure_.empty() || add_to_list(list, items, count)) break;
      drop(items, count);
      {
        const auto* bad = std::find_if(items, items + count,
                                       [](const Value& v) { return v.kind == Kind::kWrong; });
        *list = bad != items + count ? *bad : wrong("a list has values of different types", at);
      }
      break;
    default:  // of no interest, or wrong already
      drop(items, count);
      if (list->kind != Kind::kWrong) *list = opaque();
  }
  if (failure_.empty()) return account();
  return false;
}

Value Builder::start_list(const Value* items, size_t count, uint64_t at) {
  Value list;
  switch (items[0].kind) {
    case Kind::kFrame:
      return stack_of(0, items, count, at);
    case Kind::kTrace:
    case Kind::kEmptyList:
      parts_.trace_lists.emplace_back();
      return add_traces(parts_.trace_lists.size() - 1, items, count, at);
    case Kind::kHistory:
      // The latest first; of the older ones nothing is asked.
      return {Kind::kHistories, 0, items[0].bits};
    case Kind::kWrong:
      drop(items, count);
      return items[0];
    case Kind::kInteger:
      return tuple(items, count, at);  // JSON has no tuples
    case Kind::kEvent:
      list = {Kind::kTrace, 0, parts_.traces.size()};
      if (!grow(kBytesPerTrace)) return list;
      parts_.traces.push_back(std::make_unique<TraceRecord>());
      parts_.traces.back()->trace.streams = {0};
      parts_.traces.back()->trace.pools = {{0, 0}};
      parts_.traces.back()->streams.emplace(0, 0);
      parts_.traces.back()->pools.emplace(0, 0);
      break;
    case Kind::kBlock:
      list = {Kind::kBlocks, 0, parts_.block_lists.size()};
      parts_.block_lists.emplace_back();
      break;
    case Kind::kSegment:
      list = {Kind::kSegments, 0, parts_.segment_lists.size()};
      parts_.segment_lists.emplace_back();
      break;
    case Kind::kAnnotation:
      list = {Kind::kAnnotations, 0, parts_.annotation_lists.size()};
      parts_.annotation_lists.emplace_back();
      break;
    default:
      drop(items, count);
      return opaque();
  }
  grow(64);
  if (failure_.empty()) append(&list, items, count, at);
  return list;
}

bool Builder::add_to_list(Value* list, const Value* items, size_t count) {
  const uint64_t first = items[0].bits;
  switch (list->kind) {
    case Kind::kTrace:
      return all_are(Kind::kEvent, items, count) &&
             add_events(parts_.traces[list->bits].get(), items, count);
    case Kind::kBlocks:
      if (!all_are(Kind::kBlock, items, count)) return false;
      grow(count * 2 * sizeof(AllocatorBlock));
      take(&parts_.blocks, first, &parts_.block_lists[list->bits]);
      return true;
    case Kind::kSegments:
      if (!all_are(Kind::kSegment, items, count)) return false;
      grow(count * 2 * sizeof(SegmentRecord));
      take(&parts_.segments, first, &parts_.segment_lists[list->bits]);
      return true;
    default:
      if (!all_are(Kind::kAnnotation, items, count)) return false;
      grow(count * 2 * sizeof(Annotation));
      take(&parts_.annotations, first, &parts_.annotation_lists[list->bits]);
      return true;
  }
}

bool Builder::add_events(TraceRecord* trace, const Value* items, size_t count) {
  if (!grow(count * kBytesPerEvent)) return true;
  for (size_t i = 0; i < count; ++i) {
    EventRecord& record = parts_.events[items[i].bits];
    if (record.unread_action != 0) {
      ++parts_.unread_actions[record.unread_action];
      continue;
    }
    if (record.stream != trace->last_stream) {
      auto [known, added] = trace->streams.try_emplace(
          record.stream, static_cast<uint16_t>(trace->trace.streams.size()));
      if (added) trace->trace.streams.push_back(record.stream);
      trace->last_stream = record.stream;
      trace->last_stream_index = known->second;
    }
    record.event.stream = trace->last_stream_index;
    if (record.pool != 0) {
      auto [known, added] =
          trace->pools.try_emplace(record.pool, static_cast<uint16_t>(trace->trace.pools.size()));
      if (added) trace->trace.pools.push_back(parts_.pairs[record.pool]);
      record.event.pool = known->second;
    }
    if (trace->trace.streams.size() > kMostIndexes || trace->trace.pools.size() > kMostIndexes) {
      failure_ = "a device has more than 65,536 streams or memory pools";
      return true;
    }
    if ((record.compile_context | record.user_metadata) != 0) {
      if (!grow(2 * sizeof(EventContext))) return true;
      trace->trace.contexts.push_back({trace->trace.events.size(),
                                       string_of(record.compile_context),
                                       string_of(record.user_metadata)});
    }
    trace->trace.has_compile_context |= record.has_compile_context;
    trace->trace.has_user_metadata |= record.has_user_metadata;
    trace->trace.has_times |= record.has_time;
    trace->trace.has_pools |= record.has_pool;
    trace->trace.events.append(record.event);
  }
  parts_.events.resize(items[0].bits);
  return true;
}

Value Builder::stack_of(uint32_t inner, const Value* items, size_t count, uint64_t at) {
  frames_.clear();
  if (inner != 0) stacks_.frames_of(inner, &frames_);
  const size_t known = frames_.size();
  if (count > kMostFrames || known + count > kMostFrames) {
    drop(items, count);
    return wrong("a stack has more than 65,536 frames", at);
  }
  frames_.resize(known + count);
  for (size_t i = 0; i < count; ++i) {
    if (items[i].kind != Kind::kFrame) [[unlikely]] {
      drop(items, count);
      return items[i].kind == Kind::kWrong ? items[i]
                                           : wrong("a stack has elements that are not frames", at);
    }
    frames_[known + i] = static_cast<uint32_t>(items[i].bits);
  }
  // A stack that comes frame by frame costs its length each time: that is memory of a kind.
  if (inner != 0) grow(known * sizeof(uint32_t));
  const uint32_t stack = stacks_.intern(frames_);
  if (stack > kMostPayload) failure_ = "more than 67 million different stacks";
  return {Kind::kStack, 0, stack};
}

Value Builder::add_traces(uint64_t list, const Value* items, size_t count, uint64_t at) {
  std::vector<uint32_t>& traces = parts_.trace_lists[list];
  for (size_t i = 0; i < count; ++i) {
    if (items[i].kind != Kind::kTrace && items[i].kind != Kind::kEmptyList) {
      drop(items, count);
      return items[i].kind == Kind::kWrong ? items[i]
                                           : wrong("a list has values of different types", at);
    }
    if (traces.size() >= kMostTraces) return wrong("more than 1,024 lists in a list", at);
    traces.push_back(items[i].kind == Kind::kTrace ? static_cast<uint32_t>(items[i].bits)
                                                   : kNoPart);
  }
  grow(64 + count * 8);
  return {Kind::kTraces, 0, list};
}

}  // namespace gpumemprof::torch_snapshot
