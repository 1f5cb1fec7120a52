// Numbers of the fields that are read: xplane.proto of TensorFlow's profiler.
#pragma once

#include <cstdint>

namespace gpumemprof::xplane {

namespace field {
enum Space : uint32_t { kPlanes = 1, kErrors = 2, kWarnings = 3, kHostNames = 4 };
enum Plane : uint32_t {
  kPlaneName = 2,
  kLines = 3,
  kPlaneEvents = 4,  // map<int64, XEventMetadata>
  kPlaneStats = 5,   // map<int64, XStatMetadata>
  kPlaneProperties = 6,
};
enum MapEntry : uint32_t { kKey = 1, kValue = 2 };
enum Metadata : uint32_t { kMetadataName = 2 };  // of events and of stats
enum Line : uint32_t { kLineId = 1, kLineName = 2, kTimestampNs = 3, kEvents = 4, kShownName = 11 };
enum Event : uint32_t { kEventName = 1, kOffsetPs = 2, kStats = 4 };
enum Stat : uint32_t {
  kStatName = 1,
  kUnsigned = 3,
  kSigned = 4,
  kText = 5,
  kReference = 7,  // a name in the dictionary of stats
};
}  // namespace field

inline constexpr const char* kTooMuchMemory = "needs more memory than a file of its size may use";

}  // namespace gpumemprof::xplane
