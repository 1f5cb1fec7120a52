// Reads a snapshot in the JSON form of PyTorch's dictionary; of its stacks only which are equal.
// For tests of this room alone, on files of our own programs: anything wrong with one ends the
// test.
#pragma once

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "trace/allocator_trace.h"

namespace gpumemprof {

class JsonSnapshotForTests {
 public:
  explicit JsonSnapshotForTests(const std::string& path) {
    std::ifstream file(path);
    read(nlohmann::json::parse(file));
  }
  AllocatorSnapshot snapshot;

 private:
  using Json = nlohmann::json;

  void read(const Json& all) {
    if (all.contains("allocator_settings")) {
      const Json& settings = all["allocator_settings"];
      RecordedSettings& out = snapshot.settings;
      out.known = true;
      out.conf = settings.value("PYTORCH_CUDA_ALLOC_CONF", "");
      out.max_split_size_bytes = settings.value("max_split_size", int64_t{-1});
      out.garbage_collection_threshold = settings.value("garbage_collection_threshold", 0.0);
      out.expandable_segments = settings.value("expandable_segments", false);
    }
    std::map<int, AllocatorTrace> devices;
    int device = 0;
    for (const Json& events : all["device_traces"]) {
      if (!events.empty()) read_events(&devices[device], events);
      ++device;
    }
    for (const Json& segment : all["segments"]) {
      read_segment(&devices[segment["device"].get<int>()], segment);
    }
    for (auto& [index, trace] : devices) {
      trace.device = index;
      std::ranges::sort(trace.segments, {}, &AllocatorSegment::address);
      snapshot.traces.push_back(std::move(trace));
    }
  }

  uint32_t stack_of(const Json& from) {
    if (!from.contains("frames") || from["frames"].empty()) return 0;
    const auto next = static_cast<uint32_t>(stacks_.size()) + 1;
    return stacks_.try_emplace(from["frames"].dump(), next).first->second;
  }
  static uint16_t stream_index(AllocatorTrace* trace, int64_t stream) {
    if (trace->streams.empty()) trace->streams.push_back(0);
    const auto found = std::ranges::find(trace->streams, stream);
    if (found == trace->streams.end()) trace->streams.push_back(stream);
    return static_cast<uint16_t>(std::ranges::find(trace->streams, stream) -
                                 trace->streams.begin());
  }
  static uint16_t pool_index(AllocatorTrace* trace, const Json& from, const char* key) {
    if (trace->pools.empty()) trace->pools.emplace_back(0, 0);
    if (!from.contains(key)) return 0;
    const std::pair<int64_t, int64_t> pool{from[key][0], from[key][1]};
    if (std::ranges::find(trace->pools, pool) == trace->pools.end()) trace->pools.push_back(pool);
    return static_cast<uint16_t>(std::ranges::find(trace->pools, pool) - trace->pools.begin());
  }

  void read_events(AllocatorTrace* trace, const Json& events) {
    static const std::map<std::string, Action> kActions = {
        {"alloc", Action::kAlloc},
        {"free_requested", Action::kFreeRequested},
        {"free_completed", Action::kFreeCompleted},
        {"oom", Action::kOom},
        {"segment_alloc", Action::kSegmentAlloc},
        {"segment_free", Action::kSegmentFree},
        {"segment_map", Action::kSegmentMap},
        {"segment_unmap", Action::kSegmentUnmap},
        {"snapshot", Action::kSnapshot}};
    trace->has_history = true;
    for (const Json& event : events) {
      const auto action = kActions.find(event["action"].get<std::string>());
      if (action == kActions.end()) continue;
      AllocatorEvent out;
      out.action = action->second;
      out.address = event[out.action == Action::kOom ? "device_free" : "addr"].get<uint64_t>();
      out.size_bytes = event["size"].get<uint64_t>();
      out.time_us = event.value("time_us", int64_t{0});
      out.stream = stream_index(trace, event["stream"].get<int64_t>());
      out.pool = pool_index(trace, event, "pool_id");
      trace->has_pools = trace->has_pools || event.contains("pool_id");
      out.stack = stack_of(event);
      trace->events.append(out);
    }
  }

  void read_segment(AllocatorTrace* trace, const Json& segment) {
    AllocatorSegment out;
    out.address = segment["address"];
    out.size_bytes = segment["total_size"];
    out.allocated_bytes = segment["allocated_size"];
    out.active_bytes = segment["active_size"];
    out.stream = stream_index(trace, segment["stream"].get<int64_t>());
    out.pool = pool_index(trace, segment, "segment_pool_id");
    out.is_large = segment["segment_type"] == "large";
    out.is_expandable = segment.value("is_expandable", false);
    for (const Json& block : segment["blocks"]) {
      const std::string state = block["state"];
      out.blocks.push_back({.address = block["address"],
                            .size_bytes = block["size"],
                            .requested_bytes = block["requested_size"],
                            .stack = stack_of(block),
                            .state = state == "inactive"           ? BlockState::kFree
                                     : state == "active_allocated" ? BlockState::kAllocated
                                                                   : BlockState::kPendingFree});
    }
    trace->segments.push_back(std::move(out));
  }
  std::map<std::string, uint32_t> stacks_;
};

}  // namespace gpumemprof
