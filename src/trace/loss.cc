#include <algorithm>

#include "trace/event_source.h"

namespace gpumemprof {

void Loss::add(uint64_t lost_events, uint64_t lost_bytes, std::string reason) {
  const bool is_counted = lost_events != LossReason::kUncounted;
  if (is_counted) events += lost_events;
  bytes += lost_bytes;
  for (LossReason& known : reasons) {
    if (known.reason == reason && is_counted == (known.events != LossReason::kUncounted)) {
      if (is_counted) known.events += lost_events;
      return;
    }
  }
  reasons.push_back({lost_events, std::move(reason)});
}

bool Loss::is_open_ended() const {
  return std::ranges::any_of(
      reasons, [](const LossReason& why) { return why.events == LossReason::kUncounted; });
}

}  // namespace gpumemprof
