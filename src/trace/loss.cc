#include "trace/event_source.h"

namespace gpumemprof {

void Loss::add(uint64_t lost_events, uint64_t lost_bytes, std::string reason) {
  events += lost_events;
  bytes += lost_bytes;
  for (LossReason& known : reasons) {
    if (known.reason == reason) {
      known.events += lost_events;
      return;
    }
  }
  reasons.push_back({lost_events, std::move(reason)});
}

}  // namespace gpumemprof
