// Numbers of fields of Perfetto's trace format:
// https://github.com/google/perfetto/tree/main/protos/perfetto/trace
#pragma once

#include <cstdint>

namespace gpumemprof::perfetto {

namespace trace {
enum : uint32_t { kPacket = 1 };
}
namespace packet {
enum : uint32_t {
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kProfilePacket = 37,
  kTimestampClockId = 58,
  kDefaults = 59,
  kTrackDescriptor = 60
};
enum : uint32_t { kStateCleared = 1, kNeedsState = 2 };  // sequence_flags
}  // namespace packet
namespace clock_snapshot {
enum : uint32_t { kClocks = 1, kPrimaryTraceClock = 2 };
enum : uint32_t { kClockId = 1, kTimestamp = 2 };                // of a clock
enum : uint32_t { kRealtime = 1, kMonotonic = 3, kCoarse = 4 };  // builtin clocks
}  // namespace clock_snapshot
namespace track {
enum : uint32_t { kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5, kCounter = 8 };
}
namespace process {
enum : uint32_t { kPid = 1, kName = 6 };
}
namespace thread {
enum : uint32_t { kPid = 1, kTid = 2, kName = 5 };
}
namespace counter {
enum : uint32_t { kUnit = 3, kSizeBytes = 3 };
}
namespace track_event {
enum : uint32_t {
  kAnnotations = 4,
  kType = 9,
  kTrackUuid = 11,
  kName = 23,
  kCounterValue = 30,
  kCallstackIid = 56
};
enum : uint32_t { kInstant = 3, kCounter = 4 };  // type
}  // namespace track_event
namespace annotation {
enum : uint32_t { kUint = 3, kName = 10 };
}
namespace interned {
enum : uint32_t {
  kFunctionNames = 5,
  kFrames = 6,
  kCallstacks = 7,
  kMappingPaths = 17,
  kSourcePaths = 18,
  kMappings = 19
};
enum : uint32_t { kIid = 1, kStr = 2 };  // of a string, and the iid of everything
enum : uint32_t { kFunctionNameId = 2, kMappingId = 3, kSourcePathIid = 5, kLineNumber = 6 };
enum : uint32_t { kFrameIds = 2 };
enum : uint32_t { kPathStringIds = 7 };
}  // namespace interned
namespace heap {
enum : uint32_t { kProcessDumps = 5 };
enum : uint32_t { kPid = 1, kSamples = 2, kTimestamp = 9, kHeapName = 11 };  // of a dump
enum : uint32_t { kCallstackId = 1, kSelfAllocated = 2, kAllocCount = 5 };   // of a sample
}  // namespace heap

}  // namespace gpumemprof::perfetto
