#include "recording/sealed_events.h"
namespace gpumemprof {
struct EventEncoder::Impl {};
struct EventDecoder::Impl {};
EventEncoder::EventEncoder() {}
EventEncoder::~EventEncoder() {}
EventDecoder::EventDecoder() {}
EventDecoder::~EventDecoder() {}
void EventEncoder::encode(const EventBatch&, std::string*) {}
Status EventDecoder::decode(std::string_view, uint32_t, EventBatch*) {
  return fail(ErrorCode::kUnsupported, "sealed events are not read yet");
}
}  // namespace gpumemprof
