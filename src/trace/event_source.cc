#include "trace/event_source.h"

namespace gpumemprof {

const char* source_kind_name(SourceKind kind) {
  switch (kind) {
    case SourceKind::kRecording:
      return "recording";
    case SourceKind::kPytorchSnapshot:
      return "pytorch_snapshot";
    case SourceKind::kOomDump:
      return "oom_dump";
    case SourceKind::kTelemetry:
      return "telemetry";
    case SourceKind::kTensorflowXplane:
      return "tensorflow_xplane";
    case SourceKind::kTensorflowBfcDump:
      return "tensorflow_bfc_dump";
    case SourceKind::kJaxMemoryProfile:
      return "jax_memory_profile";
    case SourceKind::kMemory:
      return "memory";
  }
  return "unknown";
}

}  // namespace gpumemprof
