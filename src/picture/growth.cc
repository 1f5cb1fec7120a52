#include "picture/growth.h"

#include <algorithm>
#include <span>
#include <string>

#include "analysis/statistics/statistics.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr double kLeastBytes = 1 << 20;

std::string rose_by(double bytes, const char* how) {
  return "growth unknown: the minimum of live memory rose by " +
         format_bytes(static_cast<uint64_t>(bytes)) + how;
}

}  // namespace

void LiveGrowth::Windows::close(double end_s, double live) {
  floors.push_back(floor), ends_s.push_back(end_s);
  floor = live;
  if (floors.size() < kMostWindows) return;
  for (size_t i = 0; i < kMostWindows / 2; ++i) {
    floors[i] = std::min(floors[2 * i], floors[2 * i + 1]);
    ends_s[i] = ends_s[2 * i + 1];
  }
  floors.resize(kMostWindows / 2), ends_s.resize(kMostWindows / 2);
  length *= 2;
}

void LiveGrowth::add(double seconds, uint64_t live_bytes) {
  const auto live = static_cast<double>(live_bytes);
  if (!began_) {
    began_ = true, begin_s_ = window_begin_s_ = now_s_ = seconds;
    times_.floor = steps_.floor = live_ = live;
  }
  now_s_ = std::max(now_s_, seconds);
  while (now_s_ - window_begin_s_ >= times_.length) {
    const double end_s = window_begin_s_ + times_.length;
    times_.close(end_s, live_);
    window_begin_s_ = end_s;
  }
  live_ = live;
  times_.floor = std::min(times_.floor, live_);
  steps_.floor = std::min(steps_.floor, live_);
}

void LiveGrowth::end_step(double seconds) {
  if (!began_) return;
  ++step_count_;
  last_step_s_ = std::max(last_step_s_, seconds);
  if (static_cast<double>(++steps_in_last_) < steps_.length) return;
  steps_in_last_ = 0;
  steps_.close(last_step_s_, live_);
}

bool LiveGrowth::has_steps() const {
  const double quiet_s = now_s_ - last_step_s_;
  return step_count_ > 0 && quiet_s <= std::max(kLeastSecondsFromOutside, (now_s_ - begin_s_) / 4);
}

FollowedGrowth LiveGrowth::judge() const {
  if (times_.floors.size() < kLeastWindows) {
    return {.why_none = "growth is known after " +
                        std::to_string(static_cast<int>(kLeastSecondsFromOutside)) + " s"};
  }
  const bool by_steps = has_steps();
  if (by_steps && steps_.floors.size() < kLeastWindows) {
    return {.why_none = "growth is known after " + std::to_string(kLeastWindows) + " steps"};
  }
  const Windows& windows = by_steps ? steps_ : times_;
  const size_t from = windows.floors.size() / 4;
  const std::span<const double> floors = std::span(windows.floors).subspan(from);
  const std::span<const double> ends_s = std::span(windows.ends_s).subspan(from);
  const auto grown = growth_of_floor(floors);
  if (grown && grown->bytes >= kLeastBytes)
    return {.bytes_per_second = theil_sen_slope(ends_s, floors)};
  const std::vector<double> kept = never_undercut({floors.begin(), floors.end()});
  if (kept[kept.size() - 1 - kept.size() / 6] <= kept.front()) return {.bytes_per_second = 0};
  const double rise = kept.back() - kept.front();
  return {.why_none = rise < kLeastBytes ? rose_by(rise, " only") : rose_by(rise, ", unsteadily")};
}

}  // namespace gpumemprof
